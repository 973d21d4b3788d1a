"""What all Redfish interfaces have in common."""

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.redfish.address import PROPERTIES, read_address


class RedfishInterface(BaseInterface):
    """Reads of a node where its BMC is."""

    def get_properties(self) -> dict[str, str]:
        return PROPERTIES

    def validate(self, task: Task) -> None:
        read_address(task.node.driver_info, task.conf)
