"""The inspect interface: finds out what a machine is made of."""

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class InspectInterface(BaseInterface):
    kind = "inspect"

    def inspect_hardware(self, task: Task) -> results.Result | None:
        """Sets ``properties`` of the node from the hardware; may answer as steps do."""
        raise NotImplementedError

    def abort(self, task: Task) -> None:
        """Ends an inspection that waits."""
        raise self.not_supported("aborting an inspection")
