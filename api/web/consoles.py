"""Serial consoles on their way from conductors to clients: an open one is two connections, and no thread."""

import asyncio
import contextlib
import hashlib
import hmac
import ssl
import threading
from typing import Any, cast

import orjson
from oslo_config import cfg
from oslo_log import log

from ingot.api.auth.sessions import Session
from ingot.api.web import web_sockets
from ingot.common import console_frames as frames
from ingot.common import errors

LOG = log.getLogger(__name__)

SUBPROTOCOL = "ingot.console.v1"

_LONGEST_S = 3600.0
"""Seconds after which a client has to come back, and is authenticated anew."""

_CONNECTED_WITHIN_S = 10.0


class ConsoleRelays:
    """Of this process; at most ``[console] max_consoles`` at once."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._most: int = conf.console.max_consoles
        self._guard = threading.Lock()
        self._open: set[ConsoleRelay] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, console: "ConsoleRelay") -> None:
        """
        :raises ServiceUnavailable: there are as many as there may be.
        """
        with self._guard:
            if self._is_closed or len(self._open) >= self._most:
                reason = f"this process has {len(self._open)} already ([console] max_consoles)"
                raise errors.ServiceUnavailable(what="Another console", reason=reason)
            self._open.add(console)

    def leave(self, console: "ConsoleRelay") -> None:
        """Take note that one ended; safe to repeat."""
        with self._guard:
            self._open.discard(console)

    def end_session(self, session: Session) -> None:
        """End those of a session whose user logs out."""
        with self._guard:
            for console in self._open:
                if console.session == session:
                    console.end(frames.End.EXPIRED, "the session has ended; log in again")

    def close(self) -> None:
        """End all: the server stops."""
        with self._guard:
            self._is_closed = True
            for console in self._open:
                console.end(frames.End.STOPS, "this process of the API stops; come back")


class ConsoleRelay:
    """One reader of one console.

    :param handshake: of its client.
    :param node: its uuid.
    :param session: of its user, with which it ends; None: the request has credentials of its own.
    """

    def __init__(
        self, consoles: ConsoleRelays, handshake: web_sockets.Handshake, node: str, session: Session | None = None
    ) -> None:
        self.handshake = handshake
        self.session = session
        self._consoles = consoles
        self._node = node
        self._seconds = _LONGEST_S if session is None else min(session.seconds_left, _LONGEST_S)
        self._place: frames.Place | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[tuple[int, str]] | None = None
        consoles.enter(self)

    def find(self, place: frames.Place) -> None:
        """Take note of where the conductor serves it."""
        self._place = place

    def close(self) -> None:
        """Free the place of this one; the server calls it at its end, whatever the reason for that is."""
        self._consoles.leave(self)

    def end(self, code: int, reason: str) -> None:
        """End it, from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._end, code, reason)

    def _end(self, code: int, reason: str) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result((code, reason))

    async def run(self, socket: web_sockets.WebSocket) -> None:
        """Carry bytes between client and conductor until one of them has gone, or it is time to log in again."""
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        expiry = self._loop.call_later(self._seconds, self._end, frames.End.EXPIRED, "log in again, and come back")
        tasks: list[asyncio.Task[None]] = []
        try:
            arriving, leaving = await self._connect()
            with contextlib.closing(leaving):
                works = (self._show(socket, arriving), self._take(socket, leaving), self._watch(socket))
                tasks = [asyncio.ensure_future(work) for work in works]
                code, reason = await self._wait_for_end(self._ended, tasks)
                await socket.close(code, reason)
        except (OSError, errors.IngotError) as exc:
            reason = exc.message if isinstance(exc, errors.IngotError) else str(exc)
            LOG.warning("Node %s: its console cannot be had from its conductor: %s", self._node, reason)
            await socket.close(frames.End.STOPS, f"its conductor does not answer: {reason}")
        finally:
            expiry.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_end(
        self, ended: "asyncio.Future[tuple[int, str]]", tasks: "list[asyncio.Task[None]]"
    ) -> tuple[int, str]:
        """Wait for one of those that carry bytes to end; each says why, unless it has failed."""
        ends: list[asyncio.Future[Any]] = [ended, *tasks]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            return ended.result()
        failure = next((task.exception() for task in tasks if task.done()), None)
        LOG.error("Node %s: its console failed unexpectedly", self._node, exc_info=failure)
        return frames.End.STOPS, "it failed unexpectedly; come back"

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the conductor, and show the ticket.

        :raises OSError: it cannot be reached.
        :raises ServiceUnavailable: who listens there is another one.
        """
        place = cast(frames.Place, self._place)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its fingerprint is known
        async with asyncio.timeout(_CONNECTED_WITHIN_S):
            arriving, leaving = await asyncio.open_connection(
                place["host"], place["port"], ssl=context, limit=2 * frames.LARGEST
            )
        certificate = leaving.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if not hmac.compare_digest(hashlib.sha256(certificate).hexdigest(), place["fingerprint"]):
            leaving.close()
            reason = f"{place['host']} port {place['port']} has another certificate than the conductor"
            raise errors.ServiceUnavailable(what="The console", reason=reason)
        leaving.write(frames.pack_message(frames.Kind.TICKET, {"ticket": place["ticket"]}))
        return arriving, leaving

    async def _show(self, socket: web_sockets.WebSocket, arriving: asyncio.StreamReader) -> None:
        """Send the client what the machine says, and what becomes of the console."""
        try:
            while (frame := await frames.read(arriving)) is not None:
                if frame.kind == frames.Kind.BYTES:
                    await socket.send(frame.content)
                elif frame.kind == frames.Kind.MESSAGE:
                    await socket.send(frame.content.decode())
                elif frame.kind == frames.Kind.END:
                    self._end(*frames.read_end(frame.content))
                    return
            self._end(frames.End.STOPS, "its conductor is gone; come back")
        except web_sockets.Gone as exc:
            self._end(frames.End.SLOW, str(exc))
        except (frames.BadFrame, ValueError) as exc:
            LOG.warning("Node %s: its console sends what is none of its frames: %s", self._node, exc)
            self._end(frames.End.STOPS, "what its conductor sends cannot be understood; come back")

    async def _take(self, socket: web_sockets.WebSocket, leaving: asyncio.StreamWriter) -> None:
        """Give the conductor what the client types."""
        try:
            while (message := await socket.receive()) is not None:
                if isinstance(message, bytes):
                    leaving.write(frames.pack(frames.Kind.BYTES, message))
                else:
                    leaving.write(frames.pack_message(frames.Kind.MESSAGE, _read_request(message)))
                await leaving.drain()
            self._end(frames.End.DONE, "")
        except errors.Invalid as exc:
            self._end(_UNKNOWN, exc.message)
        except OSError:
            self._end(frames.End.STOPS, "its conductor is gone; come back")

    async def _watch(self, socket: web_sockets.WebSocket) -> None:
        try:
            await socket.keep_alive()
        except web_sockets.Gone as exc:
            self._end(frames.End.SLOW, str(exc))


_UNKNOWN = 1003
"""The close code for messages that cannot be understood."""


def _read_request(message: str) -> dict[str, Any]:
    """
    :raises Invalid: it is none that is known.
    """
    try:
        request = orjson.loads(message)
    except orjson.JSONDecodeError:
        request = None
    if request != {"type": "break"}:
        allowed = 'Send {"type": "break"}; what is typed is sent in binary messages.'
        raise errors.Invalid(field="text message", value=message[:80], allowed=allowed)
    return cast(dict[str, Any], request)
