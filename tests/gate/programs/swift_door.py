"""The part of Swift that judges signed URLs, before a directory of images.

Run in Swift's environment: ``python swift_door.py PORT DIRECTORY ACCOUNT KEY``. The middleware is Swift's own; this
stands for proxy and storage behind it, which want a ring of disks. Requests are written to the standard error.
"""

import pathlib
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref import simple_server

from swift.common.middleware import tempurl

CONTAINER = "glance"


class Images:
    """What is behind the middleware: an account with a key, a container, and images."""

    def __init__(self, directory: pathlib.Path, account: str, key: str) -> None:
        self._directory = directory
        self._account = account
        self._key = key

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        parts = environ["PATH_INFO"].strip("/").split("/")
        status, headers, content = self._answer(environ["REQUEST_METHOD"], parts)
        start_response(status, [*headers.items(), ("Content-Length", str(len(content)))])
        return [content]

    def _answer(self, method: str, parts: list[str]) -> tuple[str, dict[str, str], bytes]:
        if parts == ["v1", self._account]:
            return "204 No Content", {"X-Account-Meta-Temp-Url-Key": self._key}, b""
        if parts == ["v1", self._account, CONTAINER]:
            return "204 No Content", {}, b""
        file = self._directory / parts[-1]
        if len(parts) != len(("v1", self._account, CONTAINER, "image")) or not file.is_file():
            return "404 Not Found", {}, b""
        return "200 OK", {"Content-Type": "application/octet-stream"}, b"" if method == "HEAD" else file.read_bytes()


def main() -> None:
    port, directory, account, key = sys.argv[1:]
    app = tempurl.filter_factory({})(Images(pathlib.Path(directory), account, key))
    simple_server.make_server("127.0.0.1", int(port), app).serve_forever()


if __name__ == "__main__":
    main()
