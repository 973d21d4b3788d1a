"""What the HTTP servers of tests have in common: how they answer, and that they do it silently."""

import http.server
import json
import threading
from collections.abc import Callable
from typing import Any

import fixtures


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for headers and body, or each answer waits for an acknowledgement
    disable_nagle_algorithm = True

    def body(self) -> Any:
        """Return the JSON document of the request."""
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status: int, content: Any = b"", **headers: str) -> None:
        """Send an answer.

        :param content: bytes as they are; anything else becomes JSON.
        """
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Drop the log of requests, to keep the test's output readable."""


class FunctionServer(fixtures.Fixture):
    """A server whose answers a function writes.

    :ivar url: of something on it.
    """

    def __init__(self, answer: Callable[[Handler], None]) -> None:
        super().__init__()
        methods = dict.fromkeys(("do_GET", "do_POST", "do_DELETE"), lambda handler: answer(handler))
        self._handler = type("FunctionHandler", (Handler,), methods)

    def _setUp(self) -> None:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        server.daemon_threads = True
        server.handle_error = lambda *_given: None  # type: ignore[method-assign]  # clients may go away
        self.url = f"http://127.0.0.1:{server.server_port}/file"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
