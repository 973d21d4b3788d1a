"""What a machine may have besides: the bios, console, firmware, inspect, rescue and storage interfaces."""

from typing import TypedDict

from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class BIOSInterface(BaseInterface):
    """Settings of the machine's firmware.

    Implementations declare :meth:`apply_configuration` and :meth:`factory_reset` as steps.
    """

    interface_type = "bios"

    def apply_configuration(self, task: Task, settings: list[Json]) -> Answer:
        """Set firmware settings: objects with ``name`` and ``value``.

        :raises Invalid: a setting the machine does not have, or a value it does not accept.
        """
        raise self.not_supported("apply_configuration")

    def factory_reset(self, task: Task) -> Answer:
        """Reset all settings to what the vendor delivered."""
        raise self.not_supported("factory_reset")

    def cache_bios_settings(self, task: Task) -> None:
        """Read the settings and hand them to ``task.keep_bios_settings``; by default there are none."""


class ConsoleInfo(TypedDict):
    """Where a console is."""

    type: str
    url: str


class ConsoleInterface(BaseInterface):
    """A way to the machine's serial console."""

    interface_type = "console"

    def start_console(self, task: Task) -> None:
        """Make the console reachable. Safe to repeat."""
        raise self.not_supported("start_console")

    def stop_console(self, task: Task) -> None:
        """Stop the console, if it was started. Flows call this when a node is taken over or deleted."""
        raise self.not_supported("stop_console")

    def get_console(self, task: Task) -> ConsoleInfo:
        """Return where the console is."""
        raise self.not_supported("get_console")


class FirmwareInterface(BaseInterface):
    """Versions of the machine's firmware. Implementations declare :meth:`update` as a step."""

    interface_type = "firmware"

    def update(self, task: Task, settings: list[Json]) -> Answer:
        """Update components: objects with ``component`` and ``url``.

        :raises Invalid: a component the machine does not have.
        """
        raise self.not_supported("update")

    def cache_firmware_components(self, task: Task) -> None:
        """Read the versions and hand them to ``task.keep_firmware_components``; by default there are none."""


class InspectInterface(BaseInterface):
    """Finds out what a machine is made of."""

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


class RescueInterface(BaseInterface):
    """Boots a machine into a ramdisk that its user can log in to."""

    interface_type = "rescue"

    def rescue(self, task: Task, password_hash: str) -> Answer:
        """Boot the rescue ramdisk on the networks of the machine's user; may answer as steps do.

        :param password_hash: of the password with which the user logs in, as crypt(3) makes it, for the ramdisk only.
        """
        raise self.not_supported("rescue")

    def unrescue(self, task: Task) -> Answer:
        """Boot the instance again; may answer as steps do."""
        raise self.not_supported("unrescue")

    def clean_up(self, task: Task) -> None:
        """Remove what a rescue left outside of the machine. Safe to repeat.

        Called also when it has failed or was aborted, and when the instance is deleted. By default there is nothing.
        """


class StorageInterface(BaseInterface):
    """Volumes outside of the machine."""

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
