"""The inspect interface: finds out what a machine is made of."""

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class InspectInterface(BaseInterface):
    kind = "inspect"

    def inspect_hardware(self, task: Task) -> results.Result | None:
        """Sets ``properties`` of the node from the hardware, or sees to it that the inventory of the machine is kept
        (``task.inventory``), of which the flow makes the rest; may answer as steps do."""
        raise NotImplementedError

    def clean_up(self, task: Task) -> None:
        """Removes what an inspection left in and outside of the machine. Called, once, when it has failed or was
        aborted; safe to repeat."""
        raise NotImplementedError
