"""A reader of serial consoles: the client of the library websockets."""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import websockets
from websockets.sync import client

from tests import patience

LIMIT = patience.seconds(30)

SUBPROTOCOL = websockets.Subprotocol("ingot.console.v1")


class Terminal:
    """One open console.

    :ivar said: what the machine has said.
    :ivar statuses: the messages about it.
    """

    def __init__(self, connection: client.ClientConnection) -> None:
        self.connection = connection
        self.said = b""
        self.statuses: list[dict[str, Any]] = []

    def type(self, text: str) -> None:
        self.connection.send(text.encode())

    def take(self, limit: float = LIMIT) -> None:
        """Take the next message.

        :raises TimeoutError: there is none in time.
        """
        message = self.connection.recv(limit)
        if isinstance(message, bytes):
            self.said += message
        else:
            self.statuses.append(json.loads(message))

    def read_until(self, text: str) -> bytes:
        """Read until something was said; return what was, and forget it."""
        deadline = time.monotonic() + LIMIT
        while (at := self.said.find(text.encode())) < 0:
            self.take(max(0.1, deadline - time.monotonic()))
        end = at + len(text.encode())
        said, self.said = self.said[:end], self.said[end:]
        return said

    def wait_for(self, reason: str = "", **expected: Any) -> dict[str, Any]:
        """Return the next status that has these values, and a part of its reason; those before are forgotten."""
        deadline = time.monotonic() + LIMIT
        while True:
            while self.statuses:
                status = self.statuses.pop(0)
                if expected.items() <= status.items() and reason in (status["reason"] or ""):
                    return status
            self.take(max(0.1, deadline - time.monotonic()))

    def read_end(self) -> tuple[int, str]:
        """Return code and reason of its end."""
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                self.take()
        protocol = self.connection.protocol
        return protocol.close_code or 0, protocol.close_reason or ""


@contextlib.contextmanager
def attend(url: str, node: str, query: str = "", **given: Any) -> Iterator[Terminal]:
    """Open the console of a node.

    :param url: of the API.
    :param query: more of the URL, as ``mode=write``.
    :raises websockets.InvalidStatus: it is refused.
    """
    where = f"{url.replace('http', 'ws', 1)}/ingot/v1/nodes/{node}/console?{query}"
    with client.connect(where, subprotocols=[SUBPROTOCOL], open_timeout=LIMIT, max_queue=None, **given) as connection:
        yield Terminal(connection)


def refuse(url: str, node: str, query: str = "", **given: Any) -> tuple[int, str]:
    """Return status and text with which an API refuses to open a console.

    :raises AssertionError: it opens it.
    """
    try:
        with attend(url, node, query, **given):
            raise AssertionError("it is open")
    except websockets.InvalidStatus as exc:
        return exc.response.status_code, (exc.response.body or b"").decode()
