"""The console interface: a way to the machine's serial console."""

from typing import Any

from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.task import Task


class ConsoleInterface(BaseInterface):
    kind = "console"

    def start_console(self, task: Task) -> None:
        """Makes the console reachable. Safe to repeat."""
        raise NotImplementedError

    def stop_console(self, task: Task) -> None:
        """Ends what :meth:`start_console` began. Safe to repeat; flows call it when a node is taken over or deleted."""
        raise NotImplementedError

    def get_console(self, task: Task) -> dict[str, Any]:
        """Where the console is: ``{"type": str, "url": str}``."""
        raise NotImplementedError
