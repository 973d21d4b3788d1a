"""A file server that can keep a client waiting in the middle of a file."""

import contextlib
import functools
import http.server
import pathlib
import threading
from typing import Any

import fixtures

_PIECE = 8 * 2**20


class HeldFiles(fixtures.Fixture):
    """Serves a directory over HTTP. Of a file that is held only the beginning comes, until it is let go.

    :ivar port: of this computer, at its loopback address.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        super().__init__()
        self._directory = directory
        self._held = ""
        self._go_on = threading.Event()
        self._begun = threading.Event()

    def _setUp(self) -> None:
        handler = functools.partial(_Handler, self, directory=str(self._directory))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.port: int = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(self.let_go)

    def hold(self, name: str) -> None:
        """Stop files whose paths end like this in the middle, from now on."""
        self._begun.clear()
        self._go_on.clear()
        self._held = name

    def let_go(self) -> None:
        """Send whole files again."""
        self._held = ""
        self._go_on.set()

    @property
    def is_read(self) -> bool:
        """Whether a client has the beginning of a held file and waits for the rest."""
        return self._begun.is_set()

    def pause(self, path: str) -> None:
        """Wait while the file is held; called in the middle of a file."""
        if self._held and path.endswith(self._held):
            self._begun.set()
            self._go_on.wait()


class _Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, files: HeldFiles, *args: Any, **more: Any) -> None:
        self._files = files
        super().__init__(*args, **more)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with contextlib.suppress(ConnectionError):  # who asked may be gone by now
            outputfile.write(source.read(_PIECE))
            outputfile.flush()
            self._files.pause(self.path)
            super().copyfile(source, outputfile)

    def log_message(self, format: str, *args: Any) -> None:
        """Drop the log of requests, to keep the test's output readable."""
