"""HTTP servers of files, a good one and a slow one: for tests that read images."""

import contextlib
import http.server
import re
import socket
import ssl
import sys
import threading

from tests import http_handler


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that go when they have seen enough."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # as it came


class HandledServer:
    """Answers with a handler of its own.

    :param context: of TLS; None: without.
    """

    def __init__(self, handler: type[http_handler.Handler], context: ssl.SSLContext | None = None) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class FileServer(HandledServer):
    """Serves a dictionary of paths."""

    def __init__(self, files: dict[str, bytes], context: ssl.SSLContext | None = None) -> None:
        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                self.answer(200 if self.path in files else 404, files.get(self.path, b""))

        super().__init__(Handler, context)


class RangedServer(HandledServer):
    """Serves a dictionary of paths, and parts of what they hold.

    :ivar asked: path, header ``Range`` and header ``Authorization`` of each request.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self.asked = asked = list[tuple[str, str | None, str | None]]()

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                asked.append((self.path, self.headers["Range"], self.headers["Authorization"]))
                whole = files.get(self.path)
                span = _RANGE.fullmatch(self.headers["Range"] or "")
                with contextlib.suppress(ConnectionError):  # who has seen enough goes
                    if whole is None or not span:
                        return self.answer(404 if whole is None else 200, whole or b"")
                    first, last = int(span[1]), min(int(span[2]), len(whole) - 1)
                    place = {"Content-Range": f"bytes {first}-{last}/{len(whole)}"}
                    return self.answer(206, whole[first : last + 1], **place)

        super().__init__(Handler)


_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class SlowServer:
    """Answers each request with one byte now and then, for ever.

    :ivar asked: set when a request has arrived.
    :param head: what it answers at once.
    """

    def __init__(self, head: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n") -> None:
        self.asked = threading.Event()
        self._ended = threading.Event()
        self._head = head
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError), client:
            client.recv(4096)
            self.asked.set()
            client.sendall(self._head)
            while not self._ended.wait(0.05):
                client.sendall(b"x")

    def stop(self) -> None:
        self._ended.set()
        self._listener.close()
