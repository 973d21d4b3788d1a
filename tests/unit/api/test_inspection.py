"""Inspection rules, and what an agent tells at the end of an inspection."""

import uuid
from typing import Any

from ingot.api.resources import inspection_rules
from ingot.common import clock, states
from ingot.db import agents, inventory, nodes
from tests import api_case, database

MAC = "52:54:00:00:00:01"
ACTIONS = [{"op": "set-attribute", "args": {"path": "/properties/x", "value": "1"}}]
PATH = "/v1/inspection_rules"


class InspectionRules(api_case.ApiCase):
    def rule(self, **values: Any) -> dict[str, Any]:
        made: dict[str, Any] = self.good("POST", PATH, {"actions": ACTIONS, "conditions": [], **values})
        return made

    def test_is_created_changed_and_deleted(self) -> None:
        answer = self.api("POST", PATH, {"actions": ACTIONS, "conditions": []})
        made = answer.json
        path = f"{PATH}/{made['uuid']}"
        self.assertEqual((201, f"http://localhost{path}"), (answer.status, answer.headers["Location"]))
        self.assertEqual(
            (None, 0, "main", False, [], ACTIONS),
            tuple(made[name] for name in ("description", "priority", "phase", "sensitive", "conditions", "actions")),
        )
        conditions = [{"op": "eq", "args": ["{inventory.cpu.count}", 8], "loop": ["a"], "multiple": "any"}]
        changed = self.good("PATCH", path, [
            {"op": "replace", "path": "/priority", "value": 200},
            {"op": "replace", "path": "/conditions", "value": conditions},
        ])  # fmt: skip
        self.assertEqual((200, conditions), (changed["priority"], changed["conditions"]))
        self.assertEqual(changed, self.good("GET", path))
        back = self.good("PATCH", path, [{"op": "remove", "path": f"/{name}"} for name in ("priority", "phase")])
        self.assertEqual((0, "main"), (back["priority"], back["phase"]))
        self.good("DELETE", path)
        self.refused(404, "GET", path)

    def test_its_loops_have_an_end(self) -> None:
        for loop in (["a"] * 1001, dict.fromkeys(map(str, range(1001)))):
            message = self.refused(400, "POST", PATH, {"actions": [{**ACTIONS[0], "loop": loop}], "conditions": []})
            self.assertIn("actions.0.loop", message)
            self.assertIn("1000", message)

    def test_its_regular_expressions_are_those_of_re2(self) -> None:
        for args in (["{node.name}", "(?=a)"], {"value": "{node.name}", "regex": "(?=a)"}):
            for operator in ("matches", "!contains"):
                conditions = [{"op": "eq", "args": [1, 1]}, {"op": operator, "args": args}]
                message = self.refused(400, "POST", PATH, {"actions": ACTIONS, "conditions": conditions})
                self.assertIn("conditions.1.regex: '(?=a)'", message)
                self.assertIn("RE2", message)
        made = self.rule(conditions=[{"op": "matches", "args": ["{node.name}", "{item}(?=a)"]}])
        change = {"op": "replace", "path": "/conditions", "value": [{"op": "contains", "args": ["a", "("]}]}
        self.assertIn("missing )", self.refused(400, "PATCH", f"{PATH}/{made['uuid']}", [change]))
        self.rule(conditions=[{"op": "contains", "args": ["a", "[0-9]{2,3}"]}])

    def test_its_links_lead_to_it(self) -> None:
        made = self.rule()
        own, _bookmark = made["links"]
        self.assertEqual(made, self.good("GET", own["href"].removeprefix("http://localhost")))

    def test_all_are_deleted_at_once(self) -> None:
        for priority in range(3):
            self.rule(priority=priority)
        self.good("DELETE", PATH)
        self.assertEqual([], self.good("GET", PATH)["inspection_rules"])

    def test_lists(self) -> None:
        first, second = self.rule(priority=5, description="a"), self.rule(priority=1)
        found = self.good("GET", f"{PATH}?sort_key=priority")["inspection_rules"]
        self.assertEqual([second["uuid"], first["uuid"]], [one["uuid"] for one in found])
        self.assertEqual({"uuid", "description", "priority", "phase", "links"}, set(found[0]))
        self.assertEqual([first, second], self.good("GET", f"{PATH}?detail=true")["inspection_rules"])
        self.assertEqual(2, len(self.good("GET", f"{PATH}?marker=")["inspection_rules"]))
        for marker in ("abc", str(uuid.uuid4())):
            self.refused(404, "GET", f"{PATH}?marker={marker}")

    def test_a_sensitive_rule_keeps_what_it_does_to_itself(self) -> None:
        made = self.rule(sensitive=True)
        self.assertEqual((True, None, None), tuple(made[name] for name in ("sensitive", "conditions", "actions")))
        shown = self.good("GET", f"{PATH}?detail=true")["inspection_rules"]
        self.assertEqual((None, None), (shown[0]["conditions"], shown[0]["actions"]))

    def test_secrets_are_masked_and_come_back_as_they_were(self) -> None:
        args = {"url": "http://ada:s3cret@host/x?sig=s3cret", "headers": {"Authorization": "s3cret", "X-Rack": "7"}}
        made = self.rule(actions=[{"op": "api-call", "args": args}])
        path = f"{PATH}/{made['uuid']}"
        self.assertNotIn("s3cret", str([made, self.good("GET", path), self.good("GET", f"{PATH}?detail=true")]))
        self.assertEqual({"Authorization": "******", "X-Rack": "7"}, made["actions"][0]["args"]["headers"])
        change = {"op": "replace", "path": "/actions", "value": [*made["actions"], *ACTIONS]}
        self.assertEqual(change["value"], self.good("PATCH", path, [change])["actions"])
        self.good("PATCH", path, [{"op": "add", "path": "/actions/0/args/headers/X-Rack", "value": "8"}])
        kept = inventory.list_rules(self.db, "main")[0].actions
        self.assertEqual([{**args, "headers": {"Authorization": "s3cret", "X-Rack": "8"}}], [kept[0]["args"]])
        change["value"][0]["args"]["url"] = "http://ada:******@elsewhere"
        for method, where, body in (
            ("PATCH", path, [change]),
            ("POST", PATH, {"actions": made["actions"], "conditions": []}),
        ):
            self.assertIn("******", self.refused(400, method, where, body))

    def test_each_operator_needs_its_arguments(self) -> None:
        for name, known, least in (
            ("actions", inspection_rules.ACTIONS, ACTIONS),
            ("conditions", inspection_rules.CONDITIONS, []),
        ):
            body: dict[str, Any] = {"actions": ACTIONS, "conditions": least if name == "conditions" else []}
            for operator, needed in known.items():
                for args in ({}, [], dict.fromkeys(needed[1:], "x"), ["x"] * (len(needed) - 1)):
                    message = self.refused(400, "POST", PATH, {**body, name: [{"op": operator, "args": args}]})
                    self.assertIn(f"{name}.0 ({operator})", message)
                    self.assertIn("missing required argument(s)", message)
                for good in (dict.fromkeys(needed, "x"), ["x"] * len(needed)):
                    self.good("POST", PATH, {**body, name: [{"op": operator, "args": good}]})

    def test_what_is_wrong_is_named(self) -> None:
        for wrong, expected in (
            ({"conditions": ...}, "conditions"),
            ({"conditions": None}, "conditions"),
            ({"actions": ...}, "actions"),
            ({"actions": []}, "actions"),
            ({"actions": [{"op": "zz", "args": {}}]}, "zz"),
            ({"actions": [{"op": "fail"}]}, "args"),
            ({"conditions": [{"op": "!zz", "args": {}}]}, "!zz"),
            ({"priority": -1}, "priority"),
            ({"priority": 10000}, "priority"),
            ({"priority": 5000.5}, "priority"),
            ({"priority": "5"}, "priority"),
            ({"priority": True}, "priority"),
            ({"priority": None}, "priority"),
            ({"phase": "preprocess"}, "phase"),
            ({"phase": None}, "phase"),
            ({"sensitive": "yes"}, "sensitive"),
            ({"scope": "s"}, "scope"),
            ({"description": "d" * 256}, "description"),
            ({"uuid": "zz"}, "uuid"),
        ):
            body = {"actions": ACTIONS, "conditions": [], **wrong}
            sent = {name: value for name, value in body.items() if value is not ...}
            self.assertIn(expected, self.refused(400, "POST", PATH, sent), wrong)
        path = f"{PATH}/{self.rule()['uuid']}"
        for change in (
            {"op": "replace", "path": "/phase", "value": None},
            {"op": "remove", "path": "/actions"},
            {"op": "remove", "path": "/conditions"},
            {"op": "replace", "path": "/uuid", "value": str(uuid.uuid4())},
            {"op": "add", "path": "/bogus", "value": 1},
            {"op": "add", "path": "/actions/-", "value": {"op": "fail", "args": {}}},
        ):
            self.refused(400, "PATCH", path, [change])

    def test_versions(self) -> None:
        path = f"{PATH}/{self.rule()['uuid']}"
        for method, url, status in (
            ("GET", PATH, 404), ("POST", PATH, 405), ("DELETE", PATH, 405),
            ("GET", path, 404), ("PATCH", path, 405), ("DELETE", path, 405),
        ):  # fmt: skip
            self.refused(status, method, url, version="1.95")
        self.refused(400, "GET", f"{PATH}/missing")


