"""What a step may answer, and the one function that refuses anything else.

A step is called again until it answers done: after each :class:`WaitForAgent` when the agent gives a sign of life,
after each :class:`LookAgain` when the time has come. Between two calls no thread waits for it; what it must remember
it keeps in ``task.memory``, which is saved with the node. A conductor that takes over calls it with the memory of the
last answer, so each call must be safe to repeat.
"""

import dataclasses
from collections.abc import Collection
from typing import Any

from ingot.common import errors, states


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """The step has ended well.

    :param hook_result: what the post-step hooks get, e.g. the result of an agent's command.
    """

    hook_result: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class WaitForAgent:
    """Nothing to do until the agent calls.

    :param timeout: seconds without a sign of life after which the step fails; None: the flow's own limit.
    :param again: call the step again at the heartbeat. False: the heartbeat itself ends the step, which is what the
        wait state of specification 001 means.
    """

    timeout: float | None = None
    again: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class LookAgain:
    """Call the step again in ``after`` seconds: hardware is on its way, or a retry is due."""

    after: float = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """Stand still until an operator says ``unhold``; that ends the step."""


Result = Done | WaitForAgent | LookAgain | Hold

DONE = Done()
HOLD = Hold()


def typed(answer: Any, step: str) -> Result:
    """The typed result of what a step method returned.

    Besides the types above, specifications 001 and 002 let a step return None when it has ended, or a wait state.

    :raises StepFailed: anything else; the message is for the author of the step.
    """
    if isinstance(answer, Result):
        return answer
    if answer is None:
        return DONE
    if isinstance(answer, str) and answer in states.WAITING:
        return WaitForAgent(again=False)
    raise errors.StepFailed(
        f"step {step} returned {answer!r}; it must return None, Done, WaitForAgent, LookAgain, Hold or a wait state"
    )


def in_phases(task: Any, *phases: Any) -> Result:
    """Runs functions of the task one after the other as one step, going on where the last call stopped.

    Each phase is called until it answers done and must be safe to repeat. The phase reached is in ``task.memory``, and
    so is what a phase remembers, until it is done; what was in there before stays.

    :returns: the first answer that is not done, else that of the last phase.
    """
    before = task.memory.setdefault("before", list(task.memory))
    answer: Result = DONE
    for number in range(task.memory.get("phase", 0), len(phases)):
        task.memory["phase"] = number
        answer = typed(phases[number](task), getattr(phases[number], "__name__", "phase"))
        if not isinstance(answer, Done) and not (isinstance(answer, WaitForAgent) and not answer.again):
            return answer
        _drop(task.memory, but=(*before, "before", "phase"))
        if isinstance(answer, WaitForAgent):
            task.memory["phase"] = number + 1
            return dataclasses.replace(answer, again=True)
    _drop(task.memory, but=before)
    return answer


def _drop(memory: dict[str, Any], but: Collection[str]) -> None:
    for key in [key for key in memory if key not in but]:
        del memory[key]
