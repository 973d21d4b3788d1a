"""A small Glance over real HTTP, for tests: it tells of images, gives their content, and can be out of order."""

import http.server
import re
import threading
import uuid
from typing import Any
from urllib.parse import urlsplit

import fixtures
from oslo_config import cfg

from ingot.common.conf import opts
from tests import http_handler

_RANGE = re.compile(r"bytes=(\d+)-(\d+)?")


class ImageService(fixtures.Fixture):
    """
    :ivar url: as an endpoint of a catalog.
    :ivar images: documents by id.
    :ivar content: by id.
    :ivar members: documents by id of image and project.
    :ivar status: with which everything is answered; None: as it should be.
    :ivar asked: paths.
    """

    def __init__(self) -> None:
        super().__init__()
        self.images: dict[str, dict[str, Any]] = {}
        self.content: dict[str, bytes] = {}
        self.members: dict[tuple[str, str], dict[str, Any]] = {}
        self.status: int | None = None
        self.asked: list[str] = []

    def _setUp(self) -> None:
        handler = type("Handler", (_Handler,), {"service": self})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def configure(self, conf: cfg.ConfigOpts) -> None:
        """Point Ingot at this service."""
        opts.use_service(conf, "glance")
        conf.set_override("auth_type", "none", group="glance")
        conf.set_override("endpoint_override", self.url, group="glance")

    def add(self, content: bytes = b"image", **more: Any) -> str:
        """Add an image that can be used, by default; return its id."""
        ident = str(uuid.uuid4())
        about = {"status": "active", "disk_format": "raw", "container_format": "bare", "visibility": "public"}
        self.images[ident] = {"id": ident, **about, "os_hash_algo": "sha512", "os_hash_value": "ab" * 64, **more}
        self.content[ident] = content
        return ident


class _Handler(http_handler.Handler):
    service: ImageService

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.service.asked.append(path)
        _, version, what, ident, *rest = path.split("/")
        known = self.service.images.get(ident) if (version, what) == ("v2", "images") else None
        if self.service.status or known is None:
            self.answer(self.service.status or 404, {})
        elif rest == ["file"]:
            self._content(self.service.content[ident])
        elif rest:
            member = self.service.members.get((ident, rest[1]))
            self.answer(200 if member else 404, member)
        else:
            self.answer(200, known)

    def _content(self, whole: bytes) -> None:
        span = _RANGE.fullmatch(self.headers.get("Range") or "")
        if not span:
            return self.answer(200, whole)
        first, last = int(span[1]), min(int(span[2] or len(whole)), len(whole) - 1)
        return self.answer(206, whole[first : last + 1], **{"Content-Range": f"bytes {first}-{last}/{len(whole)}"})
