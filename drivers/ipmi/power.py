"""Power over IPMI 2.0 (codes: chapter 28 of the IPMI specification)."""

from concurrent import futures

from ingot.common import states
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.interfaces.power import PowerInterface, Reading
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi import boot_flags, session
from ingot.drivers.ipmi.base import IPMIInterface, call, read_address
from ingot.drivers.ipmi.session import Request

_CHASSIS = 0x00
_CHASSIS_STATUS = Request(_CHASSIS, 0x01, least=3)
_CHASSIS_CONTROL = {
    states.POWER_OFF: Request(_CHASSIS, 0x02, (0x00,)),
    states.POWER_ON: Request(_CHASSIS, 0x02, (0x01,)),
    states.REBOOT: Request(_CHASSIS, 0x02, (0x03,)),
    states.SOFT_POWER_OFF: Request(_CHASSIS, 0x02, (0x05,)),
}

# What a chassis status says beside the power (table 28-3): byte, bit, what is wrong, how bad that is.
_FINDINGS = (
    (0, 0x02, "power overload", "Critical"),
    (0, 0x08, "fault in the power supply", "Critical"),
    (0, 0x10, "power control fault", "Critical"),
    (2, 0x08, "cooling or fan fault", "Critical"),
    (2, 0x04, "drive fault", "Warning"),
)


async def _read_status(bmc: session.Address, timeout: float) -> Reading:
    return _parse_status((await session.call_async(bmc, timeout, _CHASSIS_STATUS))[0])


def _parse_status(status: bytes) -> Reading:
    """Return what the answer to a request for the chassis status says."""
    findings = [(what, health) for byte, bit, what, health in _FINDINGS if status[byte] & bit]
    health = next((level for level in ("Critical", "Warning") if level in dict(findings).values()), "OK")
    power_state = states.POWER_ON if status[0] & 1 else states.POWER_OFF
    return Reading(power_state, health, tuple(what for what, _ in findings))


class IPMIPower(IPMIInterface, PowerInterface):
    def get_power_state(self, task: Task) -> str | None:
        return _parse_status(call(task, _CHASSIS_STATUS)[0]).power_state

    def start_reading(self, task: Task) -> "futures.Future[Reading]":
        bmc = read_address(task.node.driver_info, task.conf)
        return bmc_loop.submit(_read_status(bmc, task.conf.ipmi.command_retry_timeout))

    def bmc(self, task: Task) -> str:
        return read_address(task.node.driver_info).where

    def start_power_change(self, task: Task, target: str) -> None:
        first = boot_flags.read_kept(task) if target in (states.POWER_ON, states.REBOOT) else ()
        call(task, *first, _CHASSIS_CONTROL[target])
