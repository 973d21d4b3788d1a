"""Power over Redfish."""

import contextlib
from concurrent import futures

from ingot.common import errors, states
from ingot.drivers.interfaces.power import PowerInterface, Reading
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish import boot_device, connection, fields
from ingot.drivers.redfish.address import read_address
from ingot.drivers.redfish.base import RedfishInterface

_BUTTON = "PushPowerButton"
"""Does the opposite when it is sent twice."""

_RESETS: dict[str, tuple[str, ...]] = {
    states.POWER_ON: ("On", "ForceOn", _BUTTON),
    states.POWER_OFF: ("ForceOff",),
    states.REBOOT: ("ForceRestart", "PowerCycle"),
    states.SOFT_POWER_OFF: ("GracefulShutdown", _BUTTON),
}
"""Target -> types of reset that bring the machine there, the best first; not every BMC has all of them."""

_ENDS = {states.POWER_ON: states.POWER_ON, states.POWER_OFF: states.POWER_OFF, states.SOFT_POWER_OFF: states.POWER_OFF}
"""Target -> state in which there is nothing to do. A reset always does something."""

_OFF = ("Off", "PoweringOn")
_ON = ("On", "PoweringOff", "Paused")
"""A machine on its way is still in the state that it leaves."""

_CONDITIONS = 10  # that are read of a machine

_HEALTHS = ("OK", "Warning", "Critical")


def read_state(system: connection.Resource) -> str | None:
    """Return the power state of sushy's ``System``; None if the BMC does not say it."""
    return _name_state(system.power_state.value if system.power_state is not None else None)


def _name_state(state: object) -> str | None:
    return states.POWER_ON if state in _ON else states.POWER_OFF if state in _OFF else None


def _read(machine: connection.Machine) -> Reading:
    """Read what each round asks of each machine: the document alone, as sushy's classes would double its cost.

    :raises HardwareError: what stands there is no machine.
    """
    system = machine.read(machine.system_path)
    state = system.get("PowerState", {})
    if state is not None and not isinstance(state, str):
        reason = f"its PowerState is {state!r:.40}; is driver_info redfish_system_id the path of a machine?"
        raise errors.HardwareError(what=f"Reading {machine.describe(machine.system_path)}", reason=reason)
    status = fields.part(system, "Status")
    healths = (fields.text(status, key) for key in ("HealthRollup", "Health"))
    messages = (fields.text(one, "Message") for one in fields.parts(status, "Conditions"))
    return Reading(
        power_state=_name_state(state),
        health=next((one for one in healths if one in _HEALTHS), None),
        findings=tuple(filter(None, messages))[:_CONDITIONS],
        boot_mode=boot_device.name_mode(fields.text(fields.part(system, "Boot"), "BootSourceOverrideMode")),
    )


def _reset(machine: connection.Machine, target: str) -> None:
    system = machine.system
    if read_state(system) == _ENDS.get(target):
        return
    allowed = {one.value for one in system.get_allowed_reset_system_values()}
    reset = next((one for one in _RESETS[target] if one in allowed), None)
    if reset is None:
        raise errors.HardwareError(
            what=f"{target} of {machine.describe(system.path)}",
            reason=f"the BMC has {', '.join(sorted(allowed)) or 'no resets'}, of which none does that",
        )
    try:
        with contextlib.nullcontext() if reset == _BUTTON else machine.repeating():
            system.reset_system(machine.constant("ResetType", reset))
    except machine.refusals:
        # "It is on already" is refused by some, in many words; what counts is where the machine is now.
        if target not in _ENDS or read_state(machine.read_again()) != _ENDS[target]:
            raise


class RedfishPower(RedfishInterface, PowerInterface):
    def get_power_state(self, task: Task) -> str | None:
        return connection.call(task, _read).power_state

    def start_reading(self, task: Task) -> "futures.Future[Reading]":
        return connection.submit(read_address(task.node.driver_info, task.conf), task.conf, _read)

    def bmc(self, task: Task) -> str:
        return read_address(task.node.driver_info, task.conf).where

    def start_power_change(self, task: Task, target: str) -> None:
        kept = boot_device.find_kept(task) if target in (states.POWER_ON, states.REBOOT) else None

        def change(machine: connection.Machine) -> None:
            if kept is not None:
                boot_device.write(machine, kept)
            _reset(machine, target)

        connection.call(task, change)
        if target in (states.POWER_ON, states.REBOOT):
            boot_device.note_boot(task)
