"""Brings a machine to a power state and says when it is there, without ever waiting in a thread.

Level-triggered: every call reads the state from the hardware, sends the command if that was not done yet, and answers
``DONE`` or :class:`~ingot.drivers.results.LookAgain`. What was sent, and until when it must have worked, is in
``task.memory``, so another conductor can go on with it.
"""

import time
from collections.abc import Callable
from typing import Any

from ingot.common import errors, states
from ingot.drivers import results
from ingot.drivers.task import Task

_FIRST_LOOK = 0.5
_LONGEST_PAUSE = 5.0

Phase = Callable[[Task], Any]


def ensure(task: Task, target: str) -> results.Result:
    """Brings the machine to ``power on``, ``power off`` or, with its operating system's help, ``soft power off``.

    :raises StepFailed: it did not get there within ``[conductor] power_state_change_timeout``.
    :raises HardwareError: the BMC refuses. One that stops answering after it took the command is given that time too:
        many restart their network together with the machine.
    """
    wanted = states.POWER_OFF if target == states.SOFT_POWER_OFF else target
    sent = task.memory.get("power", {})
    if sent.get("target") != target:
        if read(task) == wanted:
            return results.DONE
        task.driver.power.start_power_change(task, target)
        sent = task.memory["power"] = {"target": target, "at": time.time()}
    waited = max(0.0, time.time() - sent["at"])
    expired = waited >= task.conf.conductor.power_state_change_timeout
    try:
        found = read(task)
    except errors.HardwareUnreachable:
        if expired:
            raise
        found = None
    if found == wanted:
        del task.memory["power"]
        return results.DONE
    if expired:
        raise errors.StepFailed(
            f"the machine is still in state {found!r} {waited:.0f} s after it was told {target!r} "
            "([conductor] power_state_change_timeout)"
        )
    return results.LookAgain(min(_FIRST_LOOK + waited / 4, _LONGEST_PAUSE))


def read(task: Task) -> str:
    """The power state as the hardware has it, noted in the node."""
    state: str = task.driver.power.get_power_state(task)
    if state != task.node.power_state and not task.shared:
        task.set(power_state=state)
    return state


def power_off(task: Task) -> results.Result:
    """Switches the machine off. One that must not be (``disable_power_off``) stays on; :func:`power_on` resets it."""
    return results.DONE if task.node.disable_power_off else ensure(task, states.POWER_OFF)


def soft_power_off(task: Task) -> results.Result:
    """Asks the operating system to shut down, and switches off when it has not by the deadline, or cannot be asked.

    :raises HardwareUnreachable: the BMC is silent, which says nothing of how it can be done.
    """
    if task.node.disable_power_off:
        return results.DONE
    forced = task.memory.get("power", {}).get("target") == states.POWER_OFF
    if forced or states.SOFT_POWER_OFF not in task.driver.power.get_supported_power_states(task):
        return ensure(task, states.POWER_OFF)
    try:
        return ensure(task, states.SOFT_POWER_OFF)
    except errors.HardwareUnreachable:
        raise
    except (errors.StepFailed, errors.HardwareError):
        return ensure(task, states.POWER_OFF)


def watch_off(task: Task, patience: float) -> results.Result:
    """Waits until a machine that is shutting itself down is off; after ``patience`` seconds switches it off."""
    if task.node.disable_power_off:
        return results.DONE
    waited = time.time() - task.memory.setdefault("watched_since", time.time())
    if waited >= patience or "power" in task.memory:
        return ensure(task, states.POWER_OFF)
    if read(task) == states.POWER_OFF:
        return results.DONE
    return results.LookAgain(min(_FIRST_LOOK + waited / 4, _LONGEST_PAUSE))


def power_on(task: Task) -> results.Result:
    """Boots the machine: switches it on, or resets it if it may not be switched off before."""
    if not task.node.disable_power_off or task.memory.get("reset"):
        return ensure(task, states.POWER_ON)
    if read(task) == states.POWER_ON:
        task.driver.power.start_power_change(task, states.REBOOT)
        task.memory["reset"] = True
    return ensure(task, states.POWER_ON)


def reboot(task: Task, between: Phase | None = None) -> results.Result:
    """Off and on again.

    :param between: what to do while the machine is off; called as a phase of ``results.in_phases``.
    """
    return results.in_phases(task, power_off, *([between] if between else []), power_on)


def _exactly(target: str) -> Phase:
    def reach(task: Task) -> results.Result:
        return ensure(task, target)

    return reach


_WAYS: dict[str, tuple[Phase, ...]] = {
    states.POWER_ON: (_exactly(states.POWER_ON),),
    states.POWER_OFF: (_exactly(states.POWER_OFF),),
    states.SOFT_POWER_OFF: (_exactly(states.SOFT_POWER_OFF),),
    states.REBOOT: (power_off, power_on),
    states.SOFT_REBOOT: (_exactly(states.SOFT_POWER_OFF), _exactly(states.POWER_ON)),
}


def change(task: Task, target: str) -> results.Result:
    """What a user asked for, to the letter: a soft change that does not work in time fails, it is not forced.

    :param target: ``power on``, ``power off``, ``rebooting``, ``soft power off`` or ``soft rebooting``.
    :raises Invalid: the machine's power interface does not do this, or the node must not be powered off.
    """
    supported = task.driver.power.get_supported_power_states(task)
    if target not in _WAYS or target not in supported:
        raise errors.Invalid(
            field="target",
            value=target,
            allowed=f"This machine's power interface has: {', '.join(supported)}.",
        )
    if task.node.disable_power_off and target not in (states.POWER_ON, states.REBOOT):
        raise errors.Invalid(
            field="target",
            value=target,
            allowed="Powering off is disabled for this node (disable_power_off).",
        )
    return results.in_phases(task, *_WAYS[target])
