"""Servicing, reserved steps, child nodes, a flow of one's own, limits: what one record in the table of flows buys."""

import datetime
import threading
from typing import Any
from unittest import mock

import sqlalchemy as sa

from ingot.common import clock, context, errors, states
from ingot.conductor import flows
from ingot.conductor.steps import planning
from ingot.conductor.steps.flow import Entry, Flow
from ingot.db import models, nodes
from tests import conductor_case, database


def step(name: str, interface: str = "vendor", **more: Any) -> dict[str, Any]:
    return {"interface": interface, "step": name, **more}


class FlowCase(conductor_case.ConductorCase):
    def ran(self, node: models.Node) -> list[tuple[str, str]]:
        return [(row.step, row.state) for row in self.step_runs(node)]

    def become(self, node: models.Node, **columns: Any) -> None:
        nodes.set_always(self.db, node.uuid, columns)
        self.notify(node)


class TestService(FlowCase):
    def test_the_steps_run_in_the_order_given_and_the_node_is_active_again(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        requested = [step("factory_reset", "bios"), step("pause", args={"seconds": 0})]
        after = self.run_flow(node, "service", states.SERVICING, service_steps=requested)
        self.assertEqual((states.ACTIVE, None, {}), (after.provision_state, after.last_error, after.service_step))
        self.assertEqual(
            ["prepare_service", "factory_reset", "pause", "tear_down_service"], [name for name, _ in self.ran(node)]
        )

    def test_a_failure_needs_an_operator(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE, power_state=states.POWER_ON)
        failed = self.run_flow(node, "service", states.SERVICING, service_steps=[step("fail")])
        self.assertEqual(
            (states.SERVICEFAIL, states.ACTIVE, True, "service failure", states.POWER_ON, "fail"),
            (
                failed.provision_state,
                failed.target_provision_state,
                failed.maintenance,
                failed.fault,
                failed.power_state,
                failed.service_step["step"],
            ),
        )

    def test_a_failed_one_can_be_left(self) -> None:
        for more, left in (({}, ["tear_down_service"]), ({"disable_ramdisk": True}, [])):
            with self.subTest(more):
                node = database.make_node(self.db, provision_state=states.ACTIVE)
                requested = [step("fail")]
                failed = self.run_flow(node, "service", states.SERVICING, service_steps=requested, **more)
                self.assertEqual(states.SERVICEFAIL, failed.provision_state)
                ran = len(self.step_runs(node))
                after = self.run_flow(node, "leave_service", states.SERVICING)
                self.assertEqual((states.ACTIVE, None), (after.provision_state, after.last_error))
                self.assertEqual((False, None), (after.maintenance, after.fault))
                self.assertEqual(left, [row.step for row in self.step_runs(node)[ran:]])

    def test_leaving_is_tried_until_it_works_and_nothing_else_forgets_it(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        self.run_flow(node, "service", states.SERVICING, service_steps=[step("fail")])
        deploy = self.conductor.services.hardware.interface("deploy", "fake")
        with mock.patch.object(deploy, "tear_down_service", side_effect=errors.StepFailed("the door is stuck")):
            failed = self.run_flow(node, "leave_service", states.SERVICING)
        self.assertEqual(states.SERVICEFAIL, failed.provision_state)
        refused = self.run_flow(
            node, "service", states.SERVICING, service_steps=[step("power_on", "power")], disable_ramdisk=True
        )
        self.assertIn("disable_ramdisk", refused.last_error)
        self.run_flow(node, "leave_service", states.SERVICING)
        self.assertEqual(("tear_down_service", "done"), self.ran(node)[-1])

    def test_an_unknown_step_is_refused_before_anything_runs(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        failed = self.run_flow(node, "service", states.SERVICING, service_steps=[step("juggle")])
        self.assertEqual(states.SERVICEFAIL, failed.provision_state)
        self.assertIn("vendor.juggle", failed.last_error)
        self.assertEqual([], self.step_runs(node))
        self.assertFalse(failed.maintenance)

    def test_the_origin_is_the_runbook(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        requested = [step("pause", args={"seconds": 0})]
        self.run_flow(node, "service", states.SERVICING, service_steps=requested, origin="runbook tidy-up")
        self.assertIn("runbook tidy-up", [row.origin for row in self.step_runs(node)])


class TestLeavingTheAgent(FlowCase):
    """A machine that a failed cleaning has left in the agent does not stay there when no other cleaning comes."""

    def cleaned_in_vain(self, **more: Any) -> models.Node:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, automated_clean=False)
        self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=[step("fail")], **more)
        self.become(node, provision_state=states.MANAGEABLE)
        return node

    def test_who_is_provided_without_cleaning_leaves_it_first(self) -> None:
        node = self.cleaned_in_vain()
        ran = len(self.ran(node))
        for left in ([("tear_down_cleaning", "done")], []):
            after = self.run_flow(node, "automated_clean", states.CLEANING)
            self.assertEqual((states.AVAILABLE, None), (after.provision_state, after.last_error))
            self.assertEqual(left, self.ran(node)[ran:])
            ran += len(left)
            self.become(node, provision_state=states.MANAGEABLE)

    def test_the_plan_says_so(self) -> None:
        node = self.cleaned_in_vain()
        self.assertEqual(["tear_down_cleaning"], self.planned(node))
        self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual([], self.planned(node))

    def test_who_never_was_there_has_nothing_to_leave(self) -> None:
        self.assertEqual([], self.planned(self.cleaned_in_vain(disable_ramdisk=True)))

    def planned(self, node: models.Node) -> list[str]:
        plan = self.conductor.endpoint.get_plan(context.admin().to_dict(), node.uuid, "automated_clean", {})
        return [one["step"] for one in plan["result"]["steps"]]


class TestReservedSteps(FlowCase):
    def test_hold_stands_still_until_unhold(self) -> None:
        for flow, running, held, waiting, end in (
            ("manual_clean", states.CLEANING, states.CLEANHOLD, states.CLEANWAIT, states.MANAGEABLE),
            ("service", states.SERVICING, states.SERVICEHOLD, states.SERVICEWAIT, states.ACTIVE),
            ("deploy", states.DEPLOYING, states.DEPLOYHOLD, states.DEPLOYWAIT, states.ACTIVE),
        ):
            with self.subTest(flow=flow):
                node = database.make_node(self.db)
                self.accept(node, flow, running, **{steps_of(flow): [step("hold", "power", priority=50, args={})]})
                self.notify(node)
                holding = self.in_state(node, held)
                self.assertEqual((None, "holding"), (holding.due_at, holding.step_state))
                self.notify(node)
                self.assertEqual(held, self.in_state(node, held).provision_state)
                self.become(node, provision_state=waiting, due_at=clock.now())
                self.assertEqual(end, self.settled(node).provision_state)
                self.assertIn(("hold", "done"), self.ran(node))

    def test_a_held_flow_can_be_aborted(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        self.accept(node, "service", states.SERVICING, service_steps=[step("hold", "power")])
        self.notify(node)
        self.in_state(node, states.SERVICEHOLD)
        self.become(node, abort_requested=True, due_at=clock.now())
        after = self.settled(node)
        self.assertEqual((states.ACTIVE, False), (after.provision_state, after.maintenance))
        self.assertIn("power.hold", after.last_error)
        self.assertEqual(
            [("prepare_service", "done"), ("hold", "aborted"), ("tear_down_service", "done")], self.ran(node)
        )

    def test_power_steps(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, power_state=states.POWER_OFF)
        for name, expected in (
            ("power_on", states.POWER_ON),
            ("reboot", states.POWER_ON),
            ("power_off", states.POWER_OFF),
        ):
            after = self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=[step(name, "deploy")])
            self.assertEqual((states.MANAGEABLE, expected), (after.provision_state, after.power_state), name)

    def test_wait_takes_its_time_without_a_thread_and_refuses_nonsense(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=[step("wait", args={"seconds": 3600})])
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == "polling", "the step polls")
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "its thread is free")
        for args, expected in (({"seconds": "x"}, "seconds"), ({"hours": 1}, "hours")):
            other = database.make_node(self.db, provision_state=states.MANAGEABLE)
            failed = self.run_flow(other, "manual_clean", states.CLEANING, clean_steps=[step("wait", args=args)])
            self.assertIn(expected, failed.last_error)

    def test_they_may_stand_anywhere_in_a_deployment(self) -> None:
        node = database.make_node(self.db)
        requested = [
            step("power_on", "power", priority=150, args={}),
            step("wait", "bios", priority=5, args={"seconds": 0}),
        ]
        self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=requested)
        self.assertEqual(["prepare", "power_on", "deploy", "wait"], [name for name, _ in self.ran(node)])


