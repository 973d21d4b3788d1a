"""A front of an HTTP server that passes requests on, counts them, and fails at some on order."""

import http.client
import http.server
import socket
import threading
from urllib import parse

import fixtures

from tests import http_handler, patience

_OWN = frozenset(("connection", "content-length", "date", "server", "transfer-encoding"))
"""Headers of answers that the front sends itself, in lower case."""


class Front(fixtures.Fixture):
    """
    :ivar statuses: what the next changes are answered with instead of being passed on; 0: they are passed on, and the
        connection is cut instead of an answer.
    :ivar requests: method and path of each request.
    """

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = parse.urlsplit(target).netloc
        self.statuses: list[int] = []
        self.requests: list[tuple[str, str]] = []
        self.speaks = threading.Event()
        self.speaks.set()

    def _setUp(self) -> None:
        handler = type("Handler", (_Handler,), {"front": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(self._server.server_close)
        self.addCleanup(self._server.shutdown)
        self.addCleanup(self.speaks.set)


class _Handler(http_handler.Handler):
    front: Front

    def serve(self) -> None:
        front = self.front
        front.requests.append((self.command, self.path))
        if not front.speaks.is_set():
            front.speaks.wait()
            self.close_connection = True
            return
        status = front.statuses.pop(0) if front.statuses and self.command != "GET" else None
        if status:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.answer(status, {"error": {"code": "Base.1.0.GeneralError"}}, **{"Retry-After": "1"})
            return
        answer = self.pass_on()
        if status == 0:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.answer(answer[0], answer[2], **answer[1])

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = serve

    def pass_on(self) -> tuple[int, dict[str, str], bytes]:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = http.client.HTTPConnection(self.front.target, timeout=patience.seconds(60))
        try:
            line.request(self.command, self.path, body, dict(self.headers))
            answer = line.getresponse()
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in _OWN}
            return answer.status, headers, answer.read()
        finally:
            line.close()
