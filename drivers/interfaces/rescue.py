"""The rescue interface: boots a machine into a ramdisk that its user can log in to."""

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class RescueInterface(BaseInterface):
    kind = "rescue"

    def rescue(self, task: Task, password_hash: str) -> results.Result | None:
        """Boots the rescue ramdisk on the networks of the machine's user; may answer as steps do.

        :param password_hash: of the password with which the user logs in, as crypt(3) makes it.
            Nobody but the ramdisk may get to see it.
        """
        raise NotImplementedError

    def unrescue(self, task: Task) -> results.Result | None:
        """Boots the instance again; may answer as steps do."""
        raise NotImplementedError

    def clean_up(self, task: Task) -> None:
        """Removes what a rescue left outside of the machine: also when it has failed or was aborted, and when the
        instance is deleted. Safe to repeat."""
        raise NotImplementedError
