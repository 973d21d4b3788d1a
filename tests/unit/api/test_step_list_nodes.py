"""Which nodes a deploy template or a runbook is for."""

from typing import Any

from ingot.common import states
from tests import api_case, database, identity_case, sql_counter

PATH = "/ingot/v1/step_lists"
STEP = {"interface": "bios", "step": "factory_reset", "args": {}}


class NodesOfStepLists(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.good("POST", "/v1/deploy_templates", {"name": "CUSTOM_A", "steps": [{**STEP, "priority": 30}]})
        self.good("POST", "/v1/runbooks", {"name": "tidy-up", "steps": [{**STEP, "order": 1}]})
        for name, traits in (("n1", ["CUSTOM_A"]), ("n2", ["CUSTOM_A", "CUSTOM_B"]), ("n3", ["CUSTOM_B"]), ("n4", [])):
            database.make_node(self.db, name=name, provision_state=states.ACTIVE)
            self.good("PUT", f"/v1/nodes/{name}/traits", {"traits": traits})

    def ask(self, path: str) -> tuple[list[str], list[str], tuple[int, int]]:
        answer: dict[str, Any] = self.good("GET", f"{PATH}/{path}", version=None)
        names = [node["name"] for node in answer["nodes"]]
        return answer["traits"], names, (answer["matching"], answer["total"])

    def test_of_a_template_those_with_its_name_as_trait(self) -> None:
        self.assertEqual((["CUSTOM_A"], ["n1", "n2"], (2, 4)), self.ask("template/CUSTOM_A/nodes"))
        self.assertEqual((["CUSTOM_A"], ["n2"], (2, 4)), self.ask("template/CUSTOM_A/nodes?offset=1&limit=1"))
        self.assertIn("missing", self.refused(404, "GET", f"{PATH}/template/missing/nodes", version=None))

    def test_of_a_runbook_those_with_one_of_its_traits(self) -> None:
        self.assertEqual(([], [], (0, 4)), self.ask("runbook/tidy-up/nodes"))
        for trait in ("CUSTOM_A", "CUSTOM_B"):
            self.good("PUT", f"/v1/runbooks/tidy-up/traits/{trait}")
        with sql_counter.counting(self.db) as counted:
            found = self.ask("runbook/tidy-up/nodes")
        self.assertEqual((["CUSTOM_A", "CUSTOM_B"], ["n1", "n2", "n3"], (3, 4)), found)
        self.assertLessEqual(len(counted), 6, counted)


class Projects(identity_case.IdentityCase):
    def test_a_project_sees_its_own_nodes(self) -> None:
        body = {"name": "tidy-up", "public": True, "steps": [{**STEP, "order": 1}]}
        self.assertEqual(201, self.ask("system admin", "POST", "/v1/runbooks", body).status)
        self.ask("system admin", "PUT", "/v1/runbooks/tidy-up/traits/CUSTOM_A")
        for node in (self.own_node(name="own"), database.make_node(self.db, name="other", owner="else")):
            self.ask("system admin", "PUT", f"/v1/nodes/{node.uuid}/traits/CUSTOM_A")
        for person, names in (("system reader", ["other", "own"]), ("owner reader", ["own"]), ("stranger reader", [])):
            answer = self.ask(person, "GET", f"{PATH}/runbook/tidy-up/nodes").json
            self.assertEqual(names, [node["name"] for node in answer["nodes"]], person)
        self.assertEqual(403, self.ask("owner reader", "GET", f"{PATH}/template/CUSTOM_A/nodes").status)
