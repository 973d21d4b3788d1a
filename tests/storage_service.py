"""A small Cinder over real HTTP, for faults that the real one cannot be made to have."""

import http.server
import json
import threading
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fixtures
from keystoneauth1 import loading
from oslo_config import cfg

from ingot.common.conf import opts
from tests import http_handler

CONNECTION = {
    "driver_volume_type": "iscsi",
    "target_iqn": "iqn.2010-10.org.openstack:volume",
    "target_portal": "192.0.2.5:3260",
    "target_lun": 1,
    "auth_method": "CHAP",
    "auth_username": "chap",
    "auth_password": "sesame",
}


class StorageService(fixtures.Fixture):
    """
    :ivar url: as an endpoint of a catalog.
    :ivar volumes: by id: ``os-vol-tenant-attr:tenant_id``, ``status``, ``metadata``.
    :ivar attachments: by id.
    :ivar login: the header ``Authorization`` that requests must have; empty: none.
    :ivar asked: method and path, without ids, of each request.
    :ivar refusals: statuses with which the next requests of a method are answered, by method; 0 ends the connection
        when the request has been done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.volumes: dict[str, dict[str, Any]] = {}
        self.attachments: dict[str, dict[str, Any]] = {}
        self.login = ""
        self.asked: list[str] = []
        self.refusals: dict[str, list[int | None]] = {}

    def _setUp(self) -> None:
        handler = type("Handler", (_Handler,), {"service": self})
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v3"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def configure(self, conf: cfg.ConfigOpts, auth_type: str = "none", **login: Any) -> None:
        """Point Ingot at this service.

        :param login: further options of the type of authentication.
        """
        opts.use_service(conf, "cinder")
        conf.set_override("auth_type", auth_type, group="cinder")
        loading.load_auth_from_conf_options(conf, "cinder")  # registers its options
        for name, value in {"endpoint_override": self.url, "action_retry_interval": 0, **login}.items():
            conf.set_override(name, value, group="cinder")

    def add(self, project: str = "owner") -> str:
        """Add a volume; return its id."""
        ident = str(uuid.uuid4())
        self.volumes[ident] = {
            "id": ident, "status": "available", "os-vol-tenant-attr:tenant_id": project, "metadata": {},
        }  # fmt: skip
        return ident

    def attach(self, about: dict[str, Any]) -> dict[str, Any]:
        """Reserve a volume, and connect it if it is said to what."""
        volume = about["volume_uuid"]
        row = {"id": str(uuid.uuid4()), "volume_id": volume, "instance": about["instance_uuid"]}
        connector = about.get("connector")
        row |= {"status": "attaching" if connector else "reserved", "connector": connector}
        row |= {"connection_info": dict(CONNECTION) if connector else {}}
        self.attachments[row["id"]] = row
        self.volumes[volume]["status"] = row["status"]
        return row

    def count(self) -> tuple[int, set[str]]:
        """Return how many attachments there are, and in which states volumes are."""
        return len(self.attachments), {volume["status"] for volume in self.volumes.values()}


class _Handler(http_handler.Handler):
    service: StorageService

    def answer(self, status: int, content: Any = b"", **headers: str) -> None:
        super().answer(status, content, **{"Content-Type": "application/json", **headers})

    def _serve(self) -> None:
        service, parts = self.service, urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(length)) if length else {}
        path = parts.path.removeprefix("/v3").strip("/").split("/")
        if not self.headers["X-Auth-Token"]:  # as the real one does without Keystone
            return self.answer(204, **{"X-Auth-Token": "admin:admin"})
        if service.login and self.headers["Authorization"] != service.login:
            return self.answer(401, {"unauthorized": {"code": 401, "message": "who is it"}})
        if path == [""]:
            link = {"href": f"{service.url}/", "rel": "self"}
            about = {"id": "v3.0", "status": "CURRENT", "version": "3.71", "min_version": "3.0", "links": [link]}
            return self.answer(200, {"versions": [about]})
        service.asked.append(" ".join([self.command, path[0], *path[2:]]))
        refusal = (service.refusals.get(self.command) or [None]).pop(0)
        if refusal:
            return self.answer(refusal, {"gate": {"code": refusal, "message": "the fake says no"}})
        status, body = self._do(path, parse_qs(parts.query), sent)
        if refusal is None:
            return self.answer(status, body)
        self.close_connection = True  # it is done, and its client never learns
        return None

    def _do(self, path: list[str], query: dict[str, list[str]], sent: dict[str, Any]) -> tuple[int, Any]:
        service, kind = self.service, path[0]
        if path == ["attachments", "detail"]:
            instance = query["instance_id"][0]
            return 200, {kind: [row for row in service.attachments.values() if row["instance"] == instance]}
        rows = service.volumes if kind == "volumes" else service.attachments
        if path == ["attachments"]:
            about = sent["attachment"]
            if about["volume_uuid"] in service.volumes:
                return 200, {"attachment": service.attach(about)}
        elif path[1] in rows:
            return self._do_one(kind, rows[path[1]], sent)
        return 404, {"itemNotFound": {"code": 404, "message": "it could not be found"}}

    def _do_one(self, kind: str, row: dict[str, Any], sent: dict[str, Any]) -> tuple[int, Any]:
        service = self.service
        if kind == "volumes":
            row["metadata"] |= sent.get("metadata", {})
            return 200, {"volume": row, "metadata": row["metadata"]}
        volume = service.volumes[row["volume_id"]]
        if self.command == "DELETE":
            del service.attachments[row["id"]]
            volume["status"] = "available"
            return 200, {"attachments": []}
        row["status"], volume["status"] = "attached", "in-use"
        return 204, None

    do_GET = do_POST = do_PUT = do_DELETE = _serve
