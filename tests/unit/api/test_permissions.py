"""What a user may do, as the console asks: the answer is that of the request itself."""

from typing import Any

from ingot.api.auth import rules
from ingot.common import states
from tests import api_case, identity_case, sql_counter

PATH = "/ingot/v1/permissions"
POWER = "baremetal:node:set_power_state"

VERBS: dict[str, tuple[str, str, Any]] = {
    "baremetal:node:set_provision_state": ("PUT", "/v1/nodes/n/states/provision", {"target": "provide"}),
    POWER: ("PUT", "/v1/nodes/n/states/power", {"target": "power on"}),
    "baremetal:node:set_maintenance": ("PUT", "/v1/nodes/n/maintenance", {"reason": "x"}),
    "baremetal:node:clear_maintenance": ("DELETE", "/v1/nodes/n/maintenance", None),
    "baremetal:node:set_console_state": ("PUT", "/v1/nodes/n/states/console", {"enabled": True}),
}
"""What the console offers to do with a node, by rule."""

OF_THE_SYSTEM: dict[str, tuple[str, str, Any]] = {
    "ingot:conductors:drain": ("DELETE", f"/ingot/v1/conductors/{api_case.HOST}/drain", None),
    "baremetal:node:create": ("POST", "/v1/nodes", api_case.NODE),
    "baremetal:deploy_template:create": ("POST", "/v1/deploy_templates", {"name": "CUSTOM_A", "steps": []}),
}


class All(api_case.ApiCase):
    def test_administrators_may_do_everything(self) -> None:
        found = self.good("GET", PATH)["rules"]
        self.assertEqual(set(rules.RULES), set(found))
        self.assertEqual([{"allowed": True, "reason": None}] * len(found), list(found.values()))

    def test_the_node_must_be_there(self) -> None:
        self.refused(404, "GET", f"{PATH}?node=none")
        self.refused(400, "GET", f"{PATH}?node=")


class Limited(identity_case.IdentityCase):
    def rules(self, person: str, query: str = "") -> dict[str, Any]:
        answer = self.ask(person, "GET", PATH + query)
        self.assertEqual(200, answer.status, answer)
        found: dict[str, Any] = answer.json["rules"]
        return found

    def test_a_refusal_says_who_asks_and_what_would_allow_it(self) -> None:
        node = self.own_node()
        found = self.rules("owner reader", f"?node={node.uuid}")[POWER]
        self.assertFalse(found["allowed"])
        for part in ("reader", "project owner", POWER):
            self.assertIn(part, found["reason"])

    def test_who_may_only_look_has_every_verb_refused_with_the_reason(self) -> None:
        self.own_node(name="n", provision_state=states.MANAGEABLE)
        for person in ("owner reader", "system reader"):
            shown = self.rules(person, "?node=n")
            for rule, (method, path, body) in (VERBS | OF_THE_SYSTEM).items():
                self.assertFalse(shown[rule]["allowed"], (person, rule))
                for part in ("reader", rule, "ask an administrator"):
                    self.assertIn(part, shown[rule]["reason"], person)
                answer = self.ask(person, method, path, body)
                self.assertEqual((403, True), (answer.status, rule in answer.message), (person, rule, answer))

    def test_who_works_with_machines_may_use_every_verb(self) -> None:
        self.own_node(name="n", provision_state=states.MANAGEABLE)
        for person in ("owner member", "owner admin", "system member", "system admin"):
            shown = self.rules(person, "?node=n")
            allowed = VERBS if person != "system admin" else VERBS | OF_THE_SYSTEM
            self.assertEqual(
                {rule: {"allowed": True, "reason": None} for rule in allowed}, {r: shown[r] for r in allowed}
            )
        for method, path, body in VERBS.values():
            self.assertNotEqual(403, self.ask("owner member", method, path, body).status, path)

    def test_what_is_answered_is_what_happens(self) -> None:
        node = self.own_node(name="n", provision_state=states.MANAGEABLE)
        for person in identity_case.PERSONS:
            answer = self.ask(person, "GET", f"{PATH}?node=n")
            if answer.status == 404:  # who may not see the node
                self.assertEqual(404, self.ask(person, "GET", "/v1/nodes/n").status, person)
                continue
            allowed = {name for name, about in answer.json["rules"].items() if about["allowed"]}
            for rule, status, method, path, body in (
                ("baremetal:node:get", 200, "GET", f"/v1/nodes/{node.uuid}", None),
                (POWER, 202, "PUT", f"/v1/nodes/{node.uuid}/states/power", {"target": "power on"}),
                ("ingot:overdue:get", 200, "GET", "/ingot/v1/overdue", None),
                ("ingot:inbox:get", 200, "GET", "/ingot/v1/inbox", None),
            ):
                expected = status if rule in allowed else 403
                self.assertEqual(expected, self.ask(person, method, path, body).status, (person, rule))

    def test_without_a_node_it_is_what_could_be_done_with_one_of_the_own_project(self) -> None:
        for person, allowed in (
            ("owner member", True), ("owner reader", False), ("system admin", True), ("system reader", False)
        ):  # fmt: skip
            self.assertEqual(allowed, self.rules(person)[POWER]["allowed"], person)

    def test_of_nodes_of_others_nothing_is_said(self) -> None:
        node = self.own_node()
        foreign = self.ask("stranger admin", "GET", f"{PATH}?node={node.uuid}")
        none = self.ask("stranger admin", "GET", f"{PATH}?node=11111111-2222-3333-4444-555555555555")
        self.assertEqual((404, 404), (foreign.status, none.status))

    def test_one_statement_is_enough(self) -> None:
        node = self.own_node()
        for query, most in (("", 0), (f"?node={node.uuid}", 1)):
            self.rules("owner reader", query)
            with sql_counter.counting(self.db) as statements:
                self.rules("owner reader", query)
            self.assertEqual(most, len(statements), statements)
