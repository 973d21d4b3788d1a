"""What the HTTP servers of tests have in common: how they answer, and that they do it silently."""

import http.server
import json
from typing import Any


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
