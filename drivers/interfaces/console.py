"""The console interface: a way to the machine's serial console."""

from typing import TypedDict

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.task import Task


class ConsoleInfo(TypedDict):
    """Where a console is."""

    type: str
    url: str


class ConsoleInterface(BaseInterface):
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
