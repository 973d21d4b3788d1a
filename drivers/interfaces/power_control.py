"""Brings a machine to a power state and reports when it is there, without ever waiting in a thread.

Level-triggered: every call reads the state from the hardware, sends the command if that was not done yet, and answers
``DONE`` or ``PollAfter``. What was sent, and when, is in ``task.memory``, so another conductor can go on with it.
"""

import contextlib
import time
from functools import partial

from ingot.common import errors, states
from ingot.common.waits import Wait
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.interfaces.results import Phase
from ingot.drivers.interfaces.task import Task

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 5.0


def ensure(task: Task, target: str) -> results.Result:
    """Bring the machine to ``power on``, ``power off`` or, with its operating system's help, ``soft power off``.

    :raises StepFailed: it did not get there within ``[conductor] power_state_change_timeout``.
    :raises HardwareError: the BMC refuses. One that stops answering after it accepted the command is given that time
        too: many restart their network together with the machine.
    """
    expected = states.POWER_OFF if target == states.SOFT_POWER_OFF else target
    sent = task.memory.get("power", {})
    if sent.get("target") != target:
        if read_power_state(task) == expected:
            return results.DONE
        _start(task, target)
        sent = task.memory["power"] = {"target": target, "at": time.time()}
    waited = max(0.0, time.time() - sent["at"])
    expired = waited >= task.conf.conductor.power_state_change_timeout
    try:
        state = read_power_state(task)
    except errors.HardwareUnreachable:
        if expired:
            raise
        state = None
    if state == expected:
        del task.memory["power"]
        return results.DONE
    if expired:
        late = f"{waited:.0f} s after the command {target!r} ([conductor] power_state_change_timeout)"
        raise errors.StepFailed(f"the machine is still in state {state!r} {late}")
    return _poll_after(waited, sent["at"] + task.conf.conductor.power_state_change_timeout)


def _start(task: Task, target: str) -> None:
    """Send the command; a machine that boots by it may have another network address than before."""
    if target in (states.POWER_ON, states.REBOOT):
        task.set(boot_address=None)
        task.consoles.note_boot(task.node.uuid)
        if task.node.boot_config.get("target") == "volume":
            task.save()  # written later, it would take from the machine the ticket that it is given as it boots
    get_interface(task, PowerInterface).start_power_change(task, target)


def _poll_after(waited: float, until: float) -> results.PollAfter:
    return results.PollAfter(min(_FIRST_PAUSE + waited / 4, _LONGEST_PAUSE), waits_for=Wait.POWER, until=until)


def read_power_state(task: Task) -> str | None:
    """Return the power state as the hardware has it, and note it in the node."""
    state = get_interface(task, PowerInterface).get_power_state(task)
    if state != task.node.power_state and not task.shared:
        task.set(power_state=state)
    return state


def stays_on(task: Task) -> bool:
    """Return whether the machine must not be switched off (``disable_power_off``), or cannot be."""
    return task.node.disable_power_off or not get_interface(task, PowerInterface).switches


def power_off(task: Task) -> results.Result:
    """Switch the machine off. One that stays on is left as it is; :func:`power_on` resets it."""
    return results.DONE if stays_on(task) else ensure(task, states.POWER_OFF)


def switch_off(task: Task) -> None:
    """Switch the machine off without waiting for it: the conductor does that when the flow has ended.

    :raises HardwareError: the BMC refuses, or does not answer.
    """
    _start(task, states.POWER_OFF)
    is_off = False
    with contextlib.suppress(errors.HardwareUnreachable):  # many restart their network together with the machine
        is_off = read_power_state(task) == states.POWER_OFF
    if not is_off:
        request = {"target": states.POWER_OFF, "keeps_error": True, "asked_by": task.node.request.get("asked_by", {})}
        task.set(power_request=request, target_power_state=states.POWER_OFF)


def soft_power_off(task: Task) -> results.Result:
    """Ask the operating system to shut down, and switch off when it has not by the deadline, or cannot be asked.

    :raises HardwareUnreachable: the BMC does not answer, which tells nothing about how it can be done.
    """
    if stays_on(task):
        return results.DONE
    forced = task.memory.get("power", {}).get("target") == states.POWER_OFF
    power = get_interface(task, PowerInterface)
    if forced or states.SOFT_POWER_OFF not in power.get_supported_power_states(task):
        return ensure(task, states.POWER_OFF)
    try:
        return ensure(task, states.SOFT_POWER_OFF)
    except errors.HardwareUnreachable:
        raise
    except (errors.StepFailed, errors.HardwareError):
        return ensure(task, states.POWER_OFF)


def watch_off(task: Task, patience: float) -> results.Result:
    """Wait until a machine that is shutting itself down is off; after ``patience`` seconds switch it off."""
    if stays_on(task):
        return results.DONE
    waited = time.time() - task.memory.setdefault("watched_since", time.time())
    if waited >= patience or "power" in task.memory:
        return ensure(task, states.POWER_OFF)
    is_off = read_power_state(task) == states.POWER_OFF
    return results.DONE if is_off else _poll_after(waited, task.memory["watched_since"] + patience)


def power_on(task: Task) -> results.Result:
    """Boot the machine: switch it on, or reset it if it may not be switched off before."""
    power = get_interface(task, PowerInterface)
    if not power.switches:
        return power.restart(task)
    if not task.node.disable_power_off or task.memory.get("reset"):
        return ensure(task, states.POWER_ON)
    if read_power_state(task) == states.POWER_ON:
        _start(task, states.REBOOT)
        task.memory["reset"] = True
    return ensure(task, states.POWER_ON)


def reboot(task: Task, between: Phase | None = None) -> results.Result:
    """Switch the machine off and on again.

    :param between: what to do while the machine is off; called as a phase of ``results.run_phases``.
    """
    return results.run_phases(task, power_off, *([between] if between else []), power_on)


_PHASES: dict[str, tuple[Phase, ...]] = {
    states.POWER_ON: (partial(ensure, target=states.POWER_ON),),
    states.POWER_OFF: (partial(ensure, target=states.POWER_OFF),),
    states.SOFT_POWER_OFF: (partial(ensure, target=states.SOFT_POWER_OFF),),
    states.REBOOT: (power_off, power_on),
    states.SOFT_REBOOT: (partial(ensure, target=states.SOFT_POWER_OFF), partial(ensure, target=states.POWER_ON)),
}


def change(task: Task, target: str) -> results.Result:
    """Do exactly what a user requested: a soft change that does not work in time fails, it is not forced.

    :param target: ``power on``, ``power off``, ``rebooting``, ``soft power off`` or ``soft rebooting``.
    :raises Invalid: the machine's power interface does not do this, or the node must not be powered off.
    """
    power = get_interface(task, PowerInterface)
    supported = power.get_supported_power_states(task)
    if target not in _PHASES or target not in supported:
        allowed = f"This machine's power interface has: {', '.join(supported)}."
        raise errors.Invalid(field="target", value=target, allowed=allowed)
    if not power.switches:
        return power.restart(task)
    if task.node.disable_power_off and target not in (states.POWER_ON, states.REBOOT):
        allowed = "Powering off is disabled for this node (disable_power_off)."
        raise errors.Invalid(field="target", value=target, allowed=allowed)
    return results.run_phases(task, *_PHASES[target])
