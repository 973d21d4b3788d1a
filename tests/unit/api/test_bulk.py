"""One verb on many nodes: each answers as the single request would, and a dry run changes nothing."""

import time
from typing import Any

from ingot.api import routes
from ingot.api.nodes import bulk
from ingot.common import errors, states
from ingot.db import nodes
from tests import api_case, database, identity_case, sql_counter

PATH = "/ingot/v1/bulk"

SINGLE = {
    "provision": ("PUT", "states/provision"),
    "power": ("PUT", "states/power"),
    "set_maintenance": ("PUT", "maintenance"),
    "clear_maintenance": ("DELETE", "maintenance"),
}


class Slow(dict[str, Any]):
    """The answers of a conductor that takes its time."""

    def get(self, method: str, default: Any = None) -> Any:
        time.sleep(1.1)
        return super().get(method, default)


class Bulk(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        for number in range(3):
            database.make_node(self.db, name=f"n{number}", provision_state=states.MANAGEABLE)

    def ask(self, action: str, body: Any = None, **more: Any) -> dict[str, Any]:
        sent = {"action": action, **more} | ({} if body is None else {"body": body})
        answer: dict[str, Any] = self.good("POST", PATH, sent, version=None)
        return answer

    def states(self) -> dict[str, str]:
        found = self.good("GET", "/v1/nodes?fields=name,provision_state")["nodes"]
        return {node["name"]: node["provision_state"] for node in found}

    def test_each_node_is_asked_and_answers(self) -> None:
        answer = self.ask("provision", {"target": "provide"}, nodes=["n0", "n1"])
        self.assertEqual((2, 0, False), (answer["accepted"], answer["refused"], answer["dry_run"]))
        self.assertEqual([("n0", 202), ("n1", 202)], [(one["name"], one["status"]) for one in answer["results"]])
        self.assertEqual({"n0": "cleaning", "n1": "cleaning", "n2": "manageable"}, self.states())
        self.assertEqual(["provide", "provide"], self.conductor.wakeups)

    def test_refusals_are_those_of_the_single_requests(self) -> None:
        database.make_node(self.db, name="used", provision_state=states.ACTIVE, protected=True)
        database.make_node(self.db, name="busy", provision_state=states.ACTIVE, reservation="conductor-1")
        cases = (
            ("provision", {"target": "deleted"}),
            ("provision", {"target": "dance"}),
            ("provision", {"target": "provide", "clean_steps": [{"interface": "deploy", "step": "erase"}]}),
            ("power", {"target": "soft rebooting"}),
            ("power", {"target": "over the moon"}),
        )
        for action, body in cases:
            method, path = SINGLE[action]
            for one in self.ask(action, body, nodes=["used", "busy", "missing", "no such/name"])["results"]:
                single = self.api(method, f"/v1/nodes/{one['node'].replace('/', '%2F')}/{path}", body)
                if single.status == 404 and one["status"] == 400:
                    continue  # as a part of a URL it leads nowhere
                self.assertEqual(single.status, one["status"], one)
                self.assertEqual(single.status < 400, one["accepted"])
                self.assertEqual(single.message if single.status >= 400 else None, one["reason"])

    def test_a_dry_run_says_the_same_and_changes_nothing(self) -> None:
        database.make_node(self.db, name="used", provision_state=states.ACTIVE, protected=True)
        every = ["n0", "n1", "used", "missing"]
        before = [nodes.get(self.db, name).as_dict() for name in every[:3]]
        for action, body in (
            ("provision", {"target": "provide"}),
            ("provision", {"target": "clean", "clean_steps": [{"interface": "deploy", "step": "erase"}]}),
            ("power", {"target": "power on"}),
            ("set_maintenance", {"reason": "hot"}),
            ("clear_maintenance", None),
        ):
            dry = self.ask(action, body, nodes=every, dry_run=True)
            self.assertEqual(before, [nodes.get(self.db, name).as_dict() for name in every[:3]], action)
            self.assertEqual([], self.conductor.wakeups)
            self.assertTrue(dry["dry_run"])
        dry = self.ask("provision", {"target": "provide"}, nodes=every, dry_run=True)
        wet = self.ask("provision", {"target": "provide"}, nodes=every)
        self.assertEqual(dry["results"], wet["results"])

    def test_a_dry_run_asks_the_conductor_whether_a_deployment_is_possible(self) -> None:
        database.make_node(self.db, name="free")
        self.conductor.answers["validate_deploy"] = errors.Invalid("no image")
        answer = self.ask("provision", {"target": "active"}, nodes=["free"], dry_run=True)
        self.assertEqual((400, "no image"), (answer["results"][0]["status"], answer["results"][0]["reason"]))

    def test_nodes_are_selected_by_the_filters_of_lists(self) -> None:
        database.make_node(self.db, name="free", resource_class="big", shard="a")
        database.make_node(self.db, name="child", resource_class="big", parent_node=nodes.get(self.db, "n0").uuid)
        for given, names in (
            ({"provision_state": "manageable"}, ["n0", "n1", "n2"]),
            ({"resource_class": "big"}, ["free"]),
            ({"resource_class": "big", "include_children": True}, ["free", "child"]),
            ({"shard": ["a", "b"]}, ["free"]),
            ({"maintenance": True}, []),
        ):
            answer = self.ask("set_maintenance", filter=given, dry_run=True)
            self.assertEqual(names, [one["name"] for one in answer["results"]], given)

    def test_nodes_are_selected_by_a_filter_of_the_fleet(self) -> None:
        for text, names in (
            ("state:manageable -name:n1", ["n0", "n2"]),
            ("conductor:conductor-1 n2", ["n2"]),
            ("class:gold", []),
        ):
            answer = self.ask("set_maintenance", matching=text, dry_run=True)
            self.assertEqual(names, [one["name"] for one in answer["results"]], text)

    def test_maintenance(self) -> None:
        self.ask("set_maintenance", {"reason": "hot"}, filter={"provision_state": "manageable"})
        self.assertEqual("hot", self.good("GET", "/v1/nodes/n1")["maintenance_reason"])
        self.ask("clear_maintenance", nodes=["n1", "n1"])
        self.assertFalse(self.good("GET", "/v1/nodes/n1")["maintenance"])

    def test_a_node_named_twice_is_asked_once(self) -> None:
        uuid = nodes.get(self.db, "n0").uuid
        answer = self.ask("provision", {"target": "provide"}, nodes=["n0", uuid, "n0"])
        self.assertEqual([(uuid, "n0", 202)], [(o["node"], o["name"], o["status"]) for o in answer["results"]])

    def test_what_is_wrong_with_the_request_itself(self) -> None:
        self.conf.set_override("max_bulk_nodes", 2, group="api")
        for body, named in (
            ({"action": "dance", "nodes": ["n0"]}, "dance"),
            ({"action": "power", "body": {"target": "power on"}}, "filter"),
            ({"action": "power", "body": {"target": "power on"}, "nodes": ["n0"], "filter": {"shard": "a"}}, "filter"),
            ({"action": "power", "nodes": ["n0"]}, "target"),
            ({"action": "power", "body": {"target": "power on", "colour": "red"}, "nodes": ["n0"]}, "colour"),
            ({"action": "clear_maintenance", "body": {"reason": "x"}, "nodes": ["n0"]}, "clear_maintenance"),
            ({"action": "set_maintenance", "nodes": []}, "nodes"),
            ({"action": "set_maintenance", "filter": {}}, "filter"),
            ({"action": "set_maintenance", "filter": {"colour": "red"}}, "colour"),
            ({"action": "set_maintenance", "filter": {"limit": "1"}}, "limit"),
            ({"action": "set_maintenance", "filter": {"provision_state": "dancing"}}, "dancing"),
            ({"action": "set_maintenance", "nodes": ["a", "b", "c"]}, "max_bulk_nodes"),
            ({"action": "set_maintenance", "nodes": ["a"], "matching": "a"}, "matching"),
            ({"action": "set_maintenance", "matching": "colour:red"}, "colour:red"),
            ({"action": "set_maintenance", "matching": " "}, "matching"),
            ({"action": "set_maintenance", "matching": "name:n*"}, "max_bulk_nodes"),
            ({"action": "set_maintenance", "matching": "conductor:*"}, "max_bulk_nodes"),
            ({"action": "set_maintenance", "filter": {"provision_state": "manageable"}}, "max_bulk_nodes"),
        ):
            self.assertIn(named, self.refused(400, "POST", PATH, body, version=None), body)

    def test_nodes_that_time_does_not_suffice_for_are_reported(self) -> None:
        self.conf.set_override("bulk_timeout", 1, group="api")
        self.conductor.answers = Slow(self.conductor.answers)
        for name in ("free", "late"):
            database.make_node(self.db, name=name)
        answer = self.ask("provision", {"target": "active"}, nodes=["free", "late"])
        self.assertEqual([202, 503], [one["status"] for one in answer["results"]])
        self.assertIn("again", answer["results"][1]["reason"])

    def test_a_node_costs_what_the_single_request_costs(self) -> None:
        for number in range(20):
            database.make_node(self.db, name=f"m{number}", provision_state=states.MANAGEABLE, shard="a")
        self.ask("power", {"target": "power on"}, nodes=["n0"])
        with sql_counter.counting(self.db) as single:
            self.good("PUT", "/v1/nodes/n1/states/power", {"target": "power on"})
        with sql_counter.counting(self.db) as counted:
            self.ask("power", {"target": "power on"}, filter={"shard": "a"})
        self.assertLessEqual(len(counted), 20 * len(single) + 1)

    def test_the_rules_of_policy_are_those_of_the_single_routes(self) -> None:
        known = {route.path: route for route in routes.ROUTES}
        for name, action in bulk.ACTIONS.items():
            method, path = SINGLE[name]
            route = known[f"/v1/nodes/<node>/{path}"]
            self.assertEqual(route.operations[method], action)


class BulkByRoles(identity_case.IdentityCase):
    def test_each_node_is_asked_whether_the_project_may(self) -> None:
        mine = self.own_node(name="mine")
        self.own_node(name="other", owner="other", lessee=None)
        body = {"action": "set_maintenance", "nodes": ["mine", "other"]}
        answer = self.ask("owner member", "POST", PATH, body).json
        self.assertEqual([(mine.uuid, "mine", 202), ("other", None, 404)],
                         [(one["node"], one["name"], one["status"]) for one in answer["results"]])  # fmt: skip
        self.assertEqual("Node other could not be found.", answer["results"][1]["reason"])
        body = {"action": "clear_maintenance", "filter": {"provision_state": mine.provision_state}}
        answer = self.ask("owner member", "POST", PATH, body).json
        self.assertEqual([("mine", 202)], [(one["name"], one["status"]) for one in answer["results"]])
        self.assertEqual(403, self.ask("owner reader", "POST", PATH, body).status)
        every = self.ask("system member", "POST", PATH, body).json["results"]
        self.assertEqual({"mine", "other"}, {one["name"] for one in every})