def steps_of(flow: str) -> str:
    """Return the key of a request that has the flow's steps."""
    return {"manual_clean": "clean_steps", "service": "service_steps", "deploy": "deploy_steps"}[flow]


class TestChildren(FlowCase):
    def setUp(self) -> None:
        super().setUp()
        self.parent = database.make_node(self.db, name="dpu-host", provision_state=states.ACTIVE)
        self.children = [
            database.make_node(
                self.db, name=f"dpu-{number}", parent_node=self.parent.uuid, provision_state=states.MANAGEABLE
            )
            for number in range(2)
        ]

    def service(self, **more: Any) -> models.Node:
        options = {"execute_on_child_nodes": True, "args": {"seconds": 0}, **more}
        return self.run_flow(self.parent, "service", states.SERVICING, service_steps=[step("pause", **options)])

    def test_a_step_runs_on_every_child_and_leaves_its_state_alone(self) -> None:
        self.assertEqual(states.ACTIVE, self.service().provision_state)
        for child in self.children:
            self.assertEqual([("pause", "done")], self.ran(child))
            after = nodes.get(self.db, child.uuid)
            self.assertEqual((states.MANAGEABLE, None, None), (after.provision_state, after.flow, after.last_error))
        self.assertIn(("pause", "done"), self.ran(self.parent))

    def test_it_may_be_limited_to_some(self) -> None:
        self.service(limit_child_node_execution=[self.children[1].uuid])
        self.assertEqual(([], [("pause", "done")]), (self.ran(self.children[0]), self.ran(self.children[1])))

    def test_a_failure_on_a_child_fails_the_parent_and_names_it(self) -> None:
        failed = self.service(args={"seconds": -1}, limit_child_node_execution=["dpu-1"])
        self.assertEqual(states.SERVICEFAIL, failed.provision_state)
        self.assertIn(self.children[1].uuid, failed.last_error)
        self.assertIn("vendor.pause", failed.last_error)
        self.assertIn("seconds", nodes.get(self.db, self.children[1].uuid).last_error)

    def test_without_children_there_is_nothing_to_do(self) -> None:
        self.assertEqual(states.ACTIVE, self.service(limit_child_node_execution=["other"]).provision_state)

    def test_a_child_that_is_not_at_rest_is_left_alone(self) -> None:
        nodes.set_always(self.db, self.children[0].uuid, {"provision_state": states.DEPLOYFAIL})
        self.assertIn("at rest", self.service(limit_child_node_execution=["dpu-0"]).last_error)
        self.assertEqual([], self.ran(self.children[0]))

    def test_one_in_maintenance_is_not_touched_and_a_protected_one_is_served(self) -> None:
        nodes.set_always(self.db, self.children[0].uuid, {"maintenance": True, "maintenance_reason": "new fan"})
        nodes.set_always(self.db, self.children[1].uuid, {"protected": True})
        refused = self.service()
        for part in (self.children[0].uuid, "new fan", "limit_child_node_execution"):
            self.assertIn(part, refused.last_error)
        self.assertEqual(([], []), (self.ran(self.parent), self.ran(self.children[0])))
        self.assertEqual(states.ACTIVE, self.service(limit_child_node_execution=["dpu-1"]).provision_state)
        self.assertEqual([("pause", "done")], self.ran(self.children[1]))

    def test_one_that_is_put_into_maintenance_meanwhile_is_not_touched(self) -> None:
        held = [step("hold"), step("pause", execute_on_child_nodes=True, args={"seconds": 0})]
        self.accept(self.parent, "service", states.SERVICING, service_steps=held)
        self.notify(self.parent)
        self.in_state(self.parent, states.SERVICEHOLD)
        nodes.set_always(self.db, self.children[0].uuid, {"maintenance": True})
        self.become(self.parent, provision_state=states.SERVICING, due_at=clock.now())
        self.notify(self.parent)
        self.assertIn("in maintenance", self.settled(self.parent).last_error)
        self.assertEqual([], self.ran(self.children[0]))

    def test_a_conductor_that_takes_over_starts_nothing_twice(self) -> None:
        self.accept(
            self.parent,
            "service",
            states.SERVICING,
            service_steps=[step("pause", execute_on_child_nodes=True, args={"seconds": 1})],
        )
        self.notify(self.parent)
        conductor_case.eventually(lambda: nodes.get(self.db, self.parent.uuid).step_state == "polling", "it looks")
        # As after a crash in the step: the attempt is lost, and with it what the step remembered.
        nodes.set_always(self.db, self.parent.uuid, {"step_state": "running", "step_memory": {}})
        self.notify(self.parent)
        self.assertEqual(states.ACTIVE, self.settled(self.parent).provision_state)
        for child in self.children:
            self.assertEqual([("pause", "done")], self.ran(child))


