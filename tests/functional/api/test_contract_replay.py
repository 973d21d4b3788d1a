"""Replays measured requests against the API and compares the status codes, area by area.

``measured.json`` holds what the reference implementation answered, with ``<uuid>`` for any uuid and ``x...`` for long
texts; :class:`Replay` puts fitting values in their place. What Ingot means to answer differently is a table in
``intended_differences.py``; anything else that differs is a defect.
"""

import re
import uuid
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, states
from ingot.conductor import manager
from ingot.db import nodes
from tests import api_case, conductor_case
from tests.functional.api import intended_differences
from tests.functional.api.measured import MEASURED

STEP = {"interface": "deploy", "step": "erase", "args": {}, "priority": 10}
IN_RUNBOOK = {"interface": "deploy", "step": "erase_devices", "args": {}, "order": 1}
INSTANCE = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123"

# The state from which a verb can be asked for.
FROM = {
    "active": states.AVAILABLE,
    "clean": states.MANAGEABLE,
    "rebuild": states.ACTIVE,
    "service": states.ACTIVE,
    "undeploy": states.ACTIVE,
}


OF_HARDWARE = frozenset(
    ("boot device", "boot mode", "console", "indicators", "locked", "nmi", "secure boot", "vendor", "vif", "vmedia")
)
"""Areas that are about fake hardware: a real conductor answers."""


