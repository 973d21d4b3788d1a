"""The boot interface: what a machine gets when it boots from the network, or from where it boots its instance."""

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class BootInterface(BaseInterface):
    kind = "boot"

    def prepare_ramdisk(self, task: Task, kernel_parameters: dict[str, str]) -> None:
        """Lets the next boot start the agent; sets the boot device to network, once.

        :param kernel_parameters: what the agent must find on its kernel command line, besides the configured ones.
        """
        raise NotImplementedError

    def clean_up_ramdisk(self, task: Task) -> None:
        """Undoes :meth:`prepare_ramdisk`. Safe to repeat."""
        raise NotImplementedError

    def prepare_instance(self, task: Task) -> None:
        """Lets every boot from now on start what the user deployed: from disk, or its ramdisk from the network."""
        raise NotImplementedError

    def clean_up_instance(self, task: Task) -> None:
        """Undoes :meth:`prepare_instance`. Safe to repeat."""
        raise NotImplementedError
