"""Connections to the embedded server: how many there may be, and how much and how slowly may arrive on each.

Neither a connection nor a part of a request costs a thread, so that slow and silent clients keep no other waiting.
"""

import asyncio
import collections
import itertools
import re
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, cast

import httptools
from oslo_log import log
from uvicorn.protocols.http import httptools_impl

from ingot.api import bridge
from ingot.api.web import access_log, faults, web_sockets
from ingot.common import errors, metrics, networks

LOG = log.getLogger(__name__)

_HANDSHAKE_S = 10
"""Seconds within which a client must have agreed on TLS."""

_LONGEST_WRITE = 64 * 1024
"""Bytes of an answer up to which its head and its body are copied into one."""

_SPELLED = (
    (b"\r\ncontent-length: ", b"\r\nContent-Length: "),
    (b"\r\ntransfer-encoding: ", b"\r\nTransfer-Encoding: "),
)
"""Headers whose names uvicorn writes in small letters. GRUB knows them only as they were once spelled, and hangs."""

_HOST = re.compile(rb"([\w.~!$&'()*+,;=%-]+|\[[0-9A-Fa-f:.]+\])(:\d*)?")
_WHOLE_URL = re.compile(rb"https?://([^/?#]*)(.*)", re.IGNORECASE)


class UnreadableRequest(errors.IngotError):
    """A request that is no HTTP, or does not arrive whole."""

    code = 400
    template = "The request cannot be read: {why}."


class LateRequest(errors.IngotError):
    code = 408
    template = "The request has not arrived within {seconds} s ([api] request_timeout)."


class LongHeaders(errors.IngotError):
    code = 431
    template = "The URL and the headers have more than {limit} bytes ([api] max_header_size)."


class Limits(NamedTuple):
    """
    :param head: bytes of the URL and the headers of a request.
    :param seconds: within which a request must have arrived, and its answer must have been taken.
    :param from_address: connections from one address.
    :param at_all: connections.
    :param unlimited: networks from which there may be any number.
    """

    head: int
    seconds: float
    from_address: int
    at_all: int
    unlimited: Sequence[networks.Network]


