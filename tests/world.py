"""An API with one object of each kind: for tests that walk over the table of routes."""

import re
import uuid
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ingot.api import routes
from ingot.api.web.operations import Operation
from ingot.common import states
from ingot.db import inbox, models, nodes
from tests import api_case

STEP = {"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}
IN_RUNBOOK = {"interface": "bios", "step": "factory_reset", "order": 1}
MAC = "52:54:00:00:00:01"
ADD = [{"op": "add", "path": "/extra/a", "value": 1}]


def created(node: str) -> dict[str, dict[str, Any]]:
    """Return, by collection, the body of a POST that makes one object; each can be sent once."""
    ours = {"node_uuid": node}
    rule = {"conditions": [], "actions": [{"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}]}
    return {
        "/v1/chassis": {},
        "/v1/ports": {**ours, "address": MAC},
        "/v1/portgroups": {**ours, "name": "bond0"},
        "/v1/volume/connectors": {**ours, "type": "iqn", "connector_id": "a"},
        "/v1/volume/targets": {**ours, "boot_index": 0, "volume_id": "v", "volume_type": "iscsi"},
        "/v1/deploy_templates": {"name": "CUSTOM_T", "steps": [STEP]},
        "/v1/runbooks": {"name": "CUSTOM_R", "steps": [IN_RUNBOOK]},
        "/v1/inspection_rules": rule,
        "/v1/allocations": {"name": "a", "resource_class": "baremetal"},
    }


BODIES: dict[str, Any] = {
    "accept": {"driver": "fake-hardware"},
    "bulk": {"action": "clear_maintenance", "nodes": ["n"]},
    "boot_device": {"boot_device": "pxe"},
    "heartbeat": {"callback_url": "https://192.0.2.1:9999"},
    "boot_mode": {"target": "uefi"},
    "secure_boot": {"target": True},
    "console": {"enabled": True},
    "power": {"target": "power on"},
    "provision": {"target": "provide"},
    "session": {"user": "ada", "password": "secret"},
    "traits": {"traits": ["CUSTOM_A"]},
    "vifs": {"id": str(uuid.uuid4())},
    "vmedia": {"device_type": "cdrom", "image_url": "http://example.org/a.iso"},
    "indicators": {"state": "on"},
    "events": {
        "events": [{"event": "network.bind_port", "port_id": str(uuid.uuid4()), "mac_address": MAC, "status": "A"}]
    },
}
"""By the last fixed segment of a URL, a body of PUT or POST that is taken."""

_STANDS_FOR = {
    "<trait>": "CUSTOM_A",
    "/v1/drivers/<name>": "/v1/drivers/fake-hardware",
    "<name>": "led@chassis",
    "<hostname>": api_case.HOST,
    "<mac>": MAC,
    "<run>": "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
    "<method>": "first_method_sync",
}
_QUERY = {
    "/ingot/v1/nodes/<node>/plan": "flow=clean",
    "/v1/drivers/<name>/vendor_passthru": "method=first_method_sync",
    "/v1/lookup": f"addresses={MAC}",
    "/v1/nodes/<node>/vendor_passthru": "method=first_method_sync",
    "/v1/nodes/validate": "node=n",
}


class WorldCase(api_case.ApiCase):
    """``self.uuid`` is a node called ``n``; the others are listed in ``self.made`` by their collection."""

    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n", resource_class="baremetal")["uuid"]
        nodes.set_always(self.db, self.uuid, {"provision_state": states.MANAGEABLE, "power_state": states.POWER_OFF})
        served = {route.path for route in routes.ROUTES}
        self.made: dict[str, str] = {"/v1/nodes": self.uuid}
        for path, body in created(self.uuid).items():
            if path in served:
                self.made[path] = self.good("POST", path, body)["uuid"]
        self.made["/v1/deploy-templates"] = self.made["/v1/deploy_templates"]
        about = {"client_address": "192.0.2.9", "facts": {"addresses": []}, "inventory": {}, "plugin_data": {}}
        self.discovered = inbox.record(self.db, ["52:54:00:00:00:99"], about, most=1)
        own = nodes.get(self.db, self.uuid, ("id",))
        self.entry = str(uuid.uuid4())
        row = {"uuid": self.entry, "severity": "INFO", "event_type": "power", "event": "on", "node_id": own.id}
        # The node is found by a conductor; there is none here.
        found = sa.update(models.table(models.Allocation)).values(node_id=row["node_id"], state="active")
        with self.db.single() as connection:
            connection.execute(sa.insert(models.table(models.NodeHistory)).values(row))
            connection.execute(found)

    def operations(self) -> Iterator[tuple[routes.Route, str, Operation]]:
        """Yield every route with each of its methods."""
        for route in routes.ROUTES:
            for method, operation in route.operations.items():
                yield route, method, operation

    def url(self, path: str, query: str = "") -> str:
        """Return a URL for the path of a route, with the query parameters that it cannot do without."""
        known = max((made for made in self.made if path.startswith(f"{made}/<")), key=len, default=None)
        url = path
        if known is not None:
            url = known + "/" + re.sub(r"^<\w+>", self.made[known], path.removeprefix(f"{known}/"))
        url = url.replace("/inbox/<ident>", f"/inbox/{self.discovered}")
        url = url.replace("<node>", self.uuid).replace("<uuid>", self.entry)
        for name, value in _STANDS_FOR.items():
            url = url.replace(name, value)
        queries = [part for part in (_QUERY.get(path), query) if part]
        return re.sub(r"<\w+>", "x", url) + ("?" + "&".join(queries) if queries else "")

    def body(self, path: str, method: str) -> Any:
        """Return a body that fits; None where there is none."""
        if method == "PATCH":
            return {} if "vendor_passthru" in path else ADD
        if method not in ("PUT", "POST"):
            return None
        path = path.replace("deploy-templates", "deploy_templates")
        if path in created(self.uuid):
            return created(self.uuid)[path]
        if path.endswith("<trait>"):
            return {}
        fixed = [part for part in path.split("/") if not part.startswith("<")]
        return {"driver": "fake-hardware"} if path == "/v1/nodes" else BODIES.get(fixed[-1], {})
