"""The fleet: what a typed filter finds, in which order, at which cost, and for whom."""

import datetime
import pathlib
import re
import urllib.parse
from typing import Any

import testtools

from ingot.api.nodes import fleet_filter
from ingot.common import clock, states, triage, waits
from ingot.db import models, nodes
from tests import api_case, database, identity_case, sql_counter

PATH = "/ingot/v1/fleet"
SOURCE = pathlib.Path(__file__).parents[3] / "doc" / "source" / "operator"


class FleetCase(api_case.ApiCase):
    def ask(self, text: str = "", **query: Any) -> dict[str, Any]:
        given = {"filter": text, **query} if text else query
        answer: dict[str, Any] = self.good("GET", f"{PATH}?{urllib.parse.urlencode(given)}", version=None)
        return answer

    def names(self, text: str = "", **query: Any) -> list[str]:
        answer = self.ask(text, **query)
        found = [node["name"] for node in answer["nodes"]]
        self.assertEqual(len(found), answer["matching"])
        return found

    def objection(self, text: str) -> str:
        return self.refused(400, "GET", f"{PATH}?{urllib.parse.urlencode({'filter': text})}", version=None)


class Filtering(FleetCase):
    def setUp(self) -> None:
        super().setUp()
        lately, long_ago = clock.now(), clock.after(-7 * 86400)
        self.a = database.make_node(
            self.db, name="a", provision_state=states.ACTIVE, resource_class="Gold", owner="blue", lessee="red",
            instance_uuid="11111111-2222-3333-4444-555555555555", provision_updated_at=lately, power_state="power on",
        )  # fmt: skip
        self.b = database.make_node(
            self.db, name="b", provision_state=states.CLEANWAIT, resource_class="goldfish", owner="red",
            provision_updated_at=long_ago, shard="s_1", description="next to the Ärgernis, 100% slow",
        )  # fmt: skip
        self.c = database.make_node(
            self.db, name="c", provision_state=states.DEPLOYFAIL, fault="power failure", maintenance=True,
            reservation="conductor-1", conductor_group="rack", driver="ipmi", target_provision_state=states.ACTIVE,
        )  # fmt: skip
        self.good("PUT", "/v1/nodes/a/traits/CUSTOM_FAST")
        port = {"node_uuid": self.b.uuid, "address": "52:54:00:AB:cd:01"}
        self.good("POST", "/v1/ports", port)

    def test_each_key(self) -> None:
        for text, expected in (
            ("name:a", "a"),
            ("name:A,b", "ab"),
            (f"uuid:{self.b.uuid}", "b"),
            (f"uuid:{self.b.uuid[:13].upper()}", "b"),
            ("state:active", "a"),
            ("state:clean*", "b"),
            ('state:"clean wait",active', "ab"),
            ("state:Clean-Wait", "b"),
            ("state:failed", "c"),
            ("state:waiting,failed", "bc"),
            ("state:working", ""),
            ("target:active", "c"),
            ("power:on", "a"),
            ("power:power-on", "a"),
            ("driver:IPMI", "c"),
            ("driver:fake*", "ab"),
            ("class:gold", "a"),
            ("class:GOLD*", "ab"),
            ("class:*", "ab"),
            ('class:""', "c"),
            ("group:rack", "c"),
            ("-group:*", "ab"),
            ("owner:red", "b"),
            ("lessee:red", "a"),
            ("project:red", "ab"),
            ("maintenance:yes", "c"),
            ("maintenance:no", "ab"),
            ("-maintenance:yes", "ab"),
            ("fault:power*", "c"),
            ("fault:*", "c"),
            ("locked:yes", "c"),
            ("locked:no", "ab"),
            ("shard:s_*", "b"),
            ("shard:s%*", ""),
            ("instance:11111111", "a"),
            ("instance:*", "a"),
            ("-instance:*", "bc"),
            ('instance:""', "bc"),
            ("trait:custom_fast", "a"),
            ("trait:CUSTOM_*", "a"),
            ("-trait:CUSTOM_*", "bc"),
            ("mac:52:54:00:ab:cd:01", "b"),
            ("mac:52:54", "b"),
            ("description:ärgernis", "b" if self.backend != "sqlite" else ""),  # SQLite folds a to z
            ("description:Ärgernis", "b"),
            ("description:100%", "b"),
            ("description:100_", ""),
            ("since:>1d", "b"),
            ("since:<1h", "a"),
            ("since:>1d12h,<5m", "ab"),
        ):
            self.assertEqual(list(expected), self.names(text), text)

    def test_no_value_is_a_value(self) -> None:
        for key, having in (("description", "b"), ("trait", "a"), ("mac", "b")):
            self.assertEqual(sorted(set("abc") - {having}), self.names(f'{key}:""'), key)
            self.assertEqual([having], self.names(f'-{key}:""'), key)

    def test_words(self) -> None:
        database.make_node(self.db, name="web-1")
        for text, expected in (
            ("eb-", ["web-1"]),
            ("WEB", ["web-1"]),
            ("slow", ["b"]),
            ('"next to"', ["b"]),
            ("52:54:00", ["b"]),
            ("1111", ["a"]),
            (self.c.uuid[:10], ["c"]),
            ("-web -slow", ["a", "c"]),
            ("nothing", []),
            ('"100% slow"', ["b"]),
            ("100_", []),
        ):
            self.assertEqual(expected, self.names(text), text)

    def test_all_terms_must_match(self) -> None:
        self.assertEqual(["a"], self.names("class:gold* owner:blue"))
        self.assertEqual([], self.names("class:gold* owner:blue -power:on"))

    def test_what_has_no_value_is_not_so(self) -> None:
        self.assertEqual(["a", "b"], self.names('-fault:"power failure"'))
        self.assertEqual(["a", "c"], self.names("-since:>1d"))

    def test_conductors_are_those_of_the_ring(self) -> None:
        self.register("rack-1", api_case.enabled("ipmi", **api_case.PLAIN), group="rack")
        for text, expected in (
            ("conductor:conductor-1", ["a", "b"]),
            ("conductor:RACK*", ["c"]),
            ("-conductor:rack-1", ["a", "b"]),
            ("conductor:*", ["a", "b", "c"]),
            ("-conductor:*", []),
            ("conductor:* class:gold", ["a"]),
        ):
            self.assertEqual(expected, self.names(text), text)
        owners = {node["name"]: node["conductor"] for node in self.ask()["nodes"]}
        self.assertEqual({"a": "conductor-1", "b": "conductor-1", "c": "rack-1"}, owners)
        self.assertEqual(["c", "b", "a"], self.names(sort="-conductor"))

    def test_what_cannot_be_read_is_said(self) -> None:
        for text, place, named in (
            ("name:a colour:red", 8, "Keys are: name, uuid"),
            ("state:dancing", 1, "Allowed are: active"),
            ("  power:blue", 3, "power off"),
            ("state:", 1, "key:value"),
            ("class:a,,b", 1, "key:one,other"),
            ("class:a*b", 1, "end of a value"),
            ('name:"a', 1, "quote"),
            ('name:a b"c', 8, "quote"),
            ("maintenance:maybe", 1, "yes, no"),
            ("since:1h", 1, ">1h"),
            ("since:>99999999w", 1, "ten years"),
            ("uuid:xyz", 1, "hex digits"),
            ("mac:5", 1, "pairs of hex digits"),
            ('""', 1, "at least one letter"),
            ("a " * 21, 41, "20 terms"),
            ("name:" + ",".join("a" * 51), 1, "50 values"),
        ):
            message = self.objection(text)
            self.assertIn(f"character {place}.", message, text)
            self.assertIn(named, message)
        self.assertIn("1000 characters", self.objection("a" * 1001))
        self.assertIn("NUL", self.objection("a\0"))


