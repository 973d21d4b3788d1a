"""What a step may answer, and the one function that refuses anything else.

A step is called again until it answers done: after each :class:`WaitForAgent` at the agent's heartbeat, after each
:class:`PollAfter` when its time has come. Between two calls no thread waits for it; what it must remember it keeps in
``task.memory``, which is saved with the node. A call that its conductor did not live to answer is made again by
another, with the memory of the last answer, unless the step is declared not idempotent: then that ends the flow.
"""

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from ingot.common import errors, states
from ingot.common.waits import Wait
from ingot.drivers.interfaces.task import Task


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """The step has ended well.

    :param hook_result: what the post-step hooks get, e.g. the result of an agent's command.
    """

    hook_result: object = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitForAgent:
    """Nothing to do until the agent calls.

    :param timeout: seconds without a heartbeat after which the step fails; None: the flow's own limit.
    :param again: call the step again at the heartbeat. False: the heartbeat itself ends the step, which is what the
        wait state of specification 001 means.
    :param watch: whether the step asks the agent itself. It is called again also when the next heartbeat is overdue,
        and when another agent looks up the node; then it finds out whether its agent is there.
    """

    timeout: float | None = None
    again: bool = True
    watch: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class PollAfter:
    """Call the step again in ``after`` seconds: hardware is on its way, or a retry is due.

    :param abortable: whether the node shows meanwhile that it waits, so that users may abort.
    :param waits_for: what for, as explanations of the node say it: a row of ``common/waits.py``, or words of your own.
    :param until: when the step is to end or fail at the latest, on the clock of ``time.time``; None: not known.
    """

    after: float = 1.0
    abortable: bool = False
    waits_for: str = Wait.HARDWARE
    until: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """Stand still until an operator says ``unhold``; that ends the step."""


Result = Done | WaitForAgent | PollAfter | Hold

Answer = Result | str | None
"""What methods may return: besides the types above, specifications 001 and 002 let a step return None when it has
ended, or a wait state."""

Phase = Callable[[Task], Answer]
AnyTask = TypeVar("AnyTask", bound=Task)

DONE = Done()
HOLD = Hold()


def parse_result(answer: object, step: str) -> Result:
    """Return the typed result of what a step's method returned.

    :raises StepFailed: it is no :data:`Answer`; the message is for the author of the step.
    """
    if isinstance(answer, Result):
        return answer
    if answer is None:
        return DONE
    if isinstance(answer, str) and answer in states.WAITING:
        return WaitForAgent(again=False)
    raise errors.StepFailed(
        f"step {step} returned {answer!r}; it must return None, Done, WaitForAgent, PollAfter, Hold or a wait state"
    )


_PHASES = "phases"
"""Key of ``task.memory`` with the phase that is reached and what it remembers."""


def run_phases(task: AnyTask, *phases: Callable[[AnyTask], Answer]) -> Result:
    """Run functions of the task one after the other as one step, going on where the last call stopped.

    Each phase is called until it answers done and must be safe to repeat. It has a memory of its own for as long as it
    lasts, so a phase may consist of phases itself.

    :returns: the first answer that is not done, else that of the last phase.
    """
    memory = task.memory
    place = memory.setdefault(_PHASES, {"reached": 0, "memory": {}})
    result: Result = DONE
    while place["reached"] < len(phases):
        phase = phases[place["reached"]]
        task.memory = place["memory"]
        try:
            result = parse_result(phase(task), getattr(phase, "__name__", "phase"))
        finally:
            task.memory = memory
        ends_at_heartbeat = isinstance(result, WaitForAgent) and not result.again
        if not isinstance(result, Done) and not ends_at_heartbeat:
            return result
        place |= {"reached": place["reached"] + 1, "memory": {}}
        if isinstance(result, WaitForAgent):
            return dataclasses.replace(result, again=True)
    del memory[_PHASES]
    return result


def restart_phases(task: Task) -> None:
    """Have :func:`run_phases` begin with its first phase again."""
    task.memory.pop(_PHASES, None)


def save_progress(task: Task) -> Result:
    """Save that the phases before are done, as a phase: they are not repeated after a conductor died in a later one.

    Phases that are done in one call of the step are saved together, when it answers.
    """
    if "saved" in task.memory:
        return DONE
    task.memory["saved"] = True
    return PollAfter(0.0)


def has_begun(task: Task) -> bool:
    """Return whether :func:`run_phases` has begun in an earlier call of the step, or phase, that asks."""
    return _PHASES in task.memory
