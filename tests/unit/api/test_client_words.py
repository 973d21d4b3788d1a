"""Refusals have the words that released clients and their tests look for, and name what is missing."""

from typing import Any

from ingot.api import routes
from ingot.common import states
from ingot.db import nodes
from tests import api_case

STEP = {"interface": "raid", "step": "apply_configuration", "args": {}, "priority": 90}
BAD_UUID = "!@#$^*&%^"
MAC = "52:54:00:00:00:01"

CREATED: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("nodes", {"driver": "fake-hardware", "uuid": BAD_UUID}, "Expected UUID for uuid"),
    ("nodes", {"driver": "fake-hardware", "name": "a b"}, "invalid name"),
    ("nodes", {"driver": "fake-hardware", "name": "detail"}, "invalid name"),
    ("chassis", {"uuid": BAD_UUID}, "Expected UUID for uuid"),
    ("portgroups", {"node_uuid": "<node>", "name": "a b"}, "invalid name"),
    ("ports", {"node_uuid": "<node>", "address": "52-54"}, "Expected valid MAC address for address"),
    ("ports", {"node_uuid": "x", "address": MAC}, "Expected UUID for node_uuid"),
    ("deploy_templates", {"name": "CUSTOM_A", "steps": [STEP], "uuid": BAD_UUID}, "Expected UUID for uuid"),
    ("deploy_templates", {"name": "not/a/name", "steps": [STEP]}, "does not match"),
    ("deploy_templates", {"name": "foo", "steps": [STEP]}, "does not match"),
    ("deploy_templates", {"name": "CUSTOM_A", "steps": []}, "is too short"),
    ("allocations", {"resource_class": "a", "uuid": BAD_UUID}, "Expected UUID for uuid"),
    ("allocations", {"resource_class": "a", "name": "not/a/name"}, "invalid name"),
    ("allocations", {"resource_class": "x" * 81}, "is too long"),
    ("allocations", {"resource_class": "a", "traits": ["foo"]}, "does not match"),
    ("allocations", {"resource_class": "a", "candidate_nodes": ["banana?"]}, "Nodes cannot be found"),
)
"""What is created, and words of the refusal: what the functional tests of python-ironicclient send, and its like."""

REQUESTS = (
    ("states/power", "target"), ("states/provision", "target"), ("states/console", "enabled"),
    ("states/boot_mode", "target"), ("states/secure_boot", "target"), ("management/boot_device", "boot_device"),
)  # fmt: skip
"""What is set of a node, with the parameter that it cannot do without."""


class ClientWords(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.node(name="n")["uuid"]

    def test_of_what_cannot_be_created(self) -> None:
        for path, body, words in CREATED:
            given = {name: self.uuid if value == "<node>" else value for name, value in body.items()}
            self.assertIn(words, self.refused(400, "POST", f"/v1/{path}", given))

    def test_of_a_host_name(self) -> None:
        body = {"driver": "fake-hardware", "name": "a_b"}
        self.assertIn("invalid name", self.refused(400, "POST", "/v1/nodes", body, "1.9"))

    def test_of_identifiers_in_urls(self) -> None:
        self.assertIn("Expected UUID or name for node", self.refused(400, "GET", "/v1/nodes/a%20b"))
        self.assertIn("Expected UUID for chassis", self.refused(400, "GET", "/v1/chassis/x"))

    def test_of_a_missing_parameter(self) -> None:
        for path, name in REQUESTS:
            message = self.refused(400, "PUT", f"/v1/nodes/n/{path}", {})
            self.assertIn(f"Missing mandatory parameter: {name}", message)

    def test_of_a_missing_identifier(self) -> None:
        names = {"/v1/nodes": "node_ident", "/v1/ports": "port_uuid", "/v1/volume/targets": "target_uuid"}
        asked = 0
        for route in routes.ROUTES:
            for method, operation in route.operations.items():
                if operation.handler.__name__ == "without_ident":
                    message = self.refused(400, method, route.path)
                    self.assertRegex(message, r"Missing mandatory parameter: \w+_(ident|uuid)\b")
                    self.assertIn(names.get(route.path, ""), message)
                    asked += 1
        self.assertGreater(asked, 20)

    def test_of_the_connectivity_of_ports(self) -> None:
        port = self.good("POST", "/v1/ports", {"node_uuid": self.uuid, "address": MAC})["uuid"]
        nodes.set_always(self.db, self.uuid, {"provision_state": states.ACTIVE})
        for path, value, words in (
            ("/pxe_enabled", False, "connectivity attributes (pxe_enabled)"),
            ("/physical_network", "net1", "connectivity attributes (physical_network)"),
            ("/address", "52:54:00:00:00:02", "Cannot update port"),
        ):
            message = self.refused(409, "PATCH", f"/v1/ports/{port}", [{"op": "add", "path": path, "value": value}])
            for part in (words, port, self.uuid, '"active"'):
                self.assertIn(part, message)

    def test_of_names_in_old_versions(self) -> None:
        for method, path in (("GET", "/v1/nodes/n"), ("DELETE", "/v1/nodes/n"), ("GET", "/v1/nodes/n/states")):
            message = self.refused(404, method, path, version="1.4")
            for part in ("Node n could not be found", "1.5", "1.4", "UUID"):
                self.assertIn(part, message)
        self.good("GET", f"/v1/nodes/{self.uuid}", version="1.4")
        self.assertNotIn("1.5", self.refused(404, "GET", "/v1/nodes/m", version="1.5"))
