"""Websockets (RFC 6455) on connections of the embedded server: what is sent and received after the handshake."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from werkzeug.datastructures import Headers

from ingot.api.auth import sessions
from ingot.common import errors, later

if TYPE_CHECKING:
    import websockets
    from websockets import frames, http11
    from websockets import protocol as ws_protocol
    from websockets import server as ws_server
else:
    websockets = later.Module("websockets")
    frames = later.Module("websockets.frames")
    http11 = later.Module("websockets.http11")
    ws_protocol = later.Module("websockets.protocol")
    ws_server = later.Module("websockets.server")

OFFER = sessions.OFFER

_LOG = logging.getLogger("websockets.server")
_LOG.setLevel(logging.WARNING)  # below, it tells of each connection twice

_LARGEST = 64 * 1024
"""Bytes of a message from a client."""

_MOST_WAITING = 16
"""Messages of a client that wait; more of them stay in the network."""

_PING_S = 20.0
_SILENCE_S = 60.0
"""Seconds after which a client that sends nothing, not even the answer to a ping, is gone."""

_PATIENCE_S = 30.0
"""Seconds in which a client must take what is sent."""

_FAREWELL_S = 5.0

_LONGEST_REASON = 123  # bytes that the end of a websocket may have


class UpgradeRequired(errors.IngotError):
    code = 426
    template = "{path} is a websocket: {reason}."


class NoWebSockets(errors.IngotError):
    code = 501
    template = (
        "The WSGI server that this API runs in has no websockets. Serve consoles with ingot-api, or ingot, which has: "
        "its own server can run beside this one, for the same database."
    )


class Gone(Exception):
    """The client has left, or takes nothing."""


class Line(Protocol):
    """A connection after its last request."""

    def write(self, data: bytes) -> None: ...

    @property
    def is_full(self) -> bool:
        """Whether the client takes less than is written."""

    async def drain(self) -> None:
        """Wait while that is so."""

    def pause(self) -> None:
        """Read nothing for now."""

    def resume(self) -> None: ...

    def close(self) -> None:
        """Close it when all was sent."""


class Handshake:
    """What a client offers, and the answer.

    :param headers: of its request.
    :param offered: whether the connection can become a websocket.
    :param subprotocol: the one that is spoken; clients need not name it.
    :raises UpgradeRequired: it offers no websocket, or none that can be used.
    :raises NoWebSockets: it does, and the server cannot.
    """

    def __init__(self, path: str, headers: Headers, offered: bool, subprotocol: str) -> None:
        if not offered:
            if "Sec-WebSocket-Key" in headers:
                raise NoWebSockets
            raise UpgradeRequired(path=path, reason="send a GET with Upgrade: websocket, as clients of websockets do")

        def select(_protocol: object, names: "Sequence[websockets.Subprotocol]") -> "websockets.Subprotocol | None":
            return next((name for name in names if name == subprotocol), None)

        known = [websockets.Subprotocol(subprotocol)]
        judge = ws_server.ServerProtocol(subprotocols=known, select_subprotocol=select, logger=_LOG)
        given = websockets.Headers([*headers.items(), ("Upgrade", "websocket")])
        self._response = judge.accept(http11.Request(path, given))
        if self._response.status_code != 101:
            reason = (self._response.body or b"").decode("utf-8", "replace").partition("\n")[0]
            raise UpgradeRequired(path=path, reason=reason.rstrip("."))

    def answer(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """Return the answer, with more headers."""
        for name, value in headers:
            if not name.startswith(b"content-"):
                self._response.headers[name.decode()] = value.decode("latin-1")
        return self._response.serialize()


class WebSocket:
    """One, for a task that reads and others that write. What its connection hears, it gives to :meth:`take`.

    :param line: to which the answer of the handshake was written.
    """

    def __init__(self, line: Line) -> None:
        self._protocol = ws_server.ServerProtocol(max_size=_LARGEST, state=ws_protocol.State.OPEN, logger=_LOG)
        self._line = line
        self._received: asyncio.Queue[bytes | str | None] = asyncio.Queue()
        self._parts: list[bytes] = []
        self._is_text = False
        self._is_paused = False
        self._taking: asyncio.Task[None] | None = None
        self._heard_at = asyncio.get_running_loop().time()
        self._ended = asyncio.Event()

    async def receive(self) -> bytes | str | None:
        """Return the next message; None: there will be none."""
        message = await self._received.get()
        if self._is_paused and self._received.qsize() < _MOST_WAITING // 2:
            self._is_paused = False
            self._resume()
        return message

    async def send(self, message: bytes | str) -> None:
        """
        :raises Gone: the client has left, or takes nothing.
        """
        self._check_open()
        if isinstance(message, bytes):
            self._protocol.send_binary(message)
        else:
            self._protocol.send_text(message.encode())
        self._flush()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._line.drain()
        except TimeoutError:
            raise Gone(f"it took nothing for {_PATIENCE_S:.0f} s") from None

    async def keep_alive(self) -> None:
        """Send pings, until the client answers them no more.

        :raises Gone: it has not for too long.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_PING_S)
            self._check_open()
            if loop.time() - self._heard_at > _SILENCE_S:
                raise Gone(f"it has sent nothing for {_SILENCE_S:.0f} s")
            self._protocol.send_ping(b"ingot")
            self._flush()

    async def close(self, code: int, reason: str) -> None:
        """Say that it ends, and why; return when the client has taken that, or after some seconds. Safe to repeat."""
        with contextlib.suppress(Gone, TimeoutError):
            self._check_open()
            self._protocol.send_close(code, reason.encode()[:_LONGEST_REASON].decode("utf-8", "ignore"))
            self._flush()
            self._is_paused = False
            self._resume()
            async with asyncio.timeout(_FAREWELL_S):
                await self._ended.wait()
        self._line.close()

    def _check_open(self) -> None:
        if self._protocol.state is not ws_protocol.State.OPEN:
            raise Gone("it has left")

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:
                self._line.write(data)
            else:
                self._line.close()
        if self._line.is_full and self._taking is None:  # of one who sends pings, and takes no answer
            self._line.pause()
            self._taking = asyncio.ensure_future(self._wait_until_taken())

    async def _wait_until_taken(self) -> None:
        await self._line.drain()
        self._taking = None
        self._resume()

    def _resume(self) -> None:
        if not self._is_paused and self._taking is None:
            self._line.resume()

    # What the connection calls

    def take(self, data: bytes) -> None:
        """Take what has arrived."""
        self._heard_at = asyncio.get_running_loop().time()
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, frames.Frame):
                self._take_frame(event)
        self._flush()
        if self._protocol.close_rcvd is not None or self._protocol.parser_exc is not None:
            self._end()

    def _take_frame(self, frame: "frames.Frame") -> None:
        if frame.opcode in frames.DATA_OPCODES:
            if frame.opcode is not frames.Opcode.CONT:
                self._is_text, self._parts = frame.opcode is frames.Opcode.TEXT, []
            if frame.data:  # of empty ones any number would be as long as a message may be
                self._parts.append(bytes(frame.data))
            if frame.fin:
                whole = b"".join(self._parts)
                self._parts = []
                self._received.put_nowait(whole.decode("utf-8", "replace") if self._is_text else whole)
                if self._received.qsize() >= _MOST_WAITING and not self._is_paused:
                    self._is_paused = True
                    self._line.pause()

    def lose(self) -> None:
        """Take note that the connection is gone."""
        self._protocol.receive_eof()
        self._end()

    def _end(self) -> None:
        self._ended.set()
        self._received.put_nowait(None)
