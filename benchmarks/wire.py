"""HTTP/1.1 as the load needs it: a client that costs little processor time, and the server of the simulated agents.

General clients take a millisecond for a request, more than the service that is measured.
"""

import asyncio
import contextlib
import json
import ssl
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

LARGEST = 64 * 2**20
"""The most bytes of a head or of a line."""

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class WireError(Exception):
    """The connection broke, or no answer came in time."""


class Message(NamedTuple):
    """A request or an answer: its first line, its headers by lower-case names, its body."""

    first: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def status(self) -> int:
        return int(self.first.split(" ", 2)[1])

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def closes(self) -> bool:
        return "close" in self.headers.get("connection", "").lower()


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Read one message, whose body has a length: services that are measured send no other.

    :raises asyncio.IncompleteReadError: the connection was closed.
    """
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", 0))
    return Message(first, headers, await reader.readexactly(length) if length else b"")


class Client:
    """Keeps connections to one service open, as many as there were requests at once.

    :param url: where the service is; its certificate is not checked.
    :param headers: what every request carries.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float = 120.0) -> None:
        parts = urllib.parse.urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or 80
        self._tls = ssl._create_unverified_context() if parts.scheme == "https" else None  # noqa: S323 own certificate
        self._timeout = timeout
        self._idle: list[Connection] = []
        self.headers = {"Host": f"{self._host}:{self._port}", "Accept": "application/json", **headers}

    async def request(self, method: str, path: str, body: Any = None) -> Message:
        """Send a request and return the answer, whatever its status is.

        :raises WireError: there was none.
        """
        request = self._encode(method, path, body)
        try:
            async with asyncio.timeout(self._timeout):
                return await self._exchange(request)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as exc:  # TimeoutError is an OSError
            raise WireError(f"{method} {path}: {exc!r}") from exc

    async def _exchange(self, request: bytes) -> Message:
        """Use a connection that is open; a server may close an idle one at any time: try a fresh one then."""
        while self._idle:
            with contextlib.suppress(OSError, EOFError):
                return await self._send(self._idle.pop(), request)
        return await self._send(
            await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=LARGEST), request
        )

    async def _send(self, connection: Connection, request: bytes) -> Message:
        reader, writer = connection
        kept = False
        try:
            writer.write(request)
            answer = await read_message(reader)
            kept = not answer.closes
        finally:
            if kept:
                self._idle.append(connection)
            else:
                writer.close()
        return answer

    def _encode(self, method: str, path: str, body: Any) -> bytes:
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers.items())]
        if content or method not in ("GET", "DELETE"):
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        return "\r\n".join([*lines, "", ""]).encode() + content

    def close(self) -> None:
        for _reader, writer in self._idle:
            writer.close()
        self._idle.clear()


Answer = tuple[int, Any]
"""A status and what becomes its body in JSON; bytes are sent as they are."""

Handler = Callable[[str, str, Any], Answer]
"""Answers a method, a path with its query, and a decoded body."""


async def serve(handler: Handler) -> asyncio.Server:
    """Start a server on a port of the loopback that the kernel chooses."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await _converse(handler, reader, writer)
        writer.close()

    return await asyncio.start_server(converse, "127.0.0.1", 0, backlog=1024)


async def _converse(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        request = await read_message(reader)
        method, path, _version = request.first.split(" ")
        status, body = handler(method, path, request.json())
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} -", f"Content-Length: {len(content)}", "Content-Type: application/json", "", ""]
        writer.write("\r\n".join(lines).encode() + (b"" if method == "HEAD" else content))
        await writer.drain()


Work = Callable[[Any], Awaitable[None]]


async def each(items: Any, at_once: int, work: Work) -> None:
    """Do some work for each item, for several at once, in their order."""
    queue = iter(list(items))

    async def worker() -> None:
        for item in queue:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(at_once)))