class Replay(api_case.ApiCase):
    """A world with the names that the measured requests use, and the requests of one area sent to it in order."""

    def setUp(self) -> None:
        super().setUp()
        bare = {"power": ["ipmitool"], "management": ["ipmitool"], "firmware": ["no-firmware"]}
        self.register("conductor-2", api_case.enabled("ipmi", **bare, **api_case.PLAIN))
        self.chassis = self.good("POST", "/v1/chassis", {})["uuid"]
        self.uuids = {name: self.node(name=name)["uuid"] for name in ("err1", "err2", "eb1", "st1")}
        self.node_uuid = self.uuids["eb1"]
        self.set_nodes(power_state=states.POWER_OFF)
        self.set_nodes("eb1", provision_state=states.MANAGEABLE)
        ours = {"node_uuid": self.node_uuid}
        self.portgroup = self.good("POST", "/v1/portgroups", {**ours, "name": "ebpg"})["uuid"]
        self.port = self.good("POST", "/v1/ports", {**ours, "address": "52:54:79:00:00:01"})["uuid"]
        self.good("POST", "/v1/deploy_templates", {"name": "CUSTOM_EB", "steps": [STEP]})
        connector = {**ours, "type": "iqn"}
        target = {**ours, "volume_type": "iscsi", "volume_id": "v1"}
        self.good("POST", "/v1/volume/connectors", {**connector, "connector_id": "ebx"})
        self.good("POST", "/v1/volume/targets", {**target, "boot_index": 0})
        self.area_worlds = {
            "duplicate": self._duplicates,
            "inspection_rule": self._rule,
            "locked": self._locked,
            "steps": lambda: self.good("POST", "/v1/runbooks", {"name": "CUSTOM_A", "steps": [IN_RUNBOOK]}),
        }

    def _rule(self) -> None:
        body = {"actions": [{"op": "fail", "args": ["m"]}], "conditions": []}
        self.rule = self.good("POST", "/v1/inspection_rules", body)["uuid"]

    def _locked(self) -> None:
        self.set_nodes("eb1", reservation="otherhost", lock_purpose="work", locked_at=clock.now())

    def _hire_conductor(self) -> None:
        conductor_case.fake_hardware(self.conf)
        self.conf.set_override("host", api_case.HOST)
        self.bus.serve(api_case.HOST, manager.Conductor(self.conf, self.db).endpoint)

    def _duplicates(self) -> None:
        ours = {"node_uuid": self.node_uuid}
        self.good("POST", "/v1/deploy_templates", {"name": "CUSTOM_ERR", "steps": [STEP]})
        self.good("POST", "/v1/portgroups", {**ours, "name": "errpg", "address": "52:54:77:00:00:aa"})
        self.good("POST", "/v1/ports", {**ours, "address": "52:54:77:00:00:01"})
        self.good("POST", "/v1/volume/connectors", {**ours, "type": "iqn", "connector_id": "errx"})

    def set_nodes(self, *names: str, **values: Any) -> None:
        """Write columns of nodes, all by default, without the API; no flow runs in a state written this way."""
        if "provision_state" in values:
            values["flow"] = None
        statement = sa.update(nodes.NODES).values(values)
        with self.db.single() as connection:
            connection.execute(statement.where(nodes.NODES.c.name.in_(names)) if names else statement)

    def replay(self, area: str) -> None:
        self.area_worlds.get(area, lambda: None)()
        if area in OF_HARDWARE:
            self._hire_conductor()
        wrong = []
        for case in (case for case in MEASURED if case["area"] == area):
            name = f"{case['method']} {case['url']}"
            expected = intended_differences.expected(area, case["case"], name, case["status"])
            answer = self.send(case)
            if answer.status != expected:
                wrong.append(f"{case['case']}: {name} {case.get('body')}: not {expected} but {answer}")
            self.assertTrue(answer.status < 400 or case["method"] == "HEAD" or answer.message, answer)
        self.assertEqual([], wrong)

    def send(self, case: dict[str, Any]) -> api_case.Answer:
        self.arrange(case)
        path, _question, query = case["url"].partition("?")
        url = self.path(case, path) + (f"?{self.query(case, query)}" if query else "")
        return self.api(case["method"], url, self.body(case), case["version"])

    def arrange(self, case: dict[str, Any]) -> None:
        """Put the node in the state in which the request was measured."""
        if case["area"] in ("provision", "steps"):
            verb = case["body"].get("target") if case["method"] == "PUT" else None
            state = FROM.get(verb, states.MANAGEABLE)
            self.set_nodes("eb1", "st1", provision_state=state, reservation=None)
        if case["case"] == "clean with runbook + trait":
            for path in ("nodes/st1", "runbooks/CUSTOM_A"):
                self.good("PUT", f"/v1/{path}/traits/CUSTOM_A")
        if case["case"] == "manage in maintenance":
            self.set_nodes("eb1", provision_state=states.AVAILABLE)
        if case["case"] == "provide in maintenance":
            self.set_nodes("eb1", provision_state=states.MANAGEABLE)
        if case["area"] == "maintenance" and "power" not in case["case"] and case["case"][:5] in ("clean", "inspe"):
            self.set_nodes("eb1", provision_state=states.AVAILABLE)
        if case["area"] == "traits" and case["case"] == "single with empty body":
            self.good("PUT", "/v1/nodes/eb1/traits", {"traits": ["CUSTOM_A"]})
        if case["area"] == "names":
            self.set_nodes(name=None)  # measured with other names each
            self.set_nodes_named()

    def set_nodes_named(self) -> None:
        for name, known in self.uuids.items():
            with self.db.single() as connection:
                connection.execute(sa.update(nodes.NODES).where(nodes.NODES.c.uuid == known).values(name=name))

    def path(self, case: dict[str, Any], path: str) -> str:
        ours = {"chassis": self.chassis, "portgroups": self.portgroup, "ports": self.port}
        ours |= dict.fromkeys(("heartbeat", "nodes"), self.node_uuid)
        if case["area"] == "inspection_rule":
            ours["inspection_rules"] = self.rule
        known = ours.get(path.split("/")[2]) if "<uuid>" in path and case["area"] != "missing" else None
        path = path.replace("<uuid>", known or str(uuid.uuid4()))
        longest = int(re.sub(r"\D", "", case["case"]) or 300)
        return re.sub(r"[^/]*\.\.\.", lambda found: long_text(found[0], longest), path)

    def query(self, case: dict[str, Any], query: str) -> str:
        ours = {"node": self.node_uuid, "parent_node": self.node_uuid, "portgroup": self.portgroup}
        if case["status"] == 200:  # each was measured with a known and with an unknown uuid
            ours |= {"chassis_uuid": self.chassis, "node_uuid": self.node_uuid}
        for name, known in ours.items():
            query = re.sub(rf"\b{name}=<uuid>", f"{name}={known}", query)
        return query.replace("<uuid>", str(uuid.uuid4())).replace("<conductor>", api_case.HOST)

    def body(self, case: dict[str, Any]) -> Any:
        body = case.get("body")
        if case["area"] == "bad json" and isinstance(body, str):
            return body.encode()
        return self.filled(case, "", body)

    def filled(self, case: dict[str, Any], key: str, value: Any) -> Any:
        if isinstance(value, dict):
            if "path" in value:
                key = value["path"].strip("/")
            return {name: self.filled(case, key if name == "value" else name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.filled(case, key, inner) for inner in value]
        if value == "<uuid>":
            return self.some_uuid(case, key)
        if isinstance(value, str) and value.endswith("...") and case["area"] != "names":
            return long_text(value, long_as(case))
        return value

    def some_uuid(self, case: dict[str, Any], key: str) -> str:
        ours = {"chassis_uuid": self.chassis, "node_uuid": self.node_uuid, "portgroup_uuid": self.portgroup}
        if case["case"] == "parent self":
            return self.node_uuid
        if "instance" in case["case"]:
            return str(uuid.uuid4()) if case["case"].endswith("with other") else INSTANCE
        if case["area"] == "duplicate" and key == "uuid":
            return {"chassis": self.chassis, "nodes": self.node_uuid, "ports": self.port}[case["url"].split("/")[2]]
        if case["area"] in ("missing", "template") or "missing" in case["case"]:
            return str(uuid.uuid4())
        return ours.get(key, str(uuid.uuid4()))


def long_as(case: dict[str, Any]) -> int:
    """Return the length of an abbreviated text, as given in the case's name."""
    if "MB" in case["case"] or "kB" in case["case"]:
        return int(case["case"].split()[1][:-2]) * (1024**2 if "MB" in case["case"] else 1000)
    return int(re.sub(r"\D", "", case["case"]) or 300)


def long_text(short: str, length: int) -> str:
    """Expand the abbreviation of a text to a length: CUSTOM_A... or x..."""
    start = short.removesuffix("...")
    return start + start[-1] * (length - len(start))


def _test(area: str) -> Any:
    def test(self: Replay) -> None:
        self.replay(area)

    return test


for _area in sorted({case["area"] for case in MEASURED}):
    setattr(Replay, "test_" + re.sub(r"\W", "_", _area), _test(_area))
