"""The inspect interface: finds out what a machine is made of."""

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class InspectInterface(BaseInterface):
    interface_type = "inspect"

    def inspect_hardware(self, task: Task) -> Answer:
        """Set ``properties`` of the node from the hardware, or make sure that the machine's inventory is kept.

        Of the inventory (``task.inventory``) the flow makes the rest. May answer as steps do.
        """
        raise self.not_supported("inspect_hardware")

    def clean_up(self, task: Task) -> None:
        """Remove what an inspection left in and outside of the machine. Safe to repeat.

        Called, once, when it has failed or was aborted. By default there is nothing to remove.
        """
