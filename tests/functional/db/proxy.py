"""A TCP proxy before a database server: it notes what a client sends, and the line can be cut."""

import contextlib
import socket
import threading

import fixtures


class Proxy(fixtures.Fixture):
    """Forwards ``port`` of 127.0.0.1 to a server.

    ``sent``: all that clients have sent.
    """

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        self._target = (host, port)
        self.sent = bytearray()
        self._lines: list[socket.socket] = []

    def _setUp(self) -> None:
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.addCleanup(self.cut)

    def cut(self) -> None:
        """Ends all connections and refuses new ones."""
        for line in [self._listener, *self._lines]:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        self._lines.clear()

    def restore(self) -> None:
        """Accepts connections again."""
        self._listener = self._listen(self.port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(self._target)
                self._lines += [client, server]
                threading.Thread(target=self._forward, args=(client, server, self.sent), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, bytearray()), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, notes: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                notes += data
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
