"""What was read from machines: a later reading replaces an earlier one, and only the holder of the lock writes."""

from typing import Any

from ingot.common import clock, errors
from ingot.db import facts, inventory, models, node_crud, nodes
from tests import database, sql_counter

ON = {"name": "virtualization", "value": "on", "allowable_values": ["on", "off"], "unique": False}
TIMEOUT = {"name": "Timeout", "value": "5", "upper_bound": 60}


class FactsOnSQLite(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db)
        self.node = nodes.lock(self.db, self.known.uuid, "one", "reading")

    def read(self, *settings: dict[str, Any], node: models.Node | None = None) -> None:
        written = [facts.BIOS.build_write(self.known.id, settings)]
        nodes.write_locked(self.db, node or self.node, {}, extra_writes=written)

    def settings(self) -> dict[str, models.Record]:
        return {setting.name: setting for setting in facts.BIOS.list_of_node(self.db, self.known.id)}

    def test_are_kept_by_name(self) -> None:
        self.read(TIMEOUT, ON)
        self.assertEqual({"Timeout", "virtualization"}, set(self.settings()))
        kept = facts.BIOS.get(self.db, self.node, "virtualization")
        self.assertEqual(
            ("on", ["on", "off"], False, None), (kept.value, kept.allowable_values, kept.unique, kept.read_only)
        )
        self.assertEqual([], facts.BIOS.get(self.db, self.node, "Timeout").allowable_values)
        for other in ("timeout", "x", "v" * 300):
            refused = self.assertRaises(errors.NotFound, facts.BIOS.get, self.db, self.node, other)
            self.assertIn(other[:255], refused.message)

    def test_a_later_reading_replaces_what_changed_and_nothing_else(self) -> None:
        self.read(ON, TIMEOUT)
        before = self.settings()
        self.read({**ON, "value": "off"}, {"name": "new", "value": None})
        now = self.settings()
        self.assertEqual({"virtualization", "new"}, set(now))
        self.assertEqual((before["virtualization"].created_at, "off"),
                         (now["virtualization"].created_at, now["virtualization"].value))  # fmt: skip
        self.assertIsNotNone(now["virtualization"].updated_at)
        self.read({"name": "virtualization", "value": "off"}, {"name": "new", "value": None})
        self.assertEqual(now, self.settings())  # a reading that says less changes nothing
        self.read()
        self.assertEqual({}, self.settings())

    def test_costs_three_statements_and_one_for_each_change(self) -> None:
        self.assertEqual(3, self.statements(ON, TIMEOUT))
        self.assertEqual(2, self.statements(ON, TIMEOUT))
        self.assertEqual(5, self.statements({**ON, "value": "off"}, {"name": "new", "value": "1"}))

    def statements(self, *settings: dict[str, Any]) -> int:
        """Return how many statements a reading takes, but for the transaction around them."""
        with sql_counter.counting(self.db) as counted:
            self.read(*settings)
        return len([text for text in counted.statements if not text.startswith("BEGIN")])

    def test_whose_lock_was_stolen_cannot_write(self) -> None:
        self.read(ON)
        nodes.release_stale(self.db, "one")
        self.assertRaises(errors.LockLost, self.read, TIMEOUT)
        other = nodes.lock(self.db, self.known.uuid, "two", "reading")
        self.assertRaises(errors.LockLost, self.read, TIMEOUT)
        self.assertEqual({"virtualization"}, set(self.settings()))
        self.read(TIMEOUT, node=other)
        self.assertEqual({"Timeout"}, set(self.settings()))

    def test_the_first_version_of_firmware_stays(self) -> None:
        for version in ("1", "2"):
            component = {"component": "bmc", "initial_version": version, "current_version": version}
            written = [facts.FIRMWARE.build_write(self.known.id, [component])]
            nodes.write_locked(self.db, self.node, {}, extra_writes=written)
        (kept,) = facts.FIRMWARE.list_of_node(self.db, self.known.id)
        self.assertEqual(("1", "2"), (kept.initial_version, kept.current_version))

    def test_an_inventory_replaces_the_one_before(self) -> None:
        self.assertRaises(errors.NotFound, inventory.get, self.db, self.known)
        for cores in (4, 8):
            inventory.save(self.db, self.known.id, {"cpu": {"count": cores}}, {"logs": "x" * 70000})
        kept = inventory.get(self.db, self.known)
        self.assertEqual((8, 70000), (kept.inventory["cpu"]["count"], len(kept.plugin_data["logs"])))

    def test_the_inventory_before_is_kept(self) -> None:
        self.assertIsNone(inventory.find_before(self.db, self.known.id))
        for cores in (4, 8, 16):
            inventory.save(self.db, self.known.id, {"cpu": {"count": cores}}, {})
        former = inventory.find_before(self.db, self.known.id)
        assert former is not None
        self.assertEqual(8, former.inventory["cpu"]["count"])
        self.assertLess(former.inspected_at, inventory.get(self.db, self.known).inspected_at)

    def test_what_an_inspection_sends_again_is_not_the_one_before(self) -> None:
        inventory.save(self.db, self.known.id, {"cpu": 1}, {})
        last = clock.iso(inventory.get(self.db, self.known).inspected_at)
        nodes.set_always(self.db, self.known.uuid, {"request": {"inventory_before": last}})
        for found, once in (({"cpu": 2}, True), ({"cpu": 2}, True), ({"cpu": 3}, False)):
            inventory.save(self.db, self.known.id, found, {}, once)
        former = inventory.find_before(self.db, self.known.id)
        assert former is not None
        self.assertEqual(({"cpu": 1}, {"cpu": 3}), (former.inventory, inventory.get(self.db, self.known).inventory))

    def test_an_inventory_of_a_node_that_is_gone(self) -> None:
        refusal = self.assertRaises(errors.NotFound, inventory.save, self.db, self.known.id + 1, {}, {})
        self.assertIn("deleted", str(refusal))

    def test_all_of_it_goes_with_the_node(self) -> None:
        self.read(ON)
        inventory.save(self.db, self.known.id, {}, {})
        nodes.release_stale(self.db, "one")
        node_crud.delete(self.db, nodes.get(self.db, self.known.uuid))
        self.assertEqual({}, self.settings())
        self.assertRaises(errors.NotFound, inventory.get, self.db, self.known)
