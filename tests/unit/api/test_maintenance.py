"""Maintenance through the API: the flag that OpenStack's clients know, and the holds behind it."""

from typing import Any

from ingot.api.nodes.verbs import VERBS
from ingot.common import states
from ingot.db import maintenance, nodes, restoring
from tests import api_case, database

HOLDS = "/ingot/v1/nodes/n/maintenance"
FLAG = "/v1/nodes/n/maintenance"


class MaintenanceCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n", provision_state=states.AVAILABLE)

    def flag(self) -> tuple[Any, ...]:
        node = self.good("GET", "/v1/nodes/n")
        return node["maintenance"], node["maintenance_reason"], node["fault"]

    def names(self) -> list[str]:
        return [hold["name"] for hold in self.good("GET", HOLDS)["holds"]]

    def put(self, name: str, **hold: str) -> None:
        self.assertEqual(204, self.api("PUT", f"{HOLDS}/{name}", hold).status)

    def fail(self, fault: str) -> None:
        hold = maintenance.fault_hold(fault, "broken", "conductor-1")
        maintenance.write_holds(self.db, self.known.uuid, lambda node: maintenance.add_hold(node, hold))


class Holds(MaintenanceCase):
    def test_are_put_shown_and_taken_away_by_name(self) -> None:
        self.put("fan", reason="new fan")
        shown = self.good("GET", f"{HOLDS}/fan")
        self.assertEqual(("fan", "all", "new fan"), (shown["name"], shown["scope"], shown["reason"]))
        self.put("fan", reason="new fan")
        self.assertEqual({"holds": [shown]}, self.good("GET", HOLDS))
        self.assertEqual(204, self.api("DELETE", f"{HOLDS}/fan").status)
        self.assertEqual((False, None, None), self.flag())

    def test_of_several_holders_stand_together(self) -> None:
        self.put("fan", reason="new fan")
        self.put("audit", reason="counted", scope="provision")
        self.api("DELETE", f"{HOLDS}/audit")
        self.assertEqual((True, "new fan", None), self.flag())

    def test_say_what_is_wrong_with_a_request(self) -> None:
        self.assertIn("sync", self.refused(400, "PUT", f"{HOLDS}/fan", {"scope": "everything"}))
        self.assertIn("a b", self.refused(400, "PUT", f"{HOLDS}/a%20b", {}))
        for method in ("GET", "DELETE"):
            self.assertIn("fan", self.refused(404, method, f"{HOLDS}/fan"))
        self.fail("clean failure")
        self.assertIn("A name has", self.refused(400, "PUT", f"{HOLDS}/clean%20failure", {}))

    def test_of_faults_are_shown_and_can_be_taken_away(self) -> None:
        self.fail("clean failure")
        (hold,) = self.good("GET", HOLDS)["holds"]
        self.assertEqual(("clean failure", "conductor-1", None), (hold["fault"], hold["conductor"], hold["user"]))
        self.assertEqual(204, self.api("DELETE", f"{HOLDS}/clean%20failure").status)
        self.assertEqual((False, None, None), self.flag())

    def test_that_raise_the_flag_keep_nodes_from_being_deployed_and_others_do_not(self) -> None:
        target = {"target": "active"}
        for scope, taken in (("all", False), ("provision", False), ("sync", True)):
            with self.subTest(scope=scope):
                self.put("fan", scope=scope, reason="new fan")
                answer = self.api("PUT", "/v1/nodes/n/states/provision", target)
                self.assertEqual(202 if taken else 400, answer.status, answer)
                if not taken:
                    self.assertIn("new fan", answer.message)


