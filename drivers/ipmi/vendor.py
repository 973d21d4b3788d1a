"""What the API has no place of its own for, over IPMI, as methods of nodes: sensors, event log, raw requests."""

from oslo_log import log

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.sensors import ReadsSensors
from ingot.drivers.interfaces.task import Task
from ingot.drivers.interfaces.vendor import node_method
from ingot.drivers.ipmi import management, readings
from ingot.drivers.ipmi.base import IPMIInterface, call, converse
from ingot.drivers.ipmi.session import Request

LOG = log.getLogger(__name__)

_RAW: base.ArgsInfo = {
    "raw_bytes": {"description": "Network function, command and data, as 0x00 0x01.", "required": True}
}
_MOST_BYTES = 250


def _parse_raw(text: object) -> Request:
    """Return a request written as bytes, in hexadecimal or decimal.

    :raises Invalid: it is none.
    """
    try:
        values = [int(word, 0) for word in text.split()] if isinstance(text, str) else []
    except ValueError:
        values = []
    if not 2 <= len(values) <= _MOST_BYTES or any(not 0 <= value <= 0xFF for value in values):
        allowed = "Bytes: network function, command and data, as '0x00 0x01'."
        raise errors.Invalid(field="raw_bytes", value=text, allowed=allowed)
    return Request(values[0], values[1], tuple(values[2:]))


class IPMIVendor(IPMIInterface, ReadsSensors):
    @base.service_step(argsinfo=_RAW, requires_ramdisk=False)
    @base.deploy_step(priority=0, argsinfo=_RAW)
    @base.clean_step(priority=0, argsinfo=_RAW, requires_ramdisk=False)
    @node_method("POST", description="Send a request to the BMC. Required: raw_bytes.", returns_result=False)
    def send_raw(self, task: Task, raw_bytes: str) -> None:
        """Send a request; what the BMC answers goes into the log."""
        request = _parse_raw(raw_bytes)
        (answer,) = call(task, request)
        # Without its data, which may be a password.
        LOG.info("Node %s: IPMI request %#x/%#x is answered %r", task.node.uuid, *request[:2], answer.hex(" "))

    @base.service_step(argsinfo=management.WARM, requires_ramdisk=False)
    @base.clean_step(priority=0, argsinfo=management.WARM, requires_ramdisk=False)
    @node_method("POST", description="Restart the BMC. Optional: warm (default: true).", returns_result=False)
    def bmc_reset(self, task: Task, warm: bool = True) -> None:
        """Restart the BMC, without waiting for it; the step ``reset_bmc`` of the management interface waits."""
        management.send_reset(task, warm)

    @node_method("GET", description="Events in the BMC's log (SEL).", exclusive=False)
    def get_sel(self, task: Task) -> list[Json]:
        return converse(task, readings.read_log, readings.FACTOR)

    @node_method("POST", "DELETE", description="Clear the BMC's log (SEL).", returns_result=False)
    def clear_sel(self, task: Task) -> None:
        converse(task, readings.clear_log, readings.FACTOR)
