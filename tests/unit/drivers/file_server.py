"""An HTTP server of files: for tests that read images."""

import http.server
import threading

from tests import http_handler


class FileServer:
    """Serves a dictionary of paths."""

    def __init__(self, files: dict[str, bytes]) -> None:
        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                self.answer(200 if self.path in files else 404, files.get(self.path, b""))

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
