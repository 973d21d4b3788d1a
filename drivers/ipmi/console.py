"""The console interface ``ipmitool-sol``: serial over LAN, for all who read it, without an external program."""

from typing import TYPE_CHECKING

from ingot.common import errors, later
from ingot.drivers.interfaces import console
from ingot.drivers.interfaces.shared_console import MakeStream
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi import base

if TYPE_CHECKING:
    from ingot.drivers.ipmi import serial_over_lan
else:
    serial_over_lan = later.Module("ingot.drivers.ipmi.serial_over_lan")


class SerialOverLanConsole(base.IPMIInterface, console.StreamConsole):
    """Nodes of other hardware types need the properties of IPMI beside their own."""

    def validate(self, task: Task) -> None:
        if not task.node.driver_info.get("ipmi_address"):
            why = "the console interface ipmitool-sol speaks IPMI, whatever the node's driver"
            raise errors.MissingParameter(where="driver_info", names=f"ipmi_address ({why})")
        super().validate(task)

    def find_stream(self, task: Task) -> MakeStream:
        self.validate(task)
        conf = task.conf
        address = base.read_address(task.node.driver_info, conf)
        return lambda take_over: serial_over_lan.SerialOverLan(address, conf, take_over)
