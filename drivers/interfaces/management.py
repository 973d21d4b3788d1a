"""The management interface: boot device and other settings that the BMC keeps."""

from typing import NamedTuple, TypedDict

from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.sensors import Sensor
from ingot.drivers.interfaces.task import Task

BOOT_DEVICES: tuple[str, ...] = ("pxe", "disk", "cdrom", "bios", "safe", "wanboot", "floppy", "iscsiboot", "uefihttp")

INDICATOR_STATES: tuple[str, ...] = ("off", "on", "blinking")

VIRTUAL_MEDIA: tuple[str, ...] = ("disk", "cdrom", "floppy")


class BootDevice(TypedDict):
    """What a machine boots from, as the hardware has it; None: not known."""

    boot_device: str | None
    persistent: bool | None


class Indicator(NamedTuple):
    """A light on a machine.

    :param component: the part of the machine that it belongs to: ``system``, ``chassis``, ``disk`` ...
    :param name: unique within the component.
    :param readonly: whether it can only be read.
    :param states: those of :data:`INDICATOR_STATES` that it knows.
    """

    component: str
    name: str
    readonly: bool
    states: tuple[str, ...]


class ManagementInterface(BaseInterface):
    interface_type = "management"

    def get_supported_boot_devices(self, task: Task) -> list[str]:
        """Return the boot devices that :meth:`set_boot_device` accepts."""
        raise NotImplementedError

    def set_boot_device(self, task: Task, device: str, persistent: bool = False) -> None:
        """Set what the machine boots from.

        :param persistent: for every boot from now on; otherwise for the next one only.
        :raises Invalid: the device is not supported; the message lists those that are.
        :raises HardwareError: the BMC refuses or does not answer.
        """
        raise NotImplementedError

    def get_boot_device(self, task: Task) -> BootDevice:
        """Return what the machine boots from."""
        raise NotImplementedError

    def inject_nmi(self, task: Task) -> None:
        """Send a non-maskable interrupt."""
        raise self.not_supported("inject_nmi")

    def set_boot_mode(self, task: Task, mode: str) -> None:
        """Set which firmware the machine boots with from its next boot on.

        :param mode: ``uefi`` or ``bios``.
        :raises HardwareError: the BMC refuses or does not answer; so with all methods below.
        """
        raise self.not_supported("set_boot_mode")

    def set_secure_boot(self, task: Task, enabled: bool) -> None:
        """Let the machine boot only what is signed, or anything, from its next boot on."""
        raise self.not_supported("set_secure_boot")

    def get_supported_indicators(self, task: Task) -> list[Indicator]:
        """Return the lights that the machine has."""
        raise self.not_supported("get_supported_indicators")

    def get_indicator_state(self, task: Task, indicator: Indicator) -> str:
        """Return one of :data:`INDICATOR_STATES`.

        :param indicator: one of those that :meth:`get_supported_indicators` returns.
        """
        raise self.not_supported("get_indicator_state")

    def set_indicator_state(self, task: Task, indicator: Indicator, state: str) -> None:
        """Switch a light.

        :param indicator: as in :meth:`get_indicator_state`, not one that is readonly.
        :param state: one of the indicator's.
        """
        raise self.not_supported("set_indicator_state")

    def attach_virtual_media(self, task: Task, device_type: str, image_url: str, source: str | None) -> None:
        """Show the machine an image as if it were in a drive of its own.

        :param device_type: one of :data:`VIRTUAL_MEDIA`.
        :param source: ``http``, ``local`` or ``swift``: from where the BMC gets the image; None for the usual.
        """
        raise self.not_supported("attach_virtual_media")

    def detach_virtual_media(self, task: Task, device_types: list[str]) -> None:
        """Remove images from the drives of these types. Safe to repeat, and where there is none."""
        raise self.not_supported("detach_virtual_media")

    def get_virtual_media(self, task: Task) -> list[Json]:
        """Return what is in the drives: objects as the BMC has them."""
        raise self.not_supported("get_virtual_media")

    def get_sensors(self, task: Task) -> list[Sensor]:
        """Return the machine's sensors with what they read now; what the BMC does not tell is left out."""
        raise self.not_supported("get_sensors")
