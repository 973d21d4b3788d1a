"""From a request that has arrived at the embedded server to the application, which speaks WSGI, and back.

A thread is given to a request that has arrived whole, not to a connection. Answers that last keep none at all.
"""

import asyncio
import contextlib
import queue
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from typing import IO, Any, Protocol

from oslo_log import log

from ingot.api.app import Answer, collect
from ingot.api.web import streams

LOG = log.getLogger(__name__)

CONNECTION = "ingot.connection"
"""In the scope of a request: its connection."""

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


_Work = tuple["futures.Future[Answer | None]", dict[str, Any], Connection]


class Bridge:
    """The application for the embedded server (ASGI).

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
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._run, name=f"api-{n}", daemon=True) for n in range(count)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the threads that serve no request now; the others end with theirs."""
        for _thread in self._threads:
            self._work.put(None)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            answered, environ, connection = work
            if answered.set_running_or_notify_cancel():
                answered.set_result(None if connection.gone else collect(self._app, environ))

    async def __call__(self, scope: Scope, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        """Serve one request."""
        try:
            with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as body:
                if not await self._receive(scope, body, receive):
                    return
                environ = _build_environ(scope, body)
                answered: futures.Future[Answer | None] = futures.Future()
                self._work.put((answered, environ, scope[CONNECTION]))
                answer = await asyncio.wrap_future(answered)
            if answer:
                await self._send(scope, answer, send)
        except asyncio.CancelledError:
            return  # the client is gone, or the server stops
        except Exception:  # the edge of a request
            LOG.exception("A request could not be served to its end")

    async def _receive(self, scope: Scope, body: IO[bytes], receive: Callable[..., Any]) -> bool:
        """Read the body; of one that is too large no more than shows that it is.

        :returns: whether it has arrived; otherwise the client is gone.
        """
        names = dict(scope["headers"])
        declared, limit = int(names.get(b"content-length", 0)), self._body_limit(scope["path"])
        if declared > limit or (not declared and b"transfer-encoding" not in names):
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
        start = {"type": "http.response.start", "status": answer.status, "headers": answer.headers}
        if answer.lasting is None:
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
        except OSError as exc:  # also that the client does not take it in time
            LOG.warning("%s %s was not answered to its end: %r", scope["method"], scope["path"], exc)
            connection.abort()
        finally:
            connection.sender = None
            if answer.close:
                answer.close()


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
