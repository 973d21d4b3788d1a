"""The firmware interface: versions of the machine's firmware, and their update."""

from typing import Any

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class FirmwareInterface(BaseInterface):
    """Implementations declare :meth:`update` as a step."""

    kind = "firmware"

    def update(self, task: Task, settings: list[dict[str, Any]]) -> results.Result | None:
        """Updates components: objects with ``component`` and ``url``.

        :raises Invalid: a component the machine does not have.
        """
        raise self.not_supported("update")

    def cache_firmware_components(self, task: Task) -> None:
        """Reads the versions and hands them to ``task.keep_firmware_components``; an implementation without does
        nothing."""
        raise NotImplementedError
