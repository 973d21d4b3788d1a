"""The management interface: boot device and other settings that the BMC keeps."""

from typing import Any

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task

BOOT_DEVICES: tuple[str, ...] = (
    "pxe",
    "disk",
    "cdrom",
    "bios",
    "safe",
    "wanboot",
    "floppy",
    "iscsiboot",
    "uefihttp",
)


class ManagementInterface(BaseInterface):
    kind = "management"

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        """Boot devices that :meth:`set_boot_device` takes."""
        raise NotImplementedError

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        """Sets what the machine boots from.

        :param persistent: for every boot from now on; otherwise for the next one only.
        :raises Invalid: the device is not supported; the message lists those that are.
        :raises HardwareError: the BMC refuses or does not answer.
        """
        raise NotImplementedError

    def get_boot_device(self, task: Task) -> dict[str, Any]:
        """``{"boot_device": name or None, "persistent": bool or None}`` as the hardware has it."""
        raise NotImplementedError

    def inject_nmi(self, task: Task) -> None:
        """Sends a non-maskable interrupt."""
        raise self.not_supported("inject_nmi")

    def get_sensors_data(self, task: Task) -> dict[str, Any]:
        """Sensor readings by type."""
        raise self.not_supported("sensors")
