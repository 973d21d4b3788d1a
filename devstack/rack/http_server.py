"""A small HTTP/1.1 server on the rack's event loop: hundreds of agents, each with a port, and no threads.

Bodies are JSON. An agent that dies takes its port and its connections with it, as a machine does that loses
its power: the next client is refused, the present one is cut off.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

LOG = logging.getLogger(__name__)

MAX_HEADER = 64 * 1024
# Commands carry config drives: 64 MiB in base64.
MAX_BODY = 128 * 2**20
REASONS = {
    200: "OK",
    201: "Created",
    202: "Accepted",
    204: "No Content",
    308: "Permanent Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    412: "Precondition Failed",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
}
# Bytes that are read from a client that gets no answer, at a time.
_PIECE = 2**12


class HttpError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class CutOff(Exception):
    """The connection ends without an answer."""


class Silence(Exception):
    """The connection stays, and no answer comes."""


@dataclass
class Request:
    """An HTTP request; header names are lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body, decoded. :raises HttpError: 400 when it is not JSON."""
        try:
            return json.loads(self.body or b"{}")
        except ValueError as error:
            raise HttpError(400, f"the body is not JSON: {error}") from error


@dataclass
class Response:
    """An answer; ``body`` becomes JSON.

    :ivar raw: instead of the JSON, when it is given.
    :ivar pause: seconds between one byte and the next.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    pause: float = 0.0

    def encode(self, keep_alive: bool) -> bytes:
        body = b"" if self.status == 204 else json.dumps(self.body).encode() if self.raw is None else self.raw
        lines = [
            f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Unknown')}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            f"Connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body


Handler = Callable[[Request], Awaitable[Response]]
ErrorBody = Callable[[int, str], Any]


class HttpServer:
    """Serves one address until it is killed.

    :param handler: answers a request; it may raise HttpError.
    :param error_body: makes the body of an error's answer from its status and text.
    """

    def __init__(self, handler: Handler, error_body: ErrorBody) -> None:
        self._handler = handler
        self._error_body = error_body
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int, context: ssl.SSLContext | None = None, backlog: int = 32) -> int:
        """Listen and return the port."""
        self._server = await asyncio.start_server(
            self._serve_connection, host, port, ssl=context, limit=MAX_HEADER, backlog=backlog
        )
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def listens(self) -> bool:
        return self._server is not None

    def kill(self) -> None:
        """Stop listening and cut every connection at once."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut_off()

    def cut_off(self) -> None:
        """Cut every connection at once."""
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self._greet(writer)
            while await self._exchange(reader, writer):
                pass
        except CutOff:
            writer.transport.abort()
        except Silence:
            await self._ignore(reader)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ssl.SSLError):
            LOG.debug("a client went away")
        except asyncio.CancelledError:
            # The server was killed. asyncio would report a cancelled connection as an error of ours.
            LOG.debug("a client was cut off")
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _greet(self, writer: asyncio.StreamWriter) -> None:
        """Do what comes before the first request; CutOff and Silence end the exchange there."""

    async def _ignore(self, reader: asyncio.StreamReader) -> None:
        """Let a client wait until it gives up."""
        try:
            while await reader.read(_PIECE):
                pass
        except (ConnectionError, ssl.SSLError, asyncio.CancelledError):
            LOG.debug("a client that got no answer went away")

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a request, answer it, and say whether the connection stays."""
        try:
            request = await _read(reader)
        except HttpError as error:
            writer.write(self._error(error.status, error.message).encode(keep_alive=False))
            await writer.drain()
            return False
        if request is None:
            return False
        keep_alive = request.headers.get("connection", "").lower() != "close"
        answer = await self._answer(request)
        await _send(writer, answer.encode(keep_alive), answer.pause)
        return keep_alive

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._handler(request)
        except HttpError as error:
            return self._error(error.status, error.message)
        except (CutOff, Silence):
            raise
        except Exception as error:
            LOG.exception("%s %s failed", request.method, request.path)
            return self._error(500, repr(error))

    def _error(self, status: int, message: str) -> Response:
        return Response(self._error_body(status, message), status)


async def _send(writer: asyncio.StreamWriter, data: bytes, pause: float) -> None:
    pieces = (data[n : n + 1] for n in range(len(data))) if pause else (data,)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    request_line, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    try:
        method, target, _ = request_line.split(" ")
        length = int(headers.get("content-length", "0"))
    except ValueError as error:
        raise HttpError(400, "malformed request") from error
    if "transfer-encoding" in headers:
        raise HttpError(400, "chunked bodies are not supported: send Content-Length")
    if not 0 <= length <= MAX_BODY:
        raise HttpError(413, f"the body may have at most {MAX_BODY} bytes")
    body = await reader.readexactly(length)
    parts = urlsplit(target)
    return Request(method, unquote(parts.path), dict(parse_qsl(parts.query)), headers, body)
