"""The storage interface: volumes outside of the machine."""

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class StorageInterface(BaseInterface):
    interface_type = "storage"

    def attach_volumes(self, task: Task) -> None:
        """Let the machine reach the node's volumes. Safe to repeat."""
        raise NotImplementedError

    def detach_volumes(self, task: Task) -> Answer:
        """Undo :meth:`attach_volumes`. Safe to repeat; as a phase of steps, it is called until it is done."""
        raise NotImplementedError

    def should_write_image(self, task: Task) -> bool:
        """Return whether a deployment writes an image to the machine's disks; False when it boots from a volume."""
        raise NotImplementedError

    def boots_by_loader(self, task: Task) -> bool:
        """Return whether the machine boots from a volume that the loader attaches, which is iPXE."""
        return not self.should_write_image(task)