class Inspected(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n", provision_state=states.INSPECTWAIT, flow="inspect")
        database.make_port(self.db, self.known, address=MAC)
        self.found = {"inventory": {"interfaces": [{"mac_address": MAC.upper()}, {"name": "lo"}], "cpu": {"count": 8}}}

    def test_the_inventory_is_kept_and_the_conductor_notified(self) -> None:
        answer = self.api("POST", "/v1/continue_inspection", {**self.found, "root_disk": {"name": "/dev/sda"}})
        self.assertEqual((202, self.known.uuid), (answer.status, answer.json["node"]["uuid"]))
        self.assertEqual(["inspection"], self.conductor.wakeups)
        node = nodes.get(self.db, "n")
        self.assertEqual(states.INSPECTWAIT, node.provision_state)  # it is the conductor who ends it
        self.assertIsNotNone(node.due_at)
        self.assertIsNotNone(node.agent_last_heartbeat)
        self.assertEqual(
            {**self.found, "plugin_data": {"root_disk": {"name": "/dev/sda"}}},
            self.good("GET", "/v1/nodes/n/inventory"),
        )

    def test_an_agent_may_say_it_twice(self) -> None:
        for count in (4, 8):
            self.found["inventory"]["cpu"]["count"] = count
            self.good("POST", "/v1/continue_inspection", self.found)
        self.assertEqual(8, self.good("GET", "/v1/nodes/n/inventory")["inventory"]["cpu"]["count"])

    def test_an_inspection_has_one_inventory(self) -> None:
        """Of this run; the one of the run before is replaced."""
        self.good("POST", "/v1/continue_inspection", self.found)
        before = clock.iso(inventory.get(self.db, self.known).inspected_at)
        nodes.set_always(self.db, self.known.uuid, {"request": {"inventory_before": before}})
        self.found["inventory"]["cpu"]["count"] = 16
        for _ in range(2):  # an agent whose answer was lost says it again
            self.good("POST", "/v1/continue_inspection", self.found)
        other = {"inventory": {**self.found["inventory"], "cpu": {"count": 1}}}
        self.assertIn("another inventory", self.refused(409, "POST", "/v1/continue_inspection", other))
        self.assertEqual(self.found["inventory"], self.good("GET", "/v1/nodes/n/inventory")["inventory"])
        nodes.set_always(self.db, self.known.uuid, {"request": {"inventory_before": None}})
        self.refused(409, "POST", "/v1/continue_inspection", other)

    def test_a_machine_has_only_so_many_network_cards(self) -> None:
        cards = [{"mac_address": f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}"} for number in range(1025)]
        message = self.refused(400, "POST", "/v1/continue_inspection", {"inventory": {"interfaces": cards}})
        self.assertIn("inventory.interfaces: 1025. 1024", message)
        self.good("POST", "/v1/continue_inspection", {"inventory": {"interfaces": cards[1:]}})

    def test_a_network_card_has_one_address(self) -> None:
        """Many in one text would be as many parameters of a statement."""
        both = {"mac_address": f"{MAC},52:54:00:00:00:02"}
        self.refused(404, "POST", "/v1/continue_inspection", {"inventory": {"interfaces": [both]}})

    def test_a_node_is_named_by_its_uuid_at_any_version(self) -> None:
        path = f"/v1/continue_inspection?node_uuid={self.known.uuid}"
        self.assertEqual(202, self.api("POST", path, {"inventory": {}}, version="1.1").status)

    def test_an_unknown_machine_and_a_node_that_does_not_wait_get_the_same_answer(self) -> None:
        message = self.refused(404, "POST", "/v1/continue_inspection", {"inventory": {}})
        unknown = f"/v1/continue_inspection?node_uuid={uuid.uuid4()}"
        self.assertEqual(message, self.refused(404, "POST", unknown, self.found))
        for state, flow in (
            (states.MANAGEABLE, None),
            (states.INSPECTFAIL, None),
            (states.INSPECTWAIT, None),
            (states.CLEANWAIT, "manual_clean"),
        ):
            nodes.set_always(self.db, self.known.uuid, {"provision_state": state, "flow": flow})
            self.assertEqual(message, self.refused(404, "POST", "/v1/continue_inspection", self.found))

    def test_a_machine_may_be_quicker_than_its_bmc(self) -> None:
        locked = {
            "provision_state": states.INSPECTING,
            "reservation": "conductor-1",
            "lock_purpose": "booting it",
            "locked_at": clock.now(),
        }
        nodes.set_always(self.db, self.known.uuid, locked)
        self.good("POST", "/v1/continue_inspection", self.found)

    def test_a_machine_without_ports_is_known_by_its_bmc(self) -> None:
        """As long as it is inspected by an agent that Ingot did not boot."""
        bare = database.make_node(self.db, name="bare", provision_state=states.INSPECTWAIT, flow="inspect")
        sent = {"inventory": {"interfaces": [{"mac_address": "52:54:00:00:00:99"}], "bmc_v6address": "2001:db8:0::7"}}
        self.refused(404, "POST", "/v1/continue_inspection", sent)
        nodes.set_always(self.db, bare.uuid, {"driver_internal_info": {agents.BMC_ADDRESSES: ["2001:db8::7"]}})
        for address in ("192.0.2.7", "bmc.example.org", "", 7, None):
            other = {"inventory": {"interfaces": [], "bmc_address": address}}
            self.refused(404, "POST", "/v1/continue_inspection", other)
        self.assertEqual(bare.uuid, self.good("POST", "/v1/continue_inspection", sent)["uuid"])
        nodes.set_always(self.db, self.known.uuid, {"driver_internal_info": {agents.BMC_ADDRESSES: ["2001:db8::7"]}})
        self.refused(404, "POST", "/v1/continue_inspection", sent)

    def test_any_inventory_is_an_object(self) -> None:
        for body in (None, {}, {"inventory": None}, {"inventory": []}, [], "x"):
            self.refused(400, "POST", "/v1/continue_inspection", body)
        for cards in (None, 5, ["x"], [{"mac_address": 5}], [{"mac_address": "zz,zz"}]):
            self.refused(404, "POST", "/v1/continue_inspection", {"inventory": {"interfaces": cards}})