class Parts(FleetCase):
    def setUp(self) -> None:
        super().setUp()
        for number in range(7):
            shard = "odd" if number % 2 else None
            database.make_node(self.db, name=f"n{number}", shard=shard, provision_state=states.AVAILABLE)

    def test_any_part_can_be_read(self) -> None:
        answer = self.ask("shard:odd", offset=1, limit=1)
        self.assertEqual((7, 3, 1, 1), tuple(answer[key] for key in ("total", "matching", "offset", "limit")))
        self.assertEqual(["n3"], [node["name"] for node in answer["nodes"]])
        self.assertEqual([], self.ask(offset=7)["nodes"])
        self.assertIn("offset", self.refused(400, "GET", f"{PATH}?offset=-1", version=None))

    def test_order(self) -> None:
        self.assertEqual([f"n{number}" for number in range(7)], self.names())
        self.assertEqual([f"n{number}" for number in reversed(range(7))], self.names(sort="-name"))
        self.assertEqual(["n0", "n2", "n4", "n6", "n1", "n3", "n5"], self.names(sort="shard"))
        self.assertEqual(["n5", "n3", "n1", "n6", "n4", "n2", "n0"], self.names(sort="-shard"))
        for key in self.good("GET", f"{PATH}/filter", version=None)["sort"]:
            self.assertEqual(7, len(self.names(sort=key)), key)
        self.assertIn("provision_state", self.refused(400, "GET", f"{PATH}?sort=colour", version=None))
        self.refused(400, "GET", f"{PATH}?sort=reservation", version=None)

    def test_children_are_in_it(self) -> None:
        parent = nodes.get(self.db, "n0")
        database.make_node(self.db, name="n00", parent_node=parent.uuid)
        self.assertIn("n00", self.names())

    def test_it_costs_three_statements_at_most(self) -> None:
        self.ask("conductor:*")  # reads the ring
        for query, most in (
            ({}, 3),
            ({"text": "shard:odd -name:n1 slow trait:CUSTOM_* mac:52 since:>1h", "sort": "-shard"}, 3),
            ({"text": "conductor:* shard:odd"}, 3),
            ({"sort": "conductor"}, 3),
        ):
            with sql_counter.counting(self.db) as counted:
                self.ask(**query)
            self.assertLessEqual(len(counted), most, counted)


