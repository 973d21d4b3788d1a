"""Details of the wire that clients rely on: empty values, filters, types, and which refusal comes first."""

from typing import Any

import sqlalchemy as sa

from ingot.db import models, nodes
from tests import api_case

MAC = "52:54:00:00:00:0"
RULE = {"conditions": [], "actions": [{"op": "log", "args": {"msg": "x"}}]}


class SmallPrint(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.register("conductor-2", api_case.enabled("fake-hardware", **api_case.PLAIN), "rack1")
        self.uuid = self.node(name="n", shard="s1")["uuid"]

    def port(self, number: int, node: str, **values: Any) -> Any:
        return self.good("POST", "/v1/ports", {"node_uuid": node, "address": f"{MAC}{number}", **values})

    def test_a_new_node_may_have_empty_network_data(self) -> None:
        self.assertEqual({}, self.node(network_data={})["network_data"])
        for value in ({}, {"links": []}):
            change = [{"op": "replace", "path": "/network_data", "value": value}]
            message = self.refused(400, "PATCH", f"/v1/nodes/{self.uuid}", change)
            self.assertIn("network_data", message)
            self.assertIn("networks", message)
        network = {"links": [], "networks": [], "services": []}
        for change, after in (
            ({"op": "add", "path": "/network_data", "value": network}, network),
            ({"op": "remove", "path": "/network_data"}, {}),
        ):
            self.assertEqual(after, self.good("PATCH", f"/v1/nodes/{self.uuid}", [change])["network_data"])

    def test_durations_are_whole_seconds(self) -> None:
        own = nodes.get(self.db, self.uuid, ("id",))
        rows = [
            {
                "uuid": f"{number}" * 8,
                "node_id": own.id,
                "severity": "INFO",
                "event_type": "x",
                "event": "x",
                "duration_seconds": seconds,
            }
            for number, seconds in enumerate((None, 0.0, 12.9))
        ]
        with self.db.single() as connection:
            connection.execute(sa.insert(models.table(models.NodeHistory)), rows)
        shown = [self.good("GET", f"/v1/nodes/n/history/{row['uuid']}")["duration_seconds"] for row in rows]
        self.assertEqual(["None", "0", "12"], list(map(str, shown)))

    def test_empty_filters_of_ports_filter_nothing(self) -> None:
        self.port(1, self.uuid)
        self.port(2, self.node(conductor_group="rack1")["uuid"])
        portgroup = self.good("POST", "/v1/portgroups", {"node_uuid": self.uuid})["uuid"]
        for query, found in (
            ("conductor_groups=", 2), ("shard=", 2), ("conductor_groups=&node=n", 1), ("conductor_groups=rack1", 1),
            ("conductor_groups=rack1,", 1), ("shard=s1", 1), ("shard=s2", 0),
        ):  # fmt: skip
            self.assertEqual(found, len(self.good("GET", f"/v1/ports?{query}")["ports"]), query)
        for query in ("conductor_groups=", "shard="):
            listed = self.good("GET", f"/v1/portgroups?{query}")["portgroups"]
            self.assertEqual([portgroup], [one["uuid"] for one in listed])
        self.assertEqual([], self.good("GET", "/v1/nodes?shard=")["nodes"])

    def test_inspection_rules_are_listed_by_phase(self) -> None:
        rule = self.good("POST", "/v1/inspection_rules", RULE)["uuid"]
        for query, found in (("phase=main", [rule]), ("phase=", [rule]), ("phase=other", [])):
            listed = self.good("GET", f"/v1/inspection_rules?{query}")["inspection_rules"]
            self.assertEqual(found, [one["uuid"] for one in listed])

    def test_the_switch_of_a_port_is_an_address(self) -> None:
        port = self.port(1, self.uuid)["uuid"]
        for given, kept in (
            ("0A:1B:2C:3D:4E:5F", "0a:1b:2c:3d:4e:5f"),
            ("00000A1B2C3D4E5F", "00000a1b2c3d4e5f"),
        ):
            link = {"switch_id": given, "port_id": "eth0"}
            change = [{"op": "add", "path": "/local_link_connection", "value": link}]
            shown = self.good("PATCH", f"/v1/ports/{port}", change)["local_link_connection"]
            self.assertEqual({"switch_id": kept, "port_id": "eth0"}, shown)
        for wrong in ("switch-1", "0a1b2c3d4e5f", "", "0a:1b:2c:3d:4e:5f:00"):
            for more in ({}, {"hostname": "h"}, {"network_type": "unmanaged"}):
                link = {"switch_id": wrong, "port_id": "eth0", **more}
                body = {"node_uuid": self.uuid, "address": f"{MAC}2", "local_link_connection": link}
                message = self.refused(400, "POST", "/v1/ports", body)
                for part in ("local_link_connection.switch_id", repr(wrong), "MAC address", "OpenFlow datapath ID"):
                    self.assertIn(part, message)

    def test_what_is_wrong_in_every_version_is_said_before_what_is_too_new(self) -> None:
        for status, method, path, body, version in (
            (400, "POST", "/v1/nodes", {"driver": 5, "shard": "s"}, "1.50"),
            (400, "POST", "/v1/nodes", {"driver": "fake-hardware", "shard": 5}, "1.50"),
            (400, "POST", "/v1/nodes", {"driver": "fake-hardware", "shard": "s", "colour": "red"}, "1.50"),
            (400, "POST", "/v1/nodes", {"driver": "fake-hardware", "shard": "s", "uuid": "x"}, "1.50"),
            (406, "POST", "/v1/nodes", {"driver": "fake-hardware", "shard": "s"}, "1.50"),
            (400, "POST", "/v1/ports", {"node_uuid": self.uuid, "description": "x"}, "1.50"),
            (400, "GET", "/v1/nodes?shard=s&limit=x", None, "1.50"),
            (400, "GET", "/v1/nodes?limit=x&shard=s", None, "1.50"),
            (406, "GET", "/v1/nodes?limit=1&shard=s", None, "1.50"),
            (400, "PUT", "/v1/nodes/n/states/power", {"target": 5, "timeout": 1}, "1.20"),
            (406, "PUT", "/v1/nodes/n/states/power", {"target": "power on", "timeout": 1}, "1.20"),
        ):
            self.refused(status, method, path, body, version)
