"""A small HTTP server for what machines fetch: kernel, ramdisk, image. Loopback only."""

import functools
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TextIO


class FileServer:
    """Serves one directory from a thread of this process.

    :param log: gets a line for each request.
    """

    def __init__(self, directory: Path, log: Path) -> None:
        self._log = log.open("a", buffering=1)
        handler = functools.partial(_Handler, directory=str(directory), log=self._log)
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="files", daemon=True)
        self._thread.start()

    def url(self, name: str) -> str:
        """Return the address of a file."""
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def stop(self) -> None:
        """Answer no more requests."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._log.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when a machine loses its power while it downloads; the base class tells the rest."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, log: TextIO, **kwargs: Any) -> None:
        self._log = log
        super().__init__(*args, **kwargs)

    def log_message(self, format: str, *args: Any) -> None:
        # A download may outlive the server's end by a moment; its last line is not worth a traceback.
        if not self._log.closed:
            self._log.write(f"{self.log_date_time_string()} {format % args}\n")