class Values(FleetCase):
    def test_keys_are_described_with_their_values(self) -> None:
        for number in range(3):
            database.make_node(self.db, resource_class="gold" if number else "iron", provision_state=states.ACTIVE)
        self.good("PUT", f"/v1/nodes/{self._first().uuid}/traits/CUSTOM_FAST")
        with sql_counter.counting(self.db) as counted:
            answer = self.good("GET", f"{PATH}/filter", version=None)
        self.assertLessEqual(len(counted), 2, counted)
        values = {key["key"]: key["values"] for key in answer["keys"]}
        self.assertEqual([{"value": "gold", "nodes": 2}, {"value": "iron", "nodes": 1}], values["class"])
        self.assertIn({"value": "active", "nodes": 3}, values["state"])
        self.assertIn({"value": "failed", "nodes": None}, values["state"])
        self.assertEqual([{"value": "CUSTOM_FAST", "nodes": 1}], values["trait"])
        self.assertEqual([{"value": "conductor-1", "nodes": None}], values["conductor"])
        self.assertEqual({"characters": 1000, "terms": 20, "values": 50}, answer["limits"])

    def _first(self) -> models.Node:
        return nodes.get(self.db, self.good("GET", "/v1/nodes")["nodes"][0]["uuid"])

    def test_each_value_can_be_asked_for(self) -> None:
        for key in self.good("GET", f"{PATH}/filter", version=None)["keys"]:
            for value in key["values"]:
                self.ask(f'{key["key"]}:"{value["value"]}"')


