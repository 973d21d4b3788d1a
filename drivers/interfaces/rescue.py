"""The rescue interface: boots a machine into a ramdisk that its user can log in to."""

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class RescueInterface(BaseInterface):
    kind = "rescue"

    def rescue(self, task: Task) -> results.Result | None:
        """Boots the rescue ramdisk with the password in ``instance_info.rescue_password``; may answer as steps do."""
        raise NotImplementedError

    def unrescue(self, task: Task) -> results.Result | None:
        """Boots the instance again; may answer as steps do."""
        raise NotImplementedError

    def clean_up(self, task: Task) -> None:
        """Removes what a rescue left outside of the machine. Safe to repeat."""
        raise NotImplementedError
