"""Provision requests through the API and a real conductor: what is accepted is what runs."""

from typing import Any

from ingot.common import states
from ingot.db import models, nodes
from tests import api_case, conductor_case, database, plan_case
from tests.plan_case import TRAIT, ranked, step


class RequestCase(plan_case.PlanCase):
    def verb(self, node: models.Node, target: str, version: str = api_case.LATEST, **arguments: Any) -> None:
        answer = self.sent(node, target, version, **arguments)
        self.assertEqual(202, answer.status, answer)

    def sent(self, node: models.Node, target: str, version: str = api_case.LATEST, **arguments: Any) -> api_case.Answer:
        return api_case.Answer(
            self.http.put(
                f"/v1/nodes/{node.uuid}/states/provision",
                json={"target": target, **arguments},
                headers={"X-OpenStack-Ironic-API-Version": version},
            )
        )

    def ran(self, node: models.Node) -> list[tuple[str, str]]:
        return [(row.step, row.origin) for row in self.step_runs(node) if row.origin != "flow"]


class Runbooks(RequestCase):
    def test_its_steps_run_in_their_order_and_say_where_they_come_from(self) -> None:
        node = self.with_traits(TRAIT, requested=[], provision_state=states.MANAGEABLE)
        steps = [step("pause", args={"seconds": 0}, order=2), step("factory_reset", "bios", order=1)]
        self.ask("POST", "/v1/runbooks", {"name": "tidy-up", "steps": steps, "disable_ramdisk": True})
        self.ask("PUT", f"/v1/runbooks/tidy-up/traits/{TRAIT}")
        for verb, state in (("clean", states.MANAGEABLE), ("service", states.ACTIVE)):
            nodes.set_always(self.db, node.uuid, {"provision_state": state})
            self.verb(node, verb, runbook="tidy-up")
            self.assertEqual(state, self.settled(node).provision_state)
        self.assertEqual([(name, "runbook tidy-up") for name in ("factory_reset", "pause")] * 2, self.ran(node))


class Templates(RequestCase):
    def test_are_used_at_microversions_that_do_not_know_them(self) -> None:
        self.template(ranked("pause", 40, seconds=0))
        node = self.with_traits(TRAIT)
        self.verb(node, "active", "1.5")
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        self.assertIn(("pause", f"template {TRAIT}"), self.ran(node))


class Holding(RequestCase):
    def held(self, verb: str, state: str, held: str, **arguments: Any) -> models.Node:
        node = database.make_node(self.db, provision_state=state)
        self.verb(node, verb, **arguments)
        return self.in_state(node, held)

    def test_unhold_goes_on_to_where_the_flow_was_going(self) -> None:
        for verb, state, held in (
            ("clean", states.MANAGEABLE, states.CLEANHOLD),
            ("service", states.ACTIVE, states.SERVICEHOLD),
        ):
            hold = [step("hold", "power"), step("pause", args={"seconds": 0})]
            node = self.held(verb, state, held, **{f"{verb}_steps": hold})
            self.assertEqual(state, node.target_provision_state)
            self.verb(node, "unhold")
            self.assertEqual((state, None), self.end(node))
            self.assertEqual(["hold", "pause"], [name for name, _origin in self.ran(node)])
        node = self.held("active", states.AVAILABLE, states.DEPLOYHOLD, deploy_steps=[ranked("hold", 150, "power")])
        self.verb(node, "unhold")
        self.assertEqual((states.ACTIVE, None), self.end(node))

    def end(self, node: models.Node) -> tuple[str, str | None]:
        after = self.settled(node)
        return after.provision_state, after.target_provision_state

    def test_abort_ends_what_is_held(self) -> None:
        hold = [step("hold", "power")]
        node = self.held("clean", states.MANAGEABLE, states.CLEANHOLD, clean_steps=hold)
        self.verb(node, "abort")
        self.assertEqual(states.CLEANFAIL, self.settled(node).provision_state)
        node = self.held("active", states.AVAILABLE, states.DEPLOYHOLD, deploy_steps=[ranked("hold", 150, "power")])
        self.verb(node, "abort")
        self.assertEqual(states.DEPLOYFAIL, self.settled(node).provision_state)

    def test_a_held_service_can_be_asked_for_again_with_other_steps(self) -> None:
        node = self.held("service", states.ACTIVE, states.SERVICEHOLD, service_steps=[step("hold", "power")])
        self.verb(node, "service", service_steps=[step("pause", args={"seconds": 0})])
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_a_failed_service_is_given_up(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        self.verb(node, "service", service_steps=[step("fail")])
        self.assertEqual(states.SERVICEFAIL, self.settled(node).provision_state)
        self.verb(node, "abort")
        after = self.settled(node)
        self.assertEqual((states.ACTIVE, None, None), (after.provision_state, after.target_provision_state, after.flow))


class Children(RequestCase):
    def test_a_child_is_not_disturbed_while_its_parents_step_runs_on_it(self) -> None:
        parent = database.make_node(self.db, name="host", provision_state=states.ACTIVE)
        rest = {"parent_node": parent.uuid, "provision_state": states.MANAGEABLE}
        child = database.make_node(self.db, name="dpu", **rest)
        other = database.make_node(self.db, name="dpu-2", **rest)
        slow = step("pause", args={"seconds": 2}, execute_on_child_nodes=True, limit_child_node_execution=["dpu"])
        self.verb(parent, "service", service_steps=[slow])
        conductor_case.eventually(lambda: nodes.get(self.db, child.uuid).flow, "the step runs on the child")
        refused = self.sent(child, "provide")
        self.assertEqual(409, refused.status)
        self.assertIn("for_parent", refused.message)
        self.assertIn(parent.uuid, refused.message)
        self.assertEqual(states.ACTIVE, self.settled(parent).provision_state)
        self.settled(child)
        self.verb(child, "provide")
        self.assertEqual([], self.step_runs(other))
