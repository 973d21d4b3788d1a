"""A TCP proxy before one or several servers: it notes what clients send, and the line can be cut, slow or silent."""

import contextlib
import itertools
import socket
import threading
import time

import fixtures

_MOST_NOTED = 2**24


class Proxy(fixtures.Fixture):
    """Forwards ``port`` of ``host`` to some servers in turn, to the next one that accepts: a balancer of loads.

    ``sent``: what clients have sent, the first 16 MiB of it. ``targets``: may be changed; it goes for new connections.
    """

    host = "127.0.0.1"
    delay = 0.0
    """Seconds for which everything is held back on its way."""

    def __init__(self, *targets: tuple[str, int]) -> None:
        super().__init__()
        self.targets = list(targets)
        self.sent = bytearray()
        self._turns = itertools.count()
        self._lines: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()

    def _setUp(self) -> None:
        self._listener = self._listen(0)
        self.port: int = self._listener.getsockname()[1]
        self.addCleanup(self.cut)
        self.addCleanup(self.resume)

    def cut(self) -> None:
        """End all connections and refuse new ones."""
        for line in [self._listener, *self._lines]:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def restore(self) -> None:
        """Accept connections again."""
        self._listener = self._listen(self.port)

    def hold(self) -> None:
        """Let nothing through from now on, without an error: a line that swallows everything."""
        self._flows.clear()

    def resume(self) -> None:
        """Let held data through, late."""
        self._flows.set()

    def _listen(self, port: int) -> socket.socket:
        listener = self._bind(port)
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _bind(self, port: int) -> socket.socket:
        return socket.create_server((self.host, port))

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                self._lines.add(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection from its beginning to its end; on a silent line none begins."""
        self._flows.wait()
        server = self._reach()
        if server is not None:
            self._lines.add(server)
            back = threading.Thread(target=self._forward, args=(server, client, bytearray()), daemon=True)
            back.start()
            self._forward(client, server, self.sent)
            back.join()
            self._drop(server)
        self._drop(client)

    def _drop(self, line: socket.socket) -> None:
        line.close()
        self._lines.discard(line)

    def _reach(self) -> socket.socket | None:
        targets = list(self.targets)
        first = next(self._turns) % max(len(targets), 1)
        for target in targets[first:] + targets[:first]:
            with contextlib.suppress(OSError):
                return socket.create_connection(target)
        return None

    def _forward(self, source: socket.socket, sink: socket.socket, notes: bytearray) -> None:
        with contextlib.suppress(OSError):
            sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := source.recv(65536):
                notes += data[: _MOST_NOTED - len(notes)] if len(notes) < _MOST_NOTED else b""
                time.sleep(self.delay)
                self._flows.wait()
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
