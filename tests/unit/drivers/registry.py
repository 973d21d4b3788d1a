"""A registry of containers without TLS, over real HTTP: what clients of such registries are tested against."""

import hashlib
import json
from typing import Any

from tests import disk_images, http_handler
from tests.unit.drivers.file_server import HandledServer

OCI = "application/vnd.oci.image"
IMAGE = disk_images.gpt_image()


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Registry:
    """A registry without TLS, which hands out tokens of its own; a test may change what it says.

    :ivar asked: path and header ``Authorization`` of each request.
    :ivar answers: status, content and headers by path, before what it has.
    """

    def __init__(self, scheme: str = "") -> None:
        self.blobs: dict[str, bytes] = {}
        self.tags: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.answers: dict[str, tuple[int, bytes, dict[str, str]]] = {}
        self.scheme, self.realm, self.token = scheme, "", "t0ken"
        registry = self

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                registry.asked.append((self.path, self.headers["Authorization"]))
                status, content, headers = registry.decide(self.path, self.headers["Authorization"])
                self.answer(status, content, **headers)

        self._server = HandledServer(Handler)
        self.stop = self._server.stop
        self.host = self._server.url.removeprefix("http://")
        self.realm = f"{self._server.url}/token"

    def decide(self, path: str, authorization: str | None) -> tuple[int, bytes, dict[str, str]]:
        if path in self.answers:
            return self.answers[path]
        if path.startswith("/token"):
            return 200, json.dumps({"token": self.token}).encode(), {}
        if self.scheme and not (authorization or "").startswith(self.scheme):
            challenge = f'{self.scheme} realm="{self.realm}",service="registry",scope="repository:other:pull"'
            return 401, b"", {"WWW-Authenticate": challenge}
        ident = path.rpartition("/")[2]
        found = self.tags.get(ident) or self.blobs.get(ident)
        return (404, b"", {}) if found is None else (200, found, {})

    def add(self, content: bytes) -> str:
        self.blobs[digest(content)] = content
        return digest(content)

    def manifest(self, *layers: bytes, media: str = "application/octet-stream", **more: Any) -> dict[str, Any]:
        """Return the manifest of an artifact; an image's, by default."""
        listed = [{"mediaType": media, "digest": self.add(one), "size": len(one)} for one in layers or (IMAGE,)]
        about = {"schemaVersion": 2, "mediaType": f"{OCI}.manifest.v1+json", "artifactType": "application/x-disk"}
        return {**about, "config": {"mediaType": "application/vnd.oci.empty.v1+json"}, "layers": listed, **more}

    def index(self, *entries: dict[str, Any]) -> None:
        """Make an index of manifests the tag ``latest``; an entry has its document under ``of``."""
        listed = [{**one, "digest": self.add(json.dumps(one.pop("of")).encode())} for one in entries]
        self.tags["latest"] = json.dumps({"mediaType": f"{OCI}.index.v1+json", "manifests": listed}).encode()
