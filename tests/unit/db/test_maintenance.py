"""The holds of a node, and what earlier releases, which know the flag only, make of them."""

import threading
from typing import Any

from ingot.common import context, errors
from ingot.db import events, maintenance, models, node_lists, nodes
from tests import database

ANN, BOB = (context.RequestContext(user_id=name, project_id="p", overwrite=False) for name in ("ann", "bob"))
BY_FIRST_RELEASE = {"maintenance": True, "maintenance_reason": "hot", "fault": None}
NO_FLAG = {"maintenance": False, "maintenance_reason": None, "fault": None}


class HoldsOnSQLite(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = database.make_node(self.db).uuid

    def node(self) -> models.Node:
        return nodes.get(self.db, self.uuid, (*maintenance.FLAG, "revision"))

    def put(self, ctx: context.RequestContext, name: str, reason: str | None = None, scope: str = "all") -> None:
        hold = maintenance.user_hold(ctx, reason, name, scope)
        maintenance.write_holds(self.db, self.uuid, lambda node: maintenance.add_hold(node, hold))

    def end(self, name: str) -> None:
        maintenance.write_holds(
            self.db, self.uuid, lambda node: maintenance.end_holds(node, lambda hold: hold["name"] == name)
        )

    def fail(self, fault: str) -> None:
        hold = maintenance.fault_hold(fault, "broken", "conductor-1")
        maintenance.write_holds(self.db, self.uuid, lambda node: maintenance.add_hold(node, hold))

    def flag(self) -> tuple[Any, ...]:
        node = self.node()
        return node.maintenance, node.maintenance_reason, node.fault

    def names(self) -> list[str]:
        return [hold["name"] for hold in maintenance.read_holds(self.node())]

    def test_the_flag_stands_until_the_last_hold_is_taken_away(self) -> None:
        self.put(ANN, "fan", "new fan")
        self.put(BOB, "audit", "counted")
        self.assertEqual((True, "counted", None), self.flag())
        self.end("audit")
        self.assertEqual((True, "new fan", None), self.flag())
        self.end("fan")
        self.assertEqual((False, None, None), self.flag())
        self.assertEqual([], self.names())

    def test_it_names_holder_purpose_time_and_request(self) -> None:
        self.put(ANN, "fan", "new fan", "provision")
        (hold,) = maintenance.read_holds(self.node())
        shown = [hold[name] for name in ("name", "user", "project", "reason", "scope", "fault", "conductor")]
        self.assertEqual(["fan", "ann", "p", "new fan", "provision", None, None], shown)
        self.put(ANN, "fan", "two fans")
        (changed,) = maintenance.read_holds(self.node())
        self.assertEqual(("two fans", "all", hold["since"]), (changed["reason"], changed["scope"], changed["since"]))

    def test_a_name_of_another_process_is_refused(self) -> None:
        self.put(ANN, "fan")
        self.fail("clean failure")
        refusal = self.assertRaises(errors.Conflict, self.put, BOB, "fan")
        self.assertIn("user ann", refusal.message)
        self.assertEqual(["fan", "clean failure"], self.names())

    def test_only_two_scopes_raise_the_flag(self) -> None:
        for scope, flagged in (("all", True), ("provision", True), ("sync", False)):
            self.put(ANN, scope, scope=scope)
            self.assertEqual(flagged, self.flag()[0], scope)
            self.end(scope)

    def test_only_two_scopes_end_the_reading_of_power(self) -> None:
        for scope, read in (("all", False), ("provision", True), ("sync", False)):
            self.put(ANN, scope, scope=scope)
            self.assertEqual(read, bool(node_lists.list_for_power_sync(self.db, "", ["fake-hardware"])), scope)
            self.end(scope)

    def test_a_fault_and_a_user_hold_at_once_and_each_ends_for_itself(self) -> None:
        self.fail("power failure")
        self.put(ANN, "fan", "new fan")
        self.assertEqual((True, "new fan", None), self.flag())
        self.assertTrue(maintenance.has_fault(self.node(), "power failure"))
        self.end("fan")
        self.assertEqual((True, "broken", "power failure"), self.flag())
        self.put(ANN, "fan", "new fan")
        self.end("power failure")
        self.assertEqual((True, "new fan", None), self.flag())

    def test_clearing_the_flag_ends_all_that_raise_it_and_nothing_else(self) -> None:
        self.put(ANN, "fan")
        self.put(BOB, "bmc", scope="sync")
        self.fail("clean failure")
        maintenance.write_holds(self.db, self.uuid, lambda node: maintenance.set_flag(node, BOB, False))
        self.assertEqual((False, None, None), self.flag())
        self.assertEqual(["bmc"], self.names())

    def test_holds_of_many_at_once_all_stand(self) -> None:
        def hold(name: str) -> None:
            for number in range(5):
                self.put(ANN, f"{name}-{number}")

        holding = [threading.Thread(target=hold, args=(name,)) for name in "abcd"]
        for thread in holding:
            thread.start()
        for thread in holding:
            thread.join()
        self.assertEqual(sorted(f"{name}-{number}" for name in "abcd" for number in range(5)), sorted(self.names()))

    def test_a_node_that_changed_since_it_was_read_is_not_written(self) -> None:
        revision = self.node().revision
        self.put(ANN, "fan")
        self.assertRaises(
            errors.ChangedMeanwhile,
            maintenance.write_holds,
            *(self.db, self.uuid, lambda node: maintenance.set_flag(node, ANN, False), revision),
        )
        self.assertEqual(["fan"], self.names())
        with self.db.single() as connection:
            connection.execute(nodes.NODES.delete())
        self.assertRaises(errors.NotFound, self.put, ANN, "fan")

    def test_a_change_is_reported_once_and_a_write_without_change_is_not(self) -> None:
        self.put(ANN, "fan", "new fan")
        self.put(ANN, "fan", "new fan")
        events.collect(self.db, 30.0)
        recorded = [event for event in events.read_page(self.db, 0, 10) if event.kind == "maintenance"]
        self.assertEqual([(True, "new fan", None)], [self._flag_of(event) for event in recorded])
        self.assertEqual("ann", recorded[0].data["maintenance_holds"][0]["user"])

    def _flag_of(self, event: models.Record) -> tuple[Any, ...]:
        return tuple(event.data[name] for name in ("maintenance", "maintenance_reason", "fault"))

    def first_release(self, values: dict[str, Any]) -> None:
        """Write as release 0.1 does, which has no holds."""
        nodes.set_always(self.db, self.uuid, values)

    def test_the_flag_of_the_first_release_is_a_hold_of_an_unknown_user(self) -> None:
        self.first_release(BY_FIRST_RELEASE)
        (hold,) = maintenance.read_holds(self.node())
        self.assertEqual(("flag:", "hot", "all", None), tuple(hold[n] for n in ("name", "reason", "scope", "since")))
        self.first_release({**BY_FIRST_RELEASE, "fault": "power failure"})
        (hold,) = maintenance.read_holds(self.node())
        self.assertEqual(("power failure", "provision"), (hold["fault"], hold["scope"]))
        self.assertTrue(node_lists.list_for_power_sync(self.db, "", ["fake-hardware"]))
        self.put(ANN, "fan", "new fan")
        self.assertEqual(["power failure", "fan"], self.names())

    def test_what_the_first_release_cleared_stays_cleared(self) -> None:
        self.put(ANN, "fan")
        self.put(BOB, "bmc", scope="sync")
        self.first_release(NO_FLAG)
        self.assertEqual(["bmc"], self.names())
        self.first_release(BY_FIRST_RELEASE)
        self.assertEqual(["bmc", "flag:"], self.names())
        self.end("flag:")
        self.assertEqual(((False, None, None), ["bmc"]), (self.flag(), self.names()))