class TestInventedFlow(FlowCase):
    """A new flow needs one record and nothing else."""

    def setUp(self) -> None:
        self.calls: list[str] = []
        super().setUp()
        invented = Flow(
            name="polish",
            title="Polishing",
            kind="service",
            running=states.SERVICING,
            held=states.SERVICEHOLD,
            done_event="done",
            step_field="service_step",
            first=(Entry("power", "fetch_cloth", lambda _task: self.calls.append("fetched")),),
            last=(Entry("power", "admire", lambda _task: self.calls.append("admired")),),
            plan=lambda task, in_band, report: planning.service(task, in_band, report),
            advice="Polish again.",
        )
        flows.FLOWS["polish"] = invented
        self.addCleanup(flows.FLOWS.pop, "polish")

    def test_it_is_planned_run_recorded_and_shown(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        requested = [step("pause", args={"seconds": 0}), step("power_on", "power")]
        after = self.run_flow(node, "polish", states.SERVICING, service_steps=requested)
        self.assertEqual((states.ACTIVE, None), (after.provision_state, after.last_error))
        self.assertEqual(["fetched", "admired"], self.calls)
        self.assertEqual([(name, "done") for name in ("fetch_cloth", "pause", "power_on", "admire")], self.ran(node))
        self.assertEqual("Polishing completed.", self.history(node)[-1].event)

    def test_it_fails_like_any_other(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE)
        failed = self.run_flow(node, "polish", states.SERVICING, service_steps=[step("fail")])
        self.assertEqual(states.SERVICEFAIL, failed.provision_state)
        self.assertRegex(failed.last_error, r"^Polishing failed in step vendor.fail .* Polish again\.$")


class TestLimits(FlowCase):
    def test_a_step_that_never_ends_fails_in_the_end(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=[step("pause", args={"seconds": 3600})])
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == "polling", "the step polls")
        long_ago = clock.now() - datetime.timedelta(days=2)
        self.become(node, step_started_at=long_ago, due_at=clock.now())
        failed = self.settled(node)
        self.assertEqual(states.CLEANFAIL, failed.provision_state)
        self.assertIn("step_timeout", failed.last_error)
        self.assertIn("vendor.pause", failed.last_error)

    def test_a_wait_may_end_later_than_calendars_do(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=[step("pause", args={"seconds": 1e300})])
        self.notify(node)
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == "polling", "the step polls")
        self.become(node, abort_requested=True, due_at=clock.now())
        self.assertEqual(states.CLEANFAIL, self.settled(node).provision_state)

    def test_thousands_of_waiting_nodes_use_no_thread(self) -> None:
        one = database.make_node(
            self.db,
            provision_state=states.DEPLOYWAIT,
            flow="deploy",
            run_id="0f0f0f0f-0000-4000-8000-000000000000",
            step_state="waiting",
            step_started_at=clock.now(),
            step_deadline=clock.after(3600),
            due_at=clock.after(3600),
            provision_updated_at=clock.now(),
        )
        row = {name: value for name, value in one.as_dict().items() if name != "id"}
        with self.db.transaction() as connection:
            others = [{**row, "uuid": f"00000000-0000-4000-8000-{number:012}"} for number in range(4999)]
            connection.execute(sa.insert(nodes.NODES), others)
        before = threading.active_count()
        for _ in range(3):
            self.conductor.sweeper.sweep()
        self.assertFalse(self.conductor.queues.is_busy(one.uuid))
        self.assertLessEqual(threading.active_count(), before)


class TestHistory(FlowCase):
    def test_there_is_an_entry_for_each_step_and_one_for_the_flow(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=[step("pause", args={"seconds": 0.2})])
        history = self.history(node)
        self.assertEqual(
            ["step", "step", "step", "provisioning"],
            [entry.event_type for entry in history],
            [e.event for e in history],
        )
        self.assertGreaterEqual(history[1].duration_seconds, 0.2)
