"""The bios interface: settings of the machine's firmware."""

from ingot.common.json_types import Json
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Task


class BIOSInterface(BaseInterface):
    """Implementations declare :meth:`apply_configuration` and :meth:`factory_reset` as steps."""

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
