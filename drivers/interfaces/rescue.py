"""The rescue interface: boots a machine into a ramdisk that its user can log in to."""

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class RescueInterface(BaseInterface):
    interface_type = "rescue"

    def rescue(self, task: Task, password_hash: str) -> Answer:
        """Boot the rescue ramdisk on the networks of the machine's user; may answer as steps do.

        :param password_hash: of the password with which the user logs in, as crypt(3) makes it. Only the ramdisk may
            get it.
        """
        raise self.not_supported("rescue")

    def unrescue(self, task: Task) -> Answer:
        """Boot the instance again; may answer as steps do."""
        raise self.not_supported("unrescue")

    def clean_up(self, task: Task) -> None:
        """Remove what a rescue left outside of the machine. Safe to repeat.

        Called also when it has failed or was aborted, and when the instance is deleted. By default there is nothing.
        """