class Flag(MaintenanceCase):
    def test_is_a_hold_of_the_user_who_sets_it(self) -> None:
        for reason in ("hot", "hotter", None):
            self.assertEqual(202, self.api("PUT", FLAG, {"reason": reason}).status)
            self.assertEqual((True, reason, None), self.flag())
        self.assertEqual(["flag:"], self.names())

    def test_is_down_after_it_was_cleared_by_any_conductor(self) -> None:
        self.put("fan", reason="new fan")
        self.put("bmc", scope="sync")
        self.api("PUT", FLAG, {"reason": "hot"})
        self.fail("power failure")
        for _twice in range(2):
            self.assertEqual(202, self.api("DELETE", FLAG).status)
            self.assertEqual((False, None, None), self.flag())
        self.assertEqual(["bmc"], self.names())

    def test_set_over_a_fault_shows_the_reason_of_the_user(self) -> None:
        self.fail("power failure")
        self.assertEqual((True, "broken", "power failure"), self.flag())
        self.api("PUT", FLAG, {"reason": "hot"})
        self.assertEqual((True, "hot", None), self.flag())
        self.assertEqual(["power failure", "flag:"], self.names())

    def test_can_be_patched_and_given_to_new_nodes(self) -> None:
        for raised, names in ((True, ["flag:"]), (False, [])):
            self.good("PATCH", "/v1/nodes/n", [{"op": "replace", "path": "/maintenance", "value": raised}])
            self.assertEqual((raised, names), (self.flag()[0], self.names()))
        made = self.good("POST", "/v1/nodes", {**api_case.NODE, "maintenance": True})
        self.assertTrue(made["maintenance"])
        (hold,) = self.good("GET", f"/ingot/v1/nodes/{made['uuid']}/maintenance")["holds"]
        self.assertEqual(("flag:", "all"), (hold["name"], hold["scope"]))

    def test_goes_up_and_down_whichever_conductor_has_the_lock(self) -> None:
        nodes.lock(self.db, "n", "conductor-1", "deploying")
        self.assertEqual(202, self.api("PUT", FLAG, {"reason": "hot"}).status)
        self.put("fan")
        self.assertEqual(202, self.api("DELETE", FLAG).status)
        self.assertEqual((False, None, None), self.flag())


class Restored(MaintenanceCase):
    """A node of a restored database, before an operator confirms it: who uses it now is not in that database."""

    def restore(self, state: str) -> None:
        self.set_columns(provision_state=state)
        restoring.restore(self.db)

    def set_columns(self, **values: object) -> None:
        nodes.compare_and_set(self.db, nodes.get(self.db, self.known.uuid), values)

    def test_begins_no_flow(self) -> None:
        tried = 0
        for verb in VERBS.values():
            for state in states.STABLE | states.FAILED:
                if verb.flow is None or state not in verb.flow_in or not states.requested_state(state, verb.event):
                    continue
                self.restore(state)
                needed = {"clean_steps": [{"interface": "deploy", "step": "erase_devices"}], "rescue_password": "x"}
                needed["service_steps"] = needed["clean_steps"]
                body = {"target": verb.name, **{name: needed[name] for name in verb.needs if name in needed}}
                said = self.refused(409, "PUT", "/v1/nodes/n/states/provision", body)
                self.assertIn("ingot-dbsync confirm", said)
                now = nodes.get(self.db, self.known.uuid)
                self.assertEqual((state, None, None), (now.provision_state, now.flow, now.due_at))
                tried += 1
        self.assertGreater(tried, 20)

    def test_stays_in_maintenance_until_it_is_confirmed(self) -> None:
        self.restore(states.ACTIVE)
        self.api("PUT", FLAG, {"reason": "mine"})
        held = self.names()
        patch = [{"op": "replace", "path": "/maintenance", "value": False}]
        for method, path, body in (
            ("DELETE", FLAG, None),
            ("DELETE", f"{HOLDS}/{held[0]}", None),
            ("PATCH", "/v1/nodes/n", patch),
        ):
            self.assertIn("ingot-dbsync confirm", self.refused(409, method, path, body))
        self.refused(400, "PUT", f"{HOLDS}/database:restored", {})
        self.assertEqual(held, self.names())
        restoring.confirm(self.db, [self.known.uuid])
        self.assertEqual(202, self.api("DELETE", FLAG).status)
        self.assertEqual([], self.names())
