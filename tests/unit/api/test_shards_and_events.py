"""Shards as clients count them, and what a network service tells."""

import uuid
from typing import Any

from tests import api_case, database, sql_counter


class Shards(api_case.ApiCase):
    def test_each_is_counted_and_so_are_nodes_without(self) -> None:
        self.assertEqual({"shards": []}, self.good("GET", "/v1/shards"))
        for shard in ("b", "a", None, "b", None, None):
            database.make_node(self.db, shard=shard)
        with sql_counter.counting(self.db) as counted:
            found = self.good("GET", "/v1/shards")["shards"]
        self.assertEqual(1, len(counted))
        self.assertEqual([("None", 3), ("a", 1), ("b", 2)], [(one["name"], one["count"]) for one in found])

    def test_before_its_version_and_with_parameters_it_is_refused(self) -> None:
        self.refused(404, "GET", "/v1/shards", version="1.81")
        self.assertIn("x", self.refused(400, "GET", "/v1/shards?x=1"))
        self.refused(405, "POST", "/v1/shards", {})


class NetworkEvents(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.event: dict[str, Any] = {
            "event": "network.bind_port",
            "port_id": str(uuid.uuid4()),
            "mac_address": "de:ad:ca:fe:ba:be",
            "status": "ACTIVE",
            "device_id": str(uuid.uuid4()),
            "binding:host_id": None,
            "binding:vnic_type": "baremetal",
        }

    def test_known_events_are_taken(self) -> None:
        for name in ("network.bind_port", "network.unbind_port", "network.delete_port"):
            self.good("POST", "/v1/events", {"events": [self.event, {**self.event, "event": name}]})

    def test_what_is_wrong_is_named(self) -> None:
        for wrong, expected in (
            ({"event": "bogus"}, "bogus"),
            ({"port_id": "x"}, "port_id"),
            ({"mac_address": "x"}, "mac_address"),
            ({"more": 1}, "more"),
            *(({name: ...}, name) for name in ("event", "port_id", "mac_address", "status")),
        ):
            event = {name: value for name, value in {**self.event, **wrong}.items() if value is not ...}
            self.assertIn(expected, self.refused(400, "POST", "/v1/events", {"events": [event]}))
        for body in ({}, {"events": []}, {"events": "x"}, {"events": [1]}, {"foo": 1}):
            self.refused(400, "POST", "/v1/events", body)

    def test_versions(self) -> None:
        self.refused(404, "POST", "/v1/events", {"events": [self.event]}, "1.53")
        for version in ("1.1", "1.54", api_case.LATEST):
            self.assertIn(self.api("GET", "/v1/events", version=version).status, (404, 405))
