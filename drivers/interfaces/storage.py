"""The storage interface: volumes outside of the machine."""

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task


class StorageInterface(BaseInterface):
    interface_type = "storage"

    def attach_volumes(self, task: Task) -> None:
        """Let the machine reach the node's volumes. Safe to repeat."""
        raise NotImplementedError

    def detach_volumes(self, task: Task) -> None:
        """Undo :meth:`attach_volumes`. Safe to repeat."""
        raise NotImplementedError

    def should_write_image(self, task: Task) -> bool:
        """Return whether a deployment writes an image to the machine's disks; False when it boots from a volume."""
        raise NotImplementedError
