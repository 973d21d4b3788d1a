"""From a request that has arrived at the embedded server to the application, which speaks WSGI, and back.

A thread is given to a request that has arrived whole, not to a connection. Answers that last keep none at all.
"""

import asyncio
import collections
import contextlib
import io
import itertools
import queue
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import IO, Any, NamedTuple, Protocol

from oslo_log import log

from ingot.api.app import Answer, collect
from ingot.api.web import consoles, streams, web_sockets
from ingot.common import errors

LOG = log.getLogger(__name__)

CONNECTION = "ingot.connection"
"""In the scope of a request: its connection."""

WRITES = "ingot.writes"
"""In the scope of a request: what writes its answer to the connection; ``gather`` makes one write of several."""

_IN_MEMORY = 256 * 1024
"""Bytes of a body that are kept in memory while it arrives; a larger one lies in a temporary file."""

_OWN_NAMES = ("CONTENT_TYPE", "CONTENT_LENGTH")

Scope = Mapping[str, Any]


class Connection(Protocol):
    """What the bridge must know of a connection.

    :ivar gone: whether the client has closed it.
    :ivar sender: the task that sends an answer which lasts; cancelled when the client is gone.
    """

    gone: bool
    sender: "asyncio.Task[Any] | None"

    def abort(self) -> None:
        """Close it without sending what waits to be sent."""

    def close(self) -> None:
        """Close it when all was sent."""

    def switch(self, answer: bytes) -> web_sockets.WebSocket:
        """Answer the request, and go on with a websocket."""


_READING = frozenset(("GET", "HEAD", "OPTIONS"))
_HEARTBEAT = "/heartbeat/"


class _Work(NamedTuple):
    """A request that has arrived.

    :param answered: of the event loop; a thread leaves its answer to :meth:`Bridge._settle` there.
    :param number: grows with each request.
    :param reads: whether it changes nothing, or is a heartbeat, for which deployments wait that keep threads.
    """

    answered: "asyncio.Future[Answer | None]"
    environ: dict[str, Any]
    connection: Connection
    number: int
    reads: bool


_Desk = queue.SimpleQueue[_Work | None]
"""What a thread takes its requests from."""


