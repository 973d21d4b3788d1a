"""Volumes that somebody else exports: the machine's firmware attaches them, Ingot tells it which and with what."""

from ingot.common import iscsi
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.task import Task


class ExternalStorage(StorageInterface):
    """The storage interface ``external``. A node with a volume target of boot index 0 boots from it, and no image is
    written; any other is deployed to its disks."""

    def validate(self, task: Task) -> None:
        target = iscsi.boot_target(task.volume_targets)
        if target is not None:
            iscsi.boot_volume(target, task.volume_connectors)

    def attach_volumes(self, task: Task) -> None:
        """Whoever exports the volumes has let the machine in before."""

    def detach_volumes(self, task: Task) -> None:
        """The machine is off; whoever exports the volumes takes them back."""

    def should_write_image(self, task: Task) -> bool:
        return iscsi.boot_target(task.volume_targets) is None
