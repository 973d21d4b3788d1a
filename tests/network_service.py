"""A small Neutron over real HTTP, for faults that the real one cannot be made to have."""

import http.server
import json
import threading
import uuid
from typing import Any
from urllib.parse import parse_qs, urlsplit

import fixtures
from oslo_config import cfg

from ingot.common.conf import opts
from tests import http_handler

_SINGULAR = {
    "networks": "network",
    "ports": "port",
    "subnets": "subnet",
    "segments": "segment",
    "security-groups": "security_group",
    "agents": "agent",
}

_NEW_PORT = {
    "name": "",
    "description": "",
    "device_id": "",
    "device_owner": "",
    "project_id": "mine",
    "fixed_ips": [],
    "binding:host_id": "",
    "binding:profile": {},
    "binding:vnic_type": "normal",
    "binding:vif_type": "unbound",
    "extra_dhcp_opts": [],
    "admin_state_up": True,
    "status": "DOWN",
}


class NetworkService(fixtures.Fixture):
    """
    :ivar url: as an endpoint of a catalog.
    :ivar rows: objects by kind, as in paths, and id.
    :ivar asked: method, path and sent object of each request.
    :ivar refusals: statuses with which the next requests of a method are answered, by method; 0 ends the connection
        when the request has been done, and 200 is the page of a proxy that does not pass it on.
    :ivar faults: the same by the number of a request, as they are counted in :attr:`asked`.
    :ivar binds: whether a mechanism driver binds ports, and
    :ivar connects: whether it makes those that it has bound ACTIVE at once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in _SINGULAR}
        self.asked: list[tuple[str, str, Any]] = []
        self.refusals: dict[str, list[int]] = {}
        self.faults: dict[int, int] = {}
        self.binds = self.connects = True

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
        opts.use_service(conf, "neutron")
        conf.set_override("auth_type", "none", group="neutron")
        conf.set_override("endpoint_override", self.url, group="neutron")

    def add(self, kind: str, **about: Any) -> dict[str, Any]:
        """Add an object, and return it."""
        row = {"id": str(uuid.uuid4()), **(_NEW_PORT if kind == "ports" else {"name": ""}), **about}
        self.rows[kind][row["id"]] = row
        return row

    def change(self, row: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
        """Change a port as Neutron does."""
        row |= values
        row["mac_address"] = row.get("mac_address") or f"fa:16:3e:{uuid.uuid4().hex[:2]}:00:01"
        bound = "other" if self.binds else "binding_failed"
        row["binding:vif_type"] = bound if row["binding:host_id"] else "unbound"
        row["status"] = "ACTIVE" if row["binding:vif_type"] == "other" and self.connects else "DOWN"
        return row

    def connect(self) -> None:
        """Make all ports ACTIVE, as when a switch is done."""
        for row in self.ports:
            row["status"] = "ACTIVE"

    @property
    def ports(self) -> list[dict[str, Any]]:
        return list(self.rows["ports"].values())


class _Handler(http_handler.Handler):
    service: NetworkService

    def answer(self, status: int, content: Any = b"", **headers: str) -> None:
        super().answer(status, content, **{"Content-Type": "application/json", **headers})

    def _serve(self) -> None:
        service, parts = self.service, urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        sent = next(iter(json.loads(self.rfile.read(length)).values())) if length else None
        if parts.path.strip("/") in ("", "v2.0"):
            link = {"href": f"{service.url}/v2.0", "rel": "self"}
            return self.answer(200, {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [link]}]})
        service.asked.append((self.command, parts.path, sent))
        refusal = (service.refusals.get(self.command) or [None]).pop(0)
        refusal = service.faults.get(len(service.asked) - 1, refusal)
        if refusal == 200:
            return self.answer(200, b"<html>Back soon</html>", **{"Content-Type": "text/html"})
        if refusal:
            return self.answer(refusal, {"NeutronError": {"type": "T", "message": "the fake says no", "detail": ""}})
        status, body = self._do(parts.path.removeprefix("/v2.0/").split("/"), parse_qs(parts.query), sent)
        if refusal is None:
            return self.answer(status, body)
        self.close_connection = True  # it is done, and its client never learns
        return None

    def _do(self, path: list[str], query: dict[str, list[str]], sent: Any) -> tuple[int, Any]:
        kind, (*ident,) = path[0], path[1:]
        rows, one = self.service.rows[kind], _SINGULAR[kind]
        if self.command == "GET" and not ident:
            found = [row for row in rows.values() if all(row.get(name) in query[name] for name in query)]
            return 200, {kind.replace("-", "_"): found}
        if self.command == "POST":
            return 201, {one: self.service.change(self.service.add(kind), sent)}
        if ident[0] not in rows:
            return 404, {"NeutronError": {"type": "NotFound", "message": f"{ident[0]} is not there", "detail": ""}}
        if self.command == "PUT":
            return 200, {one: self.service.change(rows[ident[0]], sent)}
        if self.command == "DELETE":
            del rows[ident[0]]
            return 204, None
        return 200, {one: rows[ident[0]]}

    do_GET = do_POST = do_PUT = do_DELETE = _serve
