"""Steps that every node has, whatever its driver: they stand in a request, a template or a runbook on any interface."""

import dataclasses
import time
from collections.abc import Callable

from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.conductor.task.task_manager import Task
from ingot.drivers.agent import booting, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.arguments import ArgsInfo
from ingot.drivers.interfaces.results import Answer

_LONGEST_WAIT = 7 * 24 * 3600


@dataclasses.dataclass(frozen=True, slots=True)
class ReservedStep:
    """A reserved step.

    :param run: called with the task and the step's arguments; answers as steps do.
    :param argsinfo: as those of a driver's step, with their types.
    :param check: refuses arguments that make no sense, of a step as messages name it; called when the step is planned.
    """

    run: Callable[..., Answer]
    argsinfo: ArgsInfo = dataclasses.field(default_factory=dict)
    check: Callable[[str, Json], None] = lambda _step, _args: None


def _wait(task: Task, seconds: float | None = None) -> results.Result:
    """Wait for a number of seconds, or else for the agent's next heartbeat."""
    if seconds is None:
        return results.WaitForAgent(again=False) if _has_agent(task) else results.DONE
    until = task.memory.setdefault("until", time.time() + seconds)
    left = until - time.time()
    return results.PollAfter(left, waits_for=Wait.TIME, until=until) if left > 0 else results.DONE


def _check_wait(step: str, args: Json) -> None:
    seconds = args.get("seconds", 0)
    if not 0 <= seconds <= _LONGEST_WAIT:
        raise errors.Invalid(
            field=f"argument seconds of step {step}",
            value=seconds,
            allowed=f"A number from 0 to {_LONGEST_WAIT}; hold has no limit.",
        )


def _has_agent(task: Task) -> bool:
    """Return whether the flow has met an agent, which later steps may need, on the machine."""
    return session.is_alive(task) or "offered" in session.read_facts(task)


def _power_on(task: Task) -> results.Result:
    """Switch the machine on: into the agent again, in a flow that has one."""
    if _has_agent(task) and not session.is_alive(task):
        return results.run_phases(task, *booting.REBOOT[1:3])
    return power_control.ensure(task, states.POWER_ON)


def _power_off(task: Task) -> results.Result:
    def forget_agent(task: Task) -> None:
        if not power_control.stays_on(task):  # such a machine is on all the same, and its agent sends its heartbeats
            session.forget_connection(task)

    return results.run_phases(task, power_control.power_off, forget_agent)


def _reboot(task: Task) -> results.Result:
    """Switch the machine off and on: into the agent again, in a flow that has one."""
    if _has_agent(task):
        return results.run_phases(task, *booting.REBOOT)
    return power_control.reboot(task)


STEPS: dict[str, ReservedStep] = {
    "hold": ReservedStep(lambda _task: results.HOLD),  # until an operator says unhold
    "wait": ReservedStep(
        _wait,
        {"seconds": {"description": "How long; without it, until the agent's next heartbeat.", "type": "number"}},
        _check_wait,
    ),
    "power_on": ReservedStep(_power_on),
    "power_off": ReservedStep(_power_off),
    "reboot": ReservedStep(_reboot),
}
