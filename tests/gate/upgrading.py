"""What is there before an upgrade and must be there after it; and users who go on meanwhile."""

import threading
import time
from typing import Any

import requests

from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran

_KINDS = ("bios", "boot", "deploy", "inspect", "management", "power", "raid", "rescue")
_FAKE = {"driver": "fake-hardware", **{f"{kind}_interface": "fake" for kind in _KINDS}}
_IMAGE = {"image_source": "http://example.org/image.raw", "image_checksum": "0" * 32, "image_disk_format": "raw"}
_PASSWORD = "before the upgrade"
_PATHS = {"enroll": (), "manageable": ("manage",), "available": ("manage", "provide")}
"""Verbs that lead to a state, one after the other."""

_CHANGES = ("updated_at", "conductor", "reservation", "provision_updated_at", "power_state", "driver_internal_info")
"""Fields that say who looks after a node now, and when something was last seen."""


class Patient(lab.User):
    """A user that asks again after a 503, and opens a connection for each request: a balancer chooses the API.

    :ivar unavailable: the answers with 503, by what was asked and why.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._session.headers["Connection"] = "close"
        self.unavailable: list[str] = []

    def request(self, method: str, path: str, body: Any = None) -> requests.Response:
        until = time.monotonic() + lab.PATIENCE
        while (answer := super().request(method, path, body)).status_code == 503 and time.monotonic() < until:
            self.unavailable.append(f"{method} {path}: {answer.text[:300]}")
            time.sleep(0.2)
        return answer


class Tenant(threading.Thread):
    """Deploys and undeploys one machine until it is stopped, and counts the deployments.

    :ivar is_calm: whether the machine is left alone for a while after each deployment.
    """

    _PAUSE_S = 45.0

    def __init__(self, site: lab.Lab, index: int, uuid: str) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._index = index
        self.user = Patient(site.url)
        self._ends = threading.Event()
        self.uuid = uuid
        self.deployed = 0
        self.is_calm = False
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                self._once()
                if self.is_calm:
                    self._ends.wait(self._PAUSE_S)
        except Exception as exc:  # noqa: BLE001 raised by the test's own thread
            self.failure = exc

    def _once(self) -> None:
        self.user.patch(f"/v1/nodes/{self.uuid}", {"/instance_info": self._site.image_info()})
        self.user.provision(self.uuid, "active")
        self._reach("active")
        steps = self.user.get(f"/ingot/v1/nodes/{self.uuid}/timeline")["steps"]
        if [step for step in ran(steps) if step in CORE] != CORE:
            raise AssertionError(f"steps of {self.uuid}: {steps}")
        if not self._site.holds_image(self._index):
            raise AssertionError(f"the disk of {self.uuid} does not hold the image")
        self.deployed += 1
        self.user.provision(self.uuid, "deleted")
        self._reach("available")

    def _reach(self, state: str) -> None:
        until = time.monotonic() + lab.PATIENCE
        while (node := self.user.node(self.uuid))["provision_state"] != state:
            if "failed" in node["provision_state"] or node["provision_state"] == "error" or time.monotonic() > until:
                raise AssertionError(f"{node['provision_state']} on the way to {state}: {node['last_error']}")
            time.sleep(0.2)

    def leave(self) -> None:
        self._ends.set()
        _join(self, 3 * lab.PATIENCE)


class Resources:
    """What an operator and users have made on the release before: nodes in several states, and one of everything else.

    :param user: makes it, and looks at it.
    :ivar user: may be another one later.
    """

    def __init__(self, user: lab.User) -> None:
        self.user = user
        self.nodes: dict[str, str] = {}
        self._made: list[str] = []  # paths, in the order in which they were made
        self._before: dict[str, Any] = {}

    def make(self) -> None:
        self._post("/v1/chassis", {"description": "of the release before"})
        for state, verbs in _PATHS.items():
            self._make_node(state, *verbs)
        self._make_node("active", "manage", "provide")
        node = self.nodes["active"]
        self.user.patch(f"/v1/nodes/{node}", {"/instance_info": _IMAGE})
        self.user.provision(node, "active")
        self._reach("active", "active")
        self.user.patch(f"/v1/nodes/{node}", {"/protected": True, "/protected_reason": "in use"})
        self.user.put(f"/v1/nodes/{self.nodes['manageable']}/maintenance", {"reason": "a fan is broken"})
        self._make_parts(self.nodes["manageable"])
        self._make_rules()

    def _make_node(self, name: str, *verbs: str) -> None:
        body = {"name": f"old-{name}", "resource_class": f"old-{name}", "driver_info": {"ipmi_password": _PASSWORD}}
        self.nodes[name] = self._post("/v1/nodes", {**_FAKE, **body})
        self.user.put(f"/v1/nodes/{self.nodes[name]}/traits", {"traits": ["CUSTOM_OLD"]})
        for verb in verbs:
            self.user.provision(self.nodes[name], verb)
            self._reach(name, {"manage": "manageable", "provide": "available"}[verb])

    def _make_parts(self, node: str) -> None:
        group = self._post("/v1/portgroups", {"node_uuid": node, "name": "bond0", "address": "52:54:00:aa:00:10"})
        link = {"switch_id": "0a:00:00:00:00:01", "port_id": "eth1", "switch_info": "leaf"}
        port = {"address": "52:54:00:aa:00:01", "local_link_connection": link, "physical_network": "rack"}
        self._post("/v1/ports", {"node_uuid": node, "portgroup_uuid": group, **port})
        self._post("/v1/volume/connectors", {"node_uuid": node, "type": "iqn", "connector_id": "iqn.2026-01.org:a"})
        secret = {"auth_password": _PASSWORD}
        target = {"boot_index": 0, "volume_id": "v", "volume_type": "iscsi", "properties": secret}
        self._post("/v1/volume/targets", {"node_uuid": node, **target})

    def _make_rules(self) -> None:
        step = {"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}
        self._post("/v1/deploy_templates", {"name": "CUSTOM_OLD", "steps": [step]})
        step = {"interface": "bios", "step": "factory_reset", "order": 1}
        self._post("/v1/runbooks", {"name": "CUSTOM_OLD", "steps": [step]})
        action = {"op": "set-attribute", "args": {"path": "/extra/a", "value": "b"}}
        self._post("/v1/inspection_rules", {"conditions": [], "actions": [action]})
        made = self._post("/v1/allocations", {"name": "old", "resource_class": "old-available"})
        self._eventually(lambda: self.user.get(f"/v1/allocations/{made}")["state"] == "active", "allocated")

    def _post(self, collection: str, body: dict[str, Any]) -> str:
        uuid: str = self.user.post(collection, body)["uuid"]
        self._made.append(f"{collection}/{uuid}")
        return uuid

    def _reach(self, name: str, state: str) -> None:
        path = f"/v1/nodes/{self.nodes[name]}"

        def check() -> bool:
            node = self.user.get(path)
            if "failed" in node["provision_state"]:
                raise AssertionError(f"{node['provision_state']} on the way to {state}: {node['last_error']}")
            return node["provision_state"] == state and node["reservation"] is None

        self._eventually(check, f"{name} is {state}")

    def _eventually(self, check: Any, what: str) -> None:
        lab.eventually(check, what, lab.PATIENCE, str)

    def note(self) -> None:
        """Note what the API says of everything."""
        self._before = {path: self._read(path) for path in self.paths()}

    def paths(self) -> list[str]:
        """Return where to read everything, with what belongs to nodes."""
        of_nodes = [f"/v1/nodes/{uuid}/{part}" for uuid in self.nodes.values() for part in ("traits", "history")]
        return [*self._made, *of_nodes]

    def _read(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.user.get(path)
        return {name: value for name, value in found.items() if name not in _CHANGES}

    def differences(self) -> list[str]:
        """Return what is not as it was noted; what a release adds counts as no difference."""
        found = []
        for path, before in self._before.items():
            now = self._read(path)
            changed = {name: (value, now.get(name)) for name, value in before.items() if now.get(name) != value}
            found += [f"{path}: {changed}"] if changed else []
        return found

    def destroy(self) -> None:
        """Use and remove everything, the newest first."""
        node = self.nodes["active"]
        self.user.patch(f"/v1/nodes/{node}", {"/protected": False})
        self.user.provision(node, "deleted")
        self._reach("active", "available")
        self.user.delete(f"/v1/nodes/{self.nodes['manageable']}/maintenance")
        for path in reversed(self._made):
            self.user.delete(path)
            gone = self.user.request("GET", path).status_code
            if gone != 404:
                raise AssertionError(f"{path} was deleted, and is answered with {gone}")


class Reader(threading.Thread):
    """Reads all resources, one after the other, until it is stopped; no answer but 200 is a good one.

    :ivar failures: what it was answered instead.
    :ivar is_calm: whether it reads seldom.
    """

    _PAUSE_S, _LONG_PAUSE_S = 0.1, 2.0

    def __init__(self, url: str, paths: list[str]) -> None:
        super().__init__(daemon=True)
        self._user = lab.User(url)
        self._user._session.headers["Connection"] = "close"
        self._paths = ["/v1/nodes/detail", "/v1/conductors", "/v1/drivers", *paths]
        self._ends = threading.Event()
        self.answers = 0
        self.is_calm = False
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._ends.is_set():
            for path in self._paths:
                self._read(path)
                if self._ends.wait(self._LONG_PAUSE_S if self.is_calm else self._PAUSE_S):
                    return

    def _read(self, path: str) -> None:
        try:
            answer = self._user.request("GET", path)
        except requests.RequestException as exc:
            self.failures.append(f"{path}: {exc}")
            return
        self.answers += 1
        if answer.status_code != 200:
            self.failures.append(f"{path}: {answer.status_code} {answer.text[:300]}")

    def leave(self) -> None:
        self._ends.set()
        _join(self, lab.PATIENCE)


def _join(user: threading.Thread, timeout: float) -> None:
    user.join(timeout)
    if user.is_alive():
        raise AssertionError(f"{type(user).__name__} has not ended after {timeout:.0f} s")
