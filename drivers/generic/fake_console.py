"""The serial console of a machine that exists only in the database: it repeats what is typed."""

from ingot.drivers.interfaces import console, serial_stream
from ingot.drivers.interfaces.shared_console import MakeStream
from ingot.drivers.interfaces.task import Task

_MOST = 200  # bytes at a time, as on a real line


class EchoStream(serial_stream.SerialStream):
    """Says who it is, and then what is typed; a break is ``<break>``."""

    def __init__(self, node: str) -> None:
        super().__init__(f"fake machine {node}", patience=0)
        self._node = node

    async def attend(self) -> None:
        self.note_connection()
        self.hear(f"fake machine {self._node}\r\n".encode())
        while not self.is_closing:
            self.woken.clear()
            while (typed := self.take_typed(_MOST)) is not None:
                self.hear(typed or b"<break>")
            await self.woken.wait()


class FakeConsole(console.StreamConsole):
    def find_stream(self, task: Task) -> MakeStream:
        node = task.node.uuid
        return lambda _take_over: EchoStream(node)

    def get_console(self, task: Task) -> console.ConsoleInfo:
        return {"type": "fake", "url": f"fake://{task.node.uuid}"}