class Bridge:
    """The application for the embedded server (ASGI).

    However many requests want to change something, a quarter of the threads is left to those that only read: a thousand
    deployments that are requested at once do not keep a user from looking at one node.

    :param app: speaks WSGI.
    :param count: of threads.
    :param body_limit: returns how many bytes the body of a request to a path may have; the application refuses more.
    :param patience: seconds within which a client must take each part of an answer.
    """

    def __init__(
        self, app: Callable[..., Iterable[bytes]], count: int, body_limit: Callable[[str], int], patience: float
    ) -> None:
        self._app = app
        self._body_limit = body_limit
        self._patience = patience
        self._most_changes = max(1, count - count // 4)
        self._changes = 0  # that threads work on
        self._waiting: dict[bool, collections.deque[_Work]] = {True: collections.deque(), False: collections.deque()}
        self._idle: list[_Desk] = [queue.SimpleQueue() for _ in range(count)]
        self._answers: collections.deque[tuple[_Desk, _Work, Answer | None]] = collections.deque()
        self._is_called = False  # the event loop, for answers
        self._number = itertools.count()
        self._ended = False
        self._threads = [
            threading.Thread(target=self._run, args=(desk,), name=f"api-{n}", daemon=True)
            for n, desk in enumerate(self._idle)
        ]

    def read_load(self) -> tuple[int, int, int]:
        """Return how many threads are at work, how many there are, and how many requests wait for one."""
        return len(self._threads) - len(self._idle), len(self._threads), sum(map(len, self._waiting.values()))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads when nothing waits for them; the event loop has ended, or is the caller."""
        self._ended = True
        self._assign()

    def _run(self, desk: _Desk) -> None:
        while (work := desk.get()) is not None:
            gone = work.answered.cancelled() or work.connection.gone
            self._answers.append((desk, work, None if gone else collect(self._app, work.environ)))
            if self._is_called:
                continue  # once is enough for what several threads have answered
            self._is_called = True
            try:
                work.answered.get_loop().call_soon_threadsafe(self._settle)
            except RuntimeError:  # the loop has ended, with all connections
                self._is_called = False
                return

    # Only the event loop does what follows, so that nothing needs a lock.

    def _assign(self) -> None:
        """Give what waits to idle threads, first to the one that was busy just now: its memory is at hand."""
        while self._idle and (work := self._take_next()):
            self._changes += not work.reads
            self._idle.pop().put(work)
        while self._ended and self._idle:
            self._idle.pop().put(None)

    def _take_next(self) -> _Work | None:
        """Return the request that is to be served next, in order of arrival as far as changes may be served."""
        reads, changes = self._waiting[True], self._waiting[False]
        may_change = changes and self._changes < self._most_changes
        if may_change and not (reads and reads[0].number < changes[0].number):
            return changes.popleft()
        return reads.popleft() if reads else None

    def _settle(self) -> None:
        """Give answers to the tasks that wait for them; if a client is gone meanwhile, end its answer."""
        self._is_called = False  # before it looks: an answer that is too late for this call makes another
        while self._answers:
            desk, work, answer = self._answers.popleft()
            self._changes -= not work.reads
            self._idle.append(desk)
            if not work.answered.cancelled():
                work.answered.set_result(answer)
            elif answer and answer.close:
                answer.close()
        self._assign()

    async def __call__(self, scope: Scope, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        """Serve one request."""
        try:
            names = dict(scope["headers"])
            declared = int(names.get(b"content-length", 0))
            has_body = declared or b"transfer-encoding" in names
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) if has_body else io.BytesIO() as body:
                if has_body and not await self._receive(scope, declared, body, receive):
                    return
                environ = _build_environ(scope, body)
                answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
                reads = scope["method"] in _READING or _HEARTBEAT in scope["path"]
                self._waiting[reads].append(_Work(answered, environ, scope[CONNECTION], next(self._number), reads))
                self._assign()
                answer = await answered
            if answer:
                await self._send(scope, answer, send)
        except asyncio.CancelledError:
            return  # the client is gone, or the server stops
        except Exception:  # the edge of a request
            LOG.exception("A request could not be served to its end")

    async def _receive(self, scope: Scope, declared: int, body: IO[bytes], receive: Callable[..., Any]) -> bool:
        """Read the body; of one that is too large no more than shows that it is.

        :param declared: how many bytes it has, if the client says so.
        :returns: whether it has arrived; otherwise the client is gone.
        """
        limit = self._body_limit(scope["path"])
        if declared > limit:
            return True
        more = True
        while more and body.tell() <= limit:
            message = await receive()
            if message["type"] != "http.request":
                return False
            body.write(message["body"])
            more = message["more_body"]
        body.seek(0)
        return True

    async def _send(self, scope: Scope, answer: Answer, send: Callable[..., Any]) -> None:
        if isinstance(answer.lasting, consoles.ConsoleRelay):
            await self._converse(scope[CONNECTION], answer, answer.lasting)
            return
        start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        if answer.lasting is None:
            scope[WRITES].gather()
            await send(start)
            await send({"type": "http.response.body", "body": answer.body})
            return
        connection: Connection = scope[CONNECTION]
        connection.sender = asyncio.current_task()
        try:
            if connection.gone:
                return
            await send(start)
            async with contextlib.aclosing(answer.lasting.blocks()) as blocks:
                async for block in blocks:
                    async with asyncio.timeout(self._patience):
                        await send({"type": "http.response.body", "body": block, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except (OSError, errors.IngotError) as exc:  # the client does not take it in time, or a source fails
            LOG.warning("%s %s was not answered to its end: %r", scope["method"], scope["path"], exc)
            connection.abort()
        finally:
            connection.sender = None
            if answer.close:
                answer.close()

    async def _converse(self, connection: Connection, answer: Answer, console: consoles.ConsoleRelay) -> None:
        connection.sender = asyncio.current_task()
        try:
            if not connection.gone:
                await console.run(connection.switch(console.handshake.answer(answer.headers)))
        finally:
            connection.sender = None
            console.close()
            connection.close()


def _build_environ(scope: Scope, body: IO[bytes]) -> dict[str, Any]:
    """Return a request in the words of WSGI (PEP 3333)."""
    server, port = scope["server"] or ("localhost", None)
    address, client_port = scope["client"] or ("", "")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": urllib.parse.unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server,
        "SERVER_PORT": str(port or ""),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": address,
        "REMOTE_PORT": str(client_port),
        streams.ARRIVED: time.monotonic(),
        **({web_sockets.OFFER: True} if web_sockets.OFFER in scope else {}),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope["scheme"],
        "wsgi.input": body,
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        if b"_" in raw_name:
            continue  # it would pass for the one with a hyphen
        name, value = raw_name.decode("latin-1").upper().replace("-", "_"), raw_value.decode("latin-1")
        key = name if name in _OWN_NAMES else f"HTTP_{name}"
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    return environ
