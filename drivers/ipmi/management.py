"""What a BMC keeps beside the power, over IPMI: how the machine boots, its light, its log, the BMC itself."""

import time

from ingot.common import errors
from ingot.common.waits import Wait
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.management import BootDevice, Indicator, ManagementInterface
from ingot.drivers.interfaces.sensors import Sensor
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi import boot_flags, readings
from ingot.drivers.ipmi.base import IPMIInterface, call, converse
from ingot.drivers.ipmi.session import Request

WARM: base.ArgsInfo = {
    "warm": {"description": "Whether only the BMC's software restarts. Default: true.", "required": False}
}

_STATUS = Request(0x00, 0x01, least=3)
_DEVICE_ID = Request(0x06, 0x01)
_RESETS = {True: Request(0x06, 0x03), False: Request(0x06, 0x02)}
"""Warm, the BMC's software, and cold, all of it."""

_LIGHT = Indicator("chassis", "identify", False, ("off", "on"))
_IDENTIFY = {"off": Request(0x00, 0x04, (0,)), "on": Request(0x00, 0x04, (0, 1))}
_KNOWS_LIGHT, _LIGHT_IS_ON = 0x40, 0x30

_LONGEST_FAREWELL = 20.0  # seconds that a BMC may go on answering after the command to restart


def send_reset(task: Task, warm: object) -> None:
    """Have the BMC restart.

    :raises Invalid: ``warm`` is no Boolean.
    """
    if not isinstance(warm, bool):
        raise errors.Invalid(field="warm", value=warm, allowed="true or false.")
    call(task, _RESETS[warm])


class IPMIManagement(IPMIInterface, ManagementInterface):
    def get_supported_boot_devices(self, task: Task) -> list[str]:
        return list(boot_flags.DEVICES)

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        boot_flags.write_device(task, device, persistent)

    def get_boot_device(self, task: Task) -> BootDevice:
        return boot_flags.read_device(task)

    def set_boot_mode(self, task: Task, mode: str) -> None:
        boot_flags.write_mode(task, mode)

    def inject_nmi(self, task: Task) -> None:
        call(task, Request(0x00, 0x02, (0x04,)))

    def get_supported_indicators(self, task: Task) -> list[Indicator]:
        return [_LIGHT]

    def get_sensors(self, task: Task) -> list[Sensor]:
        return converse(task, readings.read_sensors, readings.FACTOR)

    def get_indicator_state(self, task: Task, indicator: Indicator) -> str:
        """
        :raises HardwareError: the BMC does not tell.
        """
        state = call(task, _STATUS)[0][2]
        if not state & _KNOWS_LIGHT:
            raise errors.HardwareError(what="Reading the light of the chassis", reason="the BMC does not tell of it")
        return "on" if state & _LIGHT_IS_ON else "off"

    def set_indicator_state(self, task: Task, indicator: Indicator, state: str) -> None:
        call(task, _IDENTIFY[state])

    @base.service_step(requires_ramdisk=False)
    @base.clean_step(priority=0, requires_ramdisk=False)
    def clear_sel(self, task: Task) -> None:
        """Clear the BMC's event log."""
        converse(task, readings.clear_log, readings.FACTOR)

    @base.service_step(argsinfo=WARM, requires_ramdisk=False)
    @base.clean_step(priority=0, argsinfo=WARM, requires_ramdisk=False)
    def reset_bmc(self, task: Task, warm: bool = True) -> results.Result:
        """Restart the BMC and wait until it answers again.

        :raises HardwareUnreachable: it does not in time.
        """
        memory = task.memory
        if "sent" not in memory:
            send_reset(task, warm)
            memory["sent"] = time.time()
        waited, limit = time.time() - memory["sent"], self.conf.ipmi.bmc_restart_timeout
        try:
            call(task, _DEVICE_ID)
        except errors.HardwareUnreachable:
            if waited >= limit:
                raise
            memory["was_away"] = True
        else:
            # Until it goes away it answers, and one that was back in no time was perhaps not seen away.
            if "was_away" in memory or waited >= _LONGEST_FAREWELL:
                return results.DONE
        return results.PollAfter(min(1.0 + waited / 4, 10.0), waits_for=Wait.HARDWARE, until=memory["sent"] + limit)
