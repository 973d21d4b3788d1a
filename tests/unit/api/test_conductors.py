"""Conductors by Ingot's own URLs: what each owns and has to do, what moves if one leaves, and draining."""

import threading
from typing import Any

from ingot.api.resources import conductors as resource
from ingot.common import errors
from ingot.db import conductors
from ingot.rpcapi import versions
from tests import api_case, database, identity_case, sql_counter
from tests.unit.api import test_audit

PATH = "/ingot/v1/conductors"


class ConductorsCase(api_case.ApiCase):
    def second(self, host: str = "conductor-2", **about: Any) -> api_case.FakeConductor:
        """Add an online conductor of the same group."""
        made = api_case.FakeConductor()
        self.bus.serve(host, made)
        known = {"conductor_group": "", "release": "0.3", "rpc_version": versions.RPC_VERSION, **about}
        conductors.register(self.db, host, known, api_case.enabled("fake-hardware", **api_case.PLAIN))
        return made

    def standings(self) -> dict[str, dict[str, Any]]:
        return {one["hostname"]: one for one in self.good("GET", PATH, version=None)["conductors"]}


class Standings(ConductorsCase):
    def test_each_says_what_it_has_to_do(self) -> None:
        self.second()
        for number in range(20):
            database.make_node(self.db, reservation=None if number else "conductor-1")
        database.make_node(self.db, driver="elsewhere")
        with sql_counter.counting(self.db) as counted:
            found = self.standings()
        self.assertLessEqual(len(counted), 6, counted)
        one, two = found["conductor-1"], found["conductor-2"]
        self.assertEqual((20, 1, 0), (one["nodes"] + two["nodes"], one["locked"], two["locked"]))
        self.assertEqual(("online", True, False), (one["state"], one["alive"], one["draining"]))
        self.assertEqual((["fake-hardware"], None, 2), (one["drivers"], one["load_error"], one["load"]["queue"]))
        self.assertEqual("192.0.2.7:623", one["load"]["breakers"][0]["address"])
        self.assertTrue(0 <= one["heartbeat_age"] < 600)

    def test_one_that_cannot_say_has_the_reason(self) -> None:
        self.second("old", rpc_version="1.2")
        self.second("away")
        self.bus.stop("away")
        self.second("failing").answers["get_load"] = errors.Invalid("no idea")
        gone = conductors.register(self.db, "gone", {"release": "0.3", "rpc_version": "1.3"}, [])
        conductors.unregister(self.db, gone)
        found = self.standings()
        self.assertIsNotNone(found["conductor-1"]["load"])
        for host, reason in (("old", "needs RPC 1.3"), ("away", "away"), ("failing", "no idea"), ("gone", "offline")):
            self.assertIsNone(found[host]["load"])
            self.assertIn(reason, found[host]["load_error"])
        self.assertEqual((False, "offline"), (found["gone"]["alive"], found["gone"]["state"]))

    def test_one_that_is_slow_keeps_no_other(self) -> None:
        ready = threading.Event()
        self.addCleanup(ready.set)

        class Slow(api_case.FakeConductor):
            def _answer(self, ctx: dict[str, Any], method: str, arguments: dict[str, Any]) -> Any:
                ready.wait(60)

        self.second("slow")
        self.bus.serve("slow", Slow())
        self.patch(resource, "_LOAD_WITHIN_S", 0.5)
        found = self.standings()
        self.assertIsNotNone(found["conductor-1"]["load"])
        self.assertIn("no answer within 0.5 s", found["slow"]["load_error"])

    def test_a_pinned_release_counts(self) -> None:
        self.conf.set_override("pin_release_version", "0.2")
        self.assertIn("asked with 1.1", self.standings()["conductor-1"]["load_error"])


class Draining(ConductorsCase):
    def test_what_moves_is_shown_before(self) -> None:
        self.second()
        self.second("conductor-3")
        self.register("alone", api_case.enabled("ipmi", **api_case.PLAIN), group="far")
        for _number in range(90):  # so many that some go to each
            database.make_node(self.db)
        database.make_node(self.db, driver="ipmi", conductor_group="far", reservation="alone")
        before = self.standings()
        shown = self.good("GET", f"{PATH}/conductor-1/leaving", version=None)
        self.assertEqual(
            (before["conductor-1"]["nodes"], 0, 0), tuple(shown[key] for key in ("nodes", "orphans", "busy"))
        )
        self.assertEqual(["conductor-2", "conductor-3"], [move["to"] for move in shown["moves"]])
        self.good("PUT", f"{PATH}/conductor-1/drain", version=None)
        self.client._rings.forget()
        after = self.standings()
        self.assertEqual((0, [], True), tuple(after["conductor-1"][key] for key in ("nodes", "drivers", "draining")))
        for move in shown["moves"]:
            self.assertEqual(before[move["to"]]["nodes"] + move["nodes"], after[move["to"]]["nodes"])
        alone = self.good("GET", f"{PATH}/alone/leaving", version=None)
        self.assertEqual({"nodes": 1, "moves": [], "orphans": 1, "busy": 1}, alone)
        nothing = self.good("GET", f"{PATH}/conductor-1/leaving", version=None)
        self.assertEqual({"nodes": 0, "moves": [], "orphans": 0, "busy": 0}, nothing)

    def test_nodes_are_not_left_without_a_conductor_unless_that_is_said(self) -> None:
        database.make_node(self.db)
        refusal = self.refused(409, "PUT", f"{PATH}/conductor-1/drain", version=None)
        self.assertIn("1 nodes of driver fake-hardware", refusal)
        self.assertIn("force=true", refusal)
        self.assertEqual("online", self.standings()["conductor-1"]["state"])
        self.good("PUT", f"{PATH}/conductor-1/drain?force=true", version=None)
        self.assertEqual("draining", self.standings()["conductor-1"]["state"])
        self.good("DELETE", f"{PATH}/conductor-1/drain", version=None)
        self.assertEqual("online", self.standings()["conductor-1"]["state"])

    def test_what_cannot_be_drained_is_said(self) -> None:
        self.second("old", rpc_version="1.0", release="0.1.0")
        self.assertIn("0.1.0", self.refused(409, "PUT", f"{PATH}/old/drain", version=None))
        for method, path in (("PUT", "drain"), ("DELETE", "drain"), ("GET", "leaving")):
            self.assertIn("missing", self.refused(404, method, f"{PATH}/missing/{path}", version=None))


class Audited(test_audit.AuditCase):
    def test_a_drain_is_in_the_audit_trail(self) -> None:
        self.good("PUT", f"{PATH}/conductor-1/drain", version=None)
        event = self.read()[0]
        self.assertEqual("ingot:conductors:drain", event["action"])
        self.assertEqual({"type": "conductors", "id": "conductor-1", "name": None}, event["target"])


class Rules(identity_case.IdentityCase):
    def test_readers_see_and_administrators_drain(self) -> None:
        for person, sees, drains in (
            ("system admin", 200, 202),
            ("system member", 200, 403),
            ("system reader", 200, 403),
            ("owner admin", 403, 403),
        ):
            self.assertEqual(sees, self.ask(person, "GET", PATH).status, person)
            self.assertEqual(sees, self.ask(person, "GET", f"{PATH}/conductor-1/leaving").status, person)
            for method in ("PUT", "DELETE"):
                self.assertEqual(drains, self.ask(person, method, f"{PATH}/conductor-1/drain").status, person)
