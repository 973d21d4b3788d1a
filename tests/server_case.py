"""The API behind its embedded server, on a socket of its own."""

import pathlib
import socket
from typing import Any

import fixtures

from ingot.api import server
from ingot.rack import ports, tls
from tests import api_case, patience

PATIENCE = patience.seconds(60)
ASK = b"GET /v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n"


class ServerCase(api_case.ApiCase):
    """``self.serve()`` starts the server with the options that ``self.options`` and a test have set.

    It has one thread, so that whatever keeps a thread keeps every client waiting.
    """

    options: dict[str, Any] = {}  # noqa: RUF012 - subclasses replace it

    def configure(self) -> None:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.port = ports.tcp()
        fixed = {"port": self.port, "host_ip": "127.0.0.1", "api_threads": 1, "trusted_proxies": []}
        for name, value in {**fixed, **self.options}.items():
            self.conf.set_override(name, value, group="api")

    def serve(self, **options: Any) -> server.Server:
        """Start a server; it stops with the test."""
        for name, value in options.items():
            self.conf.set_override(name, value, group="api")
        web = server.Server(self.conf, self.application())
        web.start()
        self.addCleanup(web.stop)
        return web

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, sent: bytes = b"") -> socket.socket:
        """Return a connection on which something was sent."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.sendall(sent)
        return connection

    def read(self, connection: socket.socket) -> str:
        """Return what comes until the server closes the connection."""
        with connection.makefile("rb") as answer:
            return answer.read().decode()

    def read_head(self, connection: socket.socket) -> str:
        """Return the head of an answer."""
        got = b""
        while b"\r\n\r\n" not in got and (more := connection.recv(1)):
            got += more
        return got.decode()

    def is_closed(self, connection: socket.socket) -> bool:
        """Wait for the next byte; return whether there was none, because the server closed the connection."""
        try:
            return not connection.recv(1)
        except ConnectionError:
            return True

    def make_certificate(self, name: str) -> str:
        """Write a new key and its certificate; see :func:`make_certificate`."""
        folder = self.directory / name
        folder.mkdir(exist_ok=True)
        return make_certificate(folder)


def make_certificate(folder: pathlib.Path) -> str:
    """Write a new key with its certificate, which is its own authority, into a file of a folder.

    :returns: path of the file.
    """
    tls.create(folder, "127.0.0.1", None)
    return str(folder / "agent.pem")
