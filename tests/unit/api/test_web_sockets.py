"""Websockets: clients that send what costs memory and nothing else."""

import asyncio

import testtools
from websockets import frames

from ingot.api.web import web_sockets


def frame(opcode: frames.Opcode, data: bytes = b"", fin: bool = True) -> bytes:
    return frames.Frame(opcode, data, fin).serialize(mask=True)


class SlowLine:
    """A connection whose client takes nothing after some bytes, until it does."""

    def __init__(self) -> None:
        self.written = 0
        self.is_paused = False
        self._taken = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self.written > 1000 and not self._taken.is_set()

    def write(self, data: bytes) -> None:
        self.written += len(data)

    async def drain(self) -> None:
        if self.is_full:
            await self._taken.wait()

    def take(self) -> None:
        self._taken.set()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        pass


class Floods(testtools.TestCase):
    def test_one_who_takes_no_answer_to_pings_is_not_read(self) -> None:
        async def run() -> None:
            line = SlowLine()
            socket = web_sockets.WebSocket(line)
            sent = 0
            while not line.is_paused:
                self.assertLess(sent, 1000)
                socket.take(frame(frames.Opcode.PING, b"x" * 100))
                sent += 1
            self.assertLess(line.written, 1200)
            line.take()
            for _ in range(3):
                await asyncio.sleep(0)
            self.assertFalse(line.is_paused)

        asyncio.run(run())

    def test_empty_fragments_are_not_kept(self) -> None:
        async def run() -> None:
            socket = web_sockets.WebSocket(SlowLine())
            socket.take(frame(frames.Opcode.BINARY, b"a", fin=False))
            for _ in range(1000):
                socket.take(frame(frames.Opcode.CONT, fin=False))
            self.assertLessEqual(len(socket._parts), 1)
            socket.take(frame(frames.Opcode.CONT, b"b"))
            self.assertEqual(b"ab", await socket.receive())

        asyncio.run(run())
