"""What is different since the inspection before, whatever the order in which things were found."""

from typing import Any

from ingot.common import clock
from ingot.db import inventory
from tests import api_case, database, sql_counter

NIC = {"name": "eth0", "mac_address": "52:54:00:00:00:01", "speed_mbps": 1000}
OTHER_NIC = {"name": "eth1", "mac_address": "52:54:00:00:00:02", "speed_mbps": 1000}
DISK = {"name": "/dev/sda", "serial": "S1", "size": 10}


class InventoryChanges(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n")

    def changes(self, before: Any, after: Any) -> list[tuple[str, Any, Any]]:
        for found in (before, after):
            inventory.save(self.db, self.known.id, found, {})
        answer = self.good("GET", "/ingot/v1/nodes/n/inventory/changes", version=None)
        self.assertLess(answer["before_at"], answer["inspected_at"])
        return [(one["path"], one["before"], one["after"]) for one in answer["changes"]]

    def test_parts_are_known_by_what_is_their_own(self) -> None:
        faster = {**OTHER_NIC, "speed_mbps": 25000}
        before = {"interfaces": [NIC, OTHER_NIC], "disks": [DISK]}
        after = {"interfaces": [faster, NIC], "disks": [{**DISK, "name": "/dev/sdb"}]}
        expected = [
            ("interfaces[52:54:00:00:00:02].speed_mbps", 1000, 25000),
            ("disks[S1].name", "/dev/sda", "/dev/sdb"),
        ]
        self.assertEqual(expected, self.changes(before, after))

    def test_what_came_and_what_is_gone(self) -> None:
        new = {"name": "/dev/sdc", "serial": "S2", "size": 20}
        self.assertEqual(
            [("disks[S1]", DISK, None), ("disks[S2]", None, new), ("memory.total", 1, 2), ("tpm", None, True)],
            self.changes(
                {"disks": [DISK], "memory": {"total": 1}}, {"disks": [new], "memory": {"total": 2}, "tpm": True}
            ),
        )

    def test_the_order_of_a_list_means_nothing(self) -> None:
        nameless = [{"size": 1}, {"size": 2}, {"size": 2}]
        self.assertEqual(
            [], self.changes({"flags": ["a", "b"], "x": nameless}, {"flags": ["b", "a"], "x": nameless[::-1]})
        )
        self.assertEqual([("flags", ["a"], ["c"])], self.changes({"flags": ["a", "b"]}, {"flags": ["b", "c"]}))
        self.assertEqual([("x", [{"size": 2}], None)], self.changes({"x": nameless}, {"x": nameless[:2]}))

    def test_disks_without_serial_are_known_by_name(self) -> None:
        before = [{"name": "a", "serial": None, "size": 1}, {"name": "b", "serial": "S", "size": 1}]
        after = [{"name": "a", "serial": None, "size": 2}, {"name": "b", "serial": "S", "size": 1}]
        self.assertEqual([("disks[a].size", 1, 2)], self.changes({"disks": before}, {"disks": after}))

    def test_before_there_are_two(self) -> None:
        path = "/ingot/v1/nodes/n/inventory/changes"
        nothing = {"inspected_at": None, "before_at": None, "changes": []}
        self.assertEqual(nothing, self.good("GET", path, version=None))
        inventory.save(self.db, self.known.id, {"cpu": 1}, {})
        moment = clock.iso(inventory.get(self.db, self.known).inspected_at)
        with sql_counter.counting(self.db) as counted:
            answer = self.good("GET", path, version=None)
        self.assertEqual({"inspected_at": moment, "before_at": None, "changes": []}, answer)
        self.assertEqual(3, len(counted), counted)