class Guests:
    """All connections of a server.

    :ivar are_last: whether the server stops.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._by_address: dict[str, set[Connection]] = collections.defaultdict(set)
        self._count = 0
        self.are_last = False

    def __len__(self) -> int:
        return self._count

    def announce_end(self) -> None:
        """Tell each client, with its next answer, that the connection closes."""
        self.are_last = True
        for connection in itertools.chain(*self._by_address.values()):
            connection.announce_end()

    def admit(self, new: "Connection") -> bool:
        """Make room for a connection, if need be at the cost of the one that has been idle for longest.

        :returns: whether it may stay.
        """
        same, limits = self._by_address[new.address], self.limits
        is_limited = new.address != "" and not networks.contain(limits.unlimited, new.address)
        if is_limited and len(same) >= limits.from_address and not _close_idlest(same):
            LOG.debug("%s has %d connections already ([api] max_connections_per_address)", new.address, len(same))
            return False
        if self._count >= limits.at_all and not _close_idlest(itertools.chain(*self._by_address.values())):
            LOG.warning("There are %d connections, none of them idle: one from %s is closed", self._count, new.address)
            return False
        same.add(new)
        self._count += 1
        return True

    def leave(self, connection: "Connection") -> None:
        """Forget a connection; safe to repeat."""
        same = self._by_address[connection.address]
        if connection in same:
            same.remove(connection)
            self._count -= 1
        if not same:
            del self._by_address[connection.address]


def _close_idlest(connections: "Iterable[Connection]") -> bool:
    """Close the connection that has been idle for longest.

    :returns: whether one is idle.
    """
    idle = [connection for connection in connections if connection.is_idle]
    if idle:
        min(idle, key=lambda connection: connection.idle_since).abort()
    return bool(idle)


class _Writes:
    """The transport of a connection, as one answer sees it.

    uvicorn writes the head of an answer and its body one after the other, which were two system calls and two packets.
    The head is what it writes first.

    :param end: is called when the answer is complete.
    """

    def __init__(self, transport: asyncio.Transport, end: Callable[[], None]) -> None:
        self._transport = transport
        self._end = end
        self._parts: list[bytes] | None = None
        self._has_begun = False
        self.is_closing = transport.is_closing

    def gather(self) -> None:
        """Keep what is written from now on until the answer is complete, or the connection is closed."""
        self._parts = []

    def write(self, part: bytes) -> None:
        if not self._has_begun:
            self._has_begun = True
            for small, spelled in _SPELLED:
                part = part.replace(small, spelled, 1)
        if self._parts is None:
            self._transport.write(part)
        else:
            self._parts.append(part)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def end(self) -> None:
        self._flush()
        self._end()

    def _flush(self) -> None:
        parts, self._parts = self._parts or [], None
        if sum(map(len, parts)) <= _LONGEST_WRITE:
            parts = [b"".join(parts)]
        for part in parts:
            self._transport.write(part)


class Connection(httptools_impl.HttpToolsProtocol):
    """One connection, with the limits that uvicorn leaves to others.

    :param guests: all of them.
    :param tls: returns the settings of TLS for a new connection; None: it has no TLS.
    :ivar address: of the client; empty on a unix socket.
    :ivar idle_since: when its last request was answered.
    """

    def __init__(self, guests: Guests, tls: Callable[[], ssl.SSLContext | None], *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._guests = guests
        self._tls = tls
        self._below: asyncio.Transport | None = None
        self._is_open = False
        self._handshake: asyncio.Task[None] | None = None
        self._early = b""  # what arrives in the moments before and after the handshake, in which its task does not run
        self._arriving = False
        self._head = 0
        self._is_in_head = False
        self._offer = b""
        self._socket: web_sockets.WebSocket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.address = ""
        self.idle_since = time.monotonic()
        self.gone = False
        self.sender: asyncio.Task[Any] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is there, nor a part of one."""
        return self._is_open and not self._arriving and not self._is_served

    @property
    def _is_served(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def abort(self) -> None:
        """Close it without sending what waits to be sent."""
        self._guests.leave(self)
        if self._is_open:
            self.transport.abort()
        elif self._below:
            self._below.abort()

    def announce_end(self) -> None:
        """Close the connection with the answer that comes next, if it can say so."""
        if self._is_served and not self.cycle.response_started:
            self.cycle.keep_alive = False

    # As the line of a websocket.

    def switch(self, answer: bytes) -> web_sockets.WebSocket:
        """Answer the request, and go on with a websocket. It counts as the answer, which lasts."""
        self.cycle.response_started = True
        self._socket = web_sockets.WebSocket(self)
        self.write(answer)
        return self._socket

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    @property
    def is_full(self) -> bool:
        return bool(self.flow.write_paused)

    async def drain(self) -> None:
        await self.flow.drain()

    def pause(self) -> None:
        self.flow.pause_reading()

    def resume(self) -> None:
        self.flow.resume_reading()

    def close(self) -> None:
        self.transport.close()
        self._limit_taking()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let it in, after a handshake if there is to be TLS."""
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]).removeprefix("::ffff:") if isinstance(peer, tuple) else ""
        self._below = transport
        context = self._tls()
        if not self._guests.admit(self):
            transport.abort()
        elif context is None:
            self._open(transport)
        else:
            self._handshake = self.loop.create_task(self._shake_hands(transport, context))

    async def _shake_hands(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        shaking = self.loop.create_task(
            self.loop.start_tls(transport, self, context, server_side=True, ssl_handshake_timeout=_HANDSHAKE_S)
        )
        await asyncio.sleep(0)  # from now on TLS gets what arrives; uvloop cannot be kept from reading before
        early, self._early = self._early, b""
        while early:
            tls = cast(asyncio.BufferedProtocol, transport.get_protocol())
            buffer = memoryview(tls.get_buffer(len(early)))
            size = min(len(buffer), len(early))
            buffer[:size] = early[:size]
            tls.buffer_updated(size)
            early = early[size:]
        try:
            secured = await shaking
        except OSError as exc:  # those of TLS, and that it takes too long
            LOG.debug("%s does not agree on TLS: %s", self.address, exc)
            secured = None
        if secured is None:
            self.abort()
            return
        self._open(secured)
        if self._early:
            self.data_received(self._early)

    def _open(self, transport: asyncio.Transport) -> None:
        self._is_open = True
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._guests.leave(self)
        if self._timer:
            self._timer.cancel()
        if self._handshake:
            self._handshake.cancel()
        if self._is_open:
            super().connection_lost(exc)
        if self._socket:
            self._socket.lose()
        if self.sender:
            self.sender.cancel()

    def data_received(self, data: bytes) -> None:
        if self._socket:
            self._socket.take(data)
            return
        if not self._is_open:
            self._early += data
            return
        self._unset_keepalive_if_required()
        left = data
        while left:
            try:
                self.parser.feed_data(left)
                break
            except httptools.HttpParserUpgrade as exc:
                left = self._drop_offer() + left[exc.args[0] :]
            except httptools.HttpParserError as exc:
                cause = exc.__context__
                self._refuse(cause if isinstance(cause, errors.IngotError) else UnreadableRequest(why=exc))
                return
        if self._is_in_head:
            self._head += len(data)
            if self._head > self._guests.limits.head:
                self._refuse(LongHeaders(limit=self._guests.limits.head))
                return
        self._watch()

    def _drop_offer(self) -> bytes:
        """Begin again, with the head of a request without the offer to speak another protocol: it hides the body.

        The offer is remembered.

        :returns: the head.
        """
        self._offer = dict(self.headers).get(b"upgrade", b"").strip().lower()
        head = b"%s %s HTTP/%s\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        kept = (b"%s: %s\r\n" % (name, value) for name, value in self.headers if name != b"upgrade")
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        return b"".join((head, *kept, b"\r\n"))

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Answer a client that has sent all it wants to send, unless an answer is on its way: then it is gone.

        :returns: whether the connection stays open for the answer; with TLS there is no such thing.
        """
        if self._socket or not self._is_served or self.cycle.response_started:
            return None
        if self.cycle.more_body:
            length = dict(self.cycle.scope["headers"]).get(b"content-length", b"").decode("latin-1")
            awaited = f"all {length} bytes" if length else "its last chunk"
            self._refuse(UnreadableRequest(why=f"it ended before {awaited} of its body had arrived"))
            return None
        self.cycle.keep_alive = False
        return self.scheme == "http"

    # What the parser and the answers call.

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(dict[str, object], self.scope)[bridge.CONNECTION] = self
        self._arriving = self._is_in_head = True
        self._head = 0

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._guests.limits.head:
            raise LongHeaders(limit=self._guests.limits.head)
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise UnreadableRequest(why="CONNECT asks for a tunnel")
            return  # it is read again: see _drop_offer
        self._find_host()
        super().on_headers_complete()
        writes = _Writes(self.transport, self.on_response_complete)
        self.cycle.transport, self.cycle.on_response = cast(asyncio.Transport, writes), writes.end
        scope = cast(dict[str, object], self.scope)
        scope[bridge.WRITES] = writes
        offer, self._offer = self._offer, b""
        if offer == b"websocket" and self.scope["method"] == "GET":
            scope[web_sockets.OFFER] = True
        if self._guests.are_last:
            self.announce_end()

    def _find_host(self) -> None:
        """Check the host that is asked, and take it from a target that is a whole URL (RFC 9112, 3.2).

        :raises UnreadableRequest: there is none, or several.
        """
        hosts = [value for name, value in self.headers if name == b"host"]
        if whole := _WHOLE_URL.match(self.url):
            hosts = [whole[1]]
            self.url = whole[2] if whole[2].startswith(b"/") else b"/" + whole[2]
            self.headers[:] = [*(header for header in self.headers if header[0] != b"host"), (b"host", whole[1])]
        if not hosts and self.parser.get_http_version() == "1.0":
            return
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            raise UnreadableRequest(why="it needs one header Host, with a name or an address")

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._arriving = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self.idle_since = time.monotonic()
        if self._arriving and self.expect_100_continue:  # it may send the body, or may not
            self.transport.close()
        if self.transport.is_closing():
            self._limit_taking()

    def timeout_keep_alive_handler(self) -> None:
        self.abort()

    def shutdown(self) -> None:
        """Take no more requests."""
        if self._arriving:
            self._refuse(errors.ServiceUnavailable(what="This process", reason="it stops"))
        else:
            super().shutdown()

    # Limits of time, and refusals.

    def _watch(self) -> None:
        """Limit the time for what is to arrive; while a request is served, nothing is."""
        awaited = self._arriving or not self._is_served
        if awaited and self._timer is None:
            self._timer = self.loop.call_later(self._guests.limits.seconds, self._end_late)
        elif not awaited and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_late(self) -> None:
        self._timer = None
        if self._is_served and not self.cycle.more_body:  # the next request is only read when this one is answered
            self._watch()
        elif not self._arriving:
            self.abort()
        else:
            self._refuse(LateRequest(seconds=self._guests.limits.seconds))

    def _refuse(self, error: errors.IngotError) -> None:
        """Answer what is no request that could be served, and close the connection."""
        LOG.debug("%s is refused: %s", self.address, error.message)
        method, path = (self.scope.get("method"), self.url.decode("latin-1")) if self._arriving else (None, "")
        access_log.write(method or "-", path.partition("?")[0] or "-", error.code, 0, address=self.address)
        metrics.API_REQUESTS.labels(metrics.OTHER, "none", f"{error.code // 100}xx").inc()
        if self._is_served and not self.cycle.more_body:  # the request before it is answered yet
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        if not self._is_served or not self.cycle.response_started:
            self.transport.write(_render(error))
        self.transport.close()
        self._limit_taking()

    def _limit_taking(self) -> None:
        """Limit the time in which the client takes what was written before the end."""
        if self.transport.get_write_buffer_size():
            self.loop.call_later(self._guests.limits.seconds, self.transport.abort)


def _render(error: errors.IngotError) -> bytes:
    """Return an error as a whole answer, for a request that no application has seen."""
    body = faults.build_body(error, handled=False)
    head = (
        f"HTTP/1.1 {error.code} {HTTPStatus(error.code).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body