class Needs(FleetCase):
    """By the groups of the overview: on a fleet in which each cause is there, and some nodes have two."""

    def setUp(self) -> None:
        super().setUp()
        plan = {"deploy_steps": [{"interface": "deploy", "step": "write_image", "args": {}}], "deploy_step_index": 0}
        works = {
            "provision_state": states.DEPLOYWAIT, "flow": "deploy", "due_at": clock.after(60), "step_state": "watching",
            "run_id": "11111111-1111-1111-1111-111111111111", "step_started_at": clock.after(-100),
            "agent_last_heartbeat": clock.now(), "provision_updated_at": clock.after(-100),
            "driver_internal_info": plan,
        }  # fmt: skip
        silent = {"agent_last_heartbeat": clock.after(-1000)}
        late = {"provision_updated_at": clock.after(-7200)}
        for name, values in {
            "fine": {},
            "works": works,
            "failed": {"provision_state": states.DEPLOYFAIL},
            "failed-in-maintenance": {"provision_state": states.CLEANFAIL, "maintenance": True},
            "failed-child-at-work": {**works, **late, "provision_state": states.SERVICEFAIL, "resource_class": "odd"},
            "new": {"provision_state": states.ENROLL, "last_error": "wrong password"},
            "dead": {"fault": "power failure", "maintenance": True},
            "dead-and-failed": {"fault": "power failure", "maintenance": True, "provision_state": states.DEPLOYFAIL},
            "silent-bmc": {**works, "step_state": "polling", "step_memory": {"engine": {"waits_for": waits.Wait.BMC}}},
            "held": {"provision_state": states.DEPLOYHOLD, "flow": "deploy"},
            "kept": {"maintenance": True},
            "kept-at-work": {**works, **late, "maintenance": True},
            "late": {**works, **late},
            "late-and-silent": {**works, **late, **silent},
            "silent": {**works, **silent},
        }.items():
            database.make_node(self.db, name=name, **{"provision_state": states.AVAILABLE, **values})

    def test_has_the_nodes_of_the_overview_s_groups(self) -> None:
        groups = self.good("GET", "/ingot/v1/overview", version=None)["triage"]
        self.assertEqual(set(triage.Cause), {group["cause"] for group in groups})
        for group in groups:
            expected = sorted(node["name"] for node in group["nodes"])
            self.assertEqual(expected, self.names(f"needs:{group['cause']}"))
            self.assertEqual(group["count"], len(expected))
        self.assertEqual(["late", "late-and-silent"], self.names("needs:overdue"))
        self.assertEqual(13, self.ask("needs:*")["matching"])

    def test_goes_with_other_terms(self) -> None:
        self.assertEqual(["fine", "works"], self.names("-needs:*"))
        self.assertEqual(["fine", "works"], self.names('needs:""'))
        self.assertEqual(["fine", "held", "works"], self.names("-needs:fai*,unresponsive,overdue,waiting,maintenance"))
        self.assertEqual(["failed-child-at-work"], self.names("needs:failed class:odd"))
        self.assertEqual(["late"], self.names("needs:overdue,waiting -silent"))
        self.assertEqual([], self.names("needs:failed needs:held"))
        self.assertEqual(["late"], self.names("needs:overdue -silent", sort="conductor"))
        asked = {"action": "set_maintenance", "matching": "needs:held", "dry_run": True}
        answer = self.good("POST", "/ingot/v1/bulk", asked, version=None)
        self.assertEqual(["held"], [one["name"] for one in answer["results"]])
        self.assertIn("overdue", self.objection("needs:rest"))

    def test_costs_the_same_for_any_fleet(self) -> None:
        self.names("needs:*")
        for text, most in (("needs:failed", 3), ("needs:overdue -needs:waiting", 7)):
            with sql_counter.counting(self.db) as counted:
                self.names(text)
            self.assertLessEqual(len(counted), most, counted)


class Page(testtools.TestCase):
    def test_it_has_each_key(self) -> None:
        text = (SOURCE / "fleet.rst").read_text()
        table = text[text.index("Key              Value") :]
        self.assertEqual(list(fleet_filter.KEYS), re.findall(r"^``(\w+)``", table[: table.index("A filter has")], re.M))


class Projects(identity_case.IdentityCase):
    def test_a_project_sees_its_own(self) -> None:
        self.own_node(name="own", last_error="secret")
        database.make_node(self.db, name="other", owner="else")
        for person, total in (("system reader", 2), ("owner reader", 1), ("lessee reader", 1), ("stranger reader", 0)):
            answer = self.ask(person, "GET", f"{PATH}?filter=name:o*").json
            self.assertEqual((total, total), (answer["total"], answer["matching"]), person)
            values = {key["key"]: key["values"] for key in self.ask(person, "GET", f"{PATH}/filter").json["keys"]}
            self.assertEqual(total, sum(one["nodes"] for one in values["driver"]), person)
            self.assertEqual(person == "system reader", bool(values["conductor"]))
        self.assertIn("Redacted", self.ask("lessee reader", "GET", PATH).json["nodes"][0]["last_error"])
        self.assertEqual("secret", self.ask("owner reader", "GET", PATH).json["nodes"][0]["last_error"])
        self.assertEqual(403, self.ask("owner none", "GET", PATH).status)

    def test_bulk_reaches_a_project_s_own(self) -> None:
        self.own_node(name="own")
        database.make_node(self.db, name="other", owner="else")
        asked = {"action": "set_maintenance", "matching": "name:o*", "dry_run": True}
        answer = self.ask("owner member", "POST", "/ingot/v1/bulk", asked).json
        self.assertEqual(["own"], [one["name"] for one in answer["results"]])


class SinceTest(FleetCase):
    def test_moments_are_counted_from_now(self) -> None:
        database.make_node(self.db, name="a", provision_updated_at=clock.now() - datetime.timedelta(minutes=90))
        self.assertEqual(["a"], self.names("since:>1h since:<2h"))
        self.assertEqual([], self.names("since:>1h45m"))
