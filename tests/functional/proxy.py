"""A TCP proxy before one or several servers: it notes what clients send, and the line can be cut."""

import contextlib
import socket
import threading
import time

import fixtures


class Proxy(fixtures.Fixture):
    """Forwards ``port`` of 127.0.0.1 to the first of some servers that accepts, as a balancer of loads does.

    ``sent``: all that clients have sent. ``targets``: may be changed; it goes for new connections.
    """

    delay = 0.0
    """Seconds for which everything is held back on its way."""

    def __init__(self, *targets: tuple[str, int]) -> None:
        super().__init__()
        self.targets = list(targets)
        self.sent = bytearray()
        self._lines: list[socket.socket] = []
        self._flows = threading.Event()
        self._flows.set()

    def _setUp(self) -> None:
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.addCleanup(self.cut)
        self.addCleanup(self.resume)

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

    def hold(self) -> None:
        """From now on nothing comes through, and nobody is told: a line that swallows everything."""
        self._flows.clear()

    def resume(self) -> None:
        """What was held comes through, late."""
        self._flows.set()

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = self._reach()
                if server is None:
                    client.close()
                    continue
                self._lines += [client, server]
                threading.Thread(target=self._forward, args=(client, server, self.sent), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, client, bytearray()), daemon=True).start()

    def _reach(self) -> socket.socket | None:
        for target in list(self.targets):
            with contextlib.suppress(OSError):
                return socket.create_connection(target)
        return None

    def _forward(self, source: socket.socket, sink: socket.socket, notes: bytearray) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                notes += data
                time.sleep(self.delay)
                self._flows.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
