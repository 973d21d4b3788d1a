"""The bios interface: settings of the machine's firmware."""

from typing import Any

from ingot.drivers import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class BIOSInterface(BaseInterface):
    """Implementations declare :meth:`apply_configuration` and :meth:`factory_reset` as steps."""

    kind = "bios"

    def apply_configuration(self, task: Task, settings: list[dict[str, Any]]) -> results.Result | None:
        """Sets firmware settings: objects with ``name`` and ``value``.

        :raises Invalid: a setting the machine does not have, or a value it does not take.
        """
        raise self.not_supported("apply_configuration")

    def factory_reset(self, task: Task) -> results.Result | None:
        """Brings all settings back to what the vendor delivered."""
        raise self.not_supported("factory_reset")

    def cache_bios_settings(self, task: Task) -> None:
        """Reads the settings and hands them to ``task.keep_bios_settings``; an implementation without does nothing."""
        raise NotImplementedError
