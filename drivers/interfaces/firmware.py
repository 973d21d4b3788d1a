"""The firmware interface: versions of the machine's firmware, and their update."""

from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class FirmwareInterface(BaseInterface):
    """Implementations declare :meth:`update` as a step."""

    interface_type = "firmware"

    def update(self, task: Task, settings: list[Json]) -> Answer:
        """Update components: objects with ``component`` and ``url``.

        :raises Invalid: a component the machine does not have.
        """
        raise self.not_supported("update")

    def cache_firmware_components(self, task: Task) -> None:
        """Read the versions and hand them to ``task.keep_firmware_components``; by default there are none."""
