"""The console interface: a way to the machine's serial console."""

from typing import TypedDict

from ingot.common import errors
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.shared_console import MakeStream
from ingot.drivers.interfaces.task import Task

WEBSOCKET = "websocket"
"""The type of consoles that the API serves itself."""


class ConsoleInfo(TypedDict):
    """Where a console is.

    :ivar url: of the type :data:`WEBSOCKET` a path, which the API completes.
    """

    type: str
    url: str


class ConsoleInterface(BaseInterface):
    interface_type = "console"

    def start_console(self, task: Task) -> None:
        """Make the console reachable. Safe to repeat."""
        raise self.not_supported("start_console")

    def resume_console(self, task: Task) -> None:
        """Have the console be reachable again that was before. Flows call this, and do not wait for the BMC."""
        self.start_console(task)

    def stop_console(self, task: Task) -> None:
        """Stop the console, if it was started. Flows call this when a node is taken over or deleted."""
        raise self.not_supported("stop_console")

    def find_stream(self, task: Task) -> MakeStream:
        """Return what makes streams to the machine's serial console, for those who read it by way of the API.

        :raises Invalid: it has none, or lacks something.
        """
        allowed = "It must be one with a stream, as ipmitool-sol for machines whose BMC speaks IPMI."
        raise errors.Invalid(field="console_interface", value=task.node.console_interface, allowed=allowed)

    def get_console(self, task: Task) -> ConsoleInfo:
        """Return where the console is."""
        raise self.not_supported("get_console")


class StreamConsole(ConsoleInterface):
    """One whose stream the conductor reads, for all who come by way of the API; :meth:`find_stream` is what differs."""

    def start_console(self, task: Task) -> None:
        task.consoles.start(task.node.uuid, self.find_stream(task))

    def resume_console(self, task: Task) -> None:
        """Begin to open it; the conductor's keeper goes on if that fails."""
        task.consoles.keep(task.node.uuid, self.find_stream(task))

    def stop_console(self, task: Task) -> None:
        task.consoles.stop(task.node.uuid, "the console was switched off")

    def get_console(self, task: Task) -> ConsoleInfo:
        return {"type": WEBSOCKET, "url": f"/ingot/v1/nodes/{task.node.uuid}/console"}
