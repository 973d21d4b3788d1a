"""Whatever flow fails, and wherever: last_error names step and interface, the cause, and what to do next."""

import pathlib
from collections.abc import Callable
from typing import Any

import fixtures

from ingot.common import clock, errors, keyring, states
from ingot.conductor.flows import FLOWS
from ingot.db import models, nodes
from tests import conductor_case, database

CAUSE = "the machine is on fire"
FAIL = {"interface": "vendor", "step": "fail", "priority": 50, "args": {"message": CAUSE}}
BARE = {name: FAIL[name] for name in ("interface", "step", "args")}


class Case:
    """How a flow is made to fail.

    :param step: the step that fails.
    :param broken: interface and method that fail; None: the step fails on its own.
    :param known: what is in driver_internal_info before.
    """

    def __init__(
        self,
        running: str,
        step: str = "vendor.fail",
        broken: str | None = None,
        known: dict[str, Any] | None = None,
        **request: Any,
    ) -> None:
        self.running, self.step, self.broken, self.known, self.request = running, step, broken, known or {}, request


IN_A_STEP = {
    "verify": Case(states.VERIFYING, "power.verify_power", broken="power.get_power_state"),
    "automated_clean": Case(states.CLEANING),
    "manual_clean": Case(states.CLEANING, clean_steps=[BARE]),
    "deploy": Case(states.DEPLOYING, deploy_steps=[FAIL]),
    "adopt": Case(states.ADOPTING, "power.verify_power", broken="power.get_power_state"),
    "inspect": Case(states.INSPECTING, "inspect.inspect_hardware", broken="inspect.inspect_hardware"),
    "rescue": Case(states.RESCUING, "rescue.rescue", broken="rescue.rescue", rescue_password="$6$salt$hash"),
    "unrescue": Case(states.UNRESCUING, "rescue.unrescue", broken="rescue.unrescue"),
    "delete": Case(states.DELETING, "deploy.tear_down", broken="deploy.tear_down"),
    "service": Case(states.SERVICING, service_steps=[BARE]),
    "leave_service": Case(
        states.SERVICING,
        "deploy.tear_down_service",
        broken="deploy.tear_down_service",
        known={"in_agent_for_service": True},
    ),
    "for_parent": Case(states.MANAGEABLE, kind="clean", steps=[BARE]),
}


class LastErrors(conductor_case.ConductorCase):
    def configure(self) -> None:
        self.conf.set_override("clean_step_priority_override", {"vendor.fail": 5}, group="conductor")

    def break_down(self, broken: str | None, how: Callable[..., Any]) -> None:
        if broken:
            kind, method = broken.split(".")
            setattr(self.conductor.services.hardware.interface(kind, "fake"), method, how)

    def in_step_state(self, node: models.Node, state: str) -> None:
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).step_state == state, f"a step is {state}")

    def failed(self, flow: str, case: Case) -> models.Node:
        node = database.make_node(self.db, driver_internal_info=case.known)
        return self.run_flow(node, flow, case.running, **case.request)

    def test_every_flow_names_step_cause_and_remedy(self) -> None:
        def fails(*_given: Any, **_more: Any) -> None:
            raise errors.HardwareError(what="Asking the BMC", reason=CAUSE)

        self.assertEqual(set(FLOWS), set(IN_A_STEP))
        for flow, case in IN_A_STEP.items():
            with self.subTest(flow=flow):
                self.break_down(case.broken, fails)
                error = self.failed(flow, case).last_error
                self.assertTrue(
                    error.startswith(f"{FLOWS[flow].title} failed in step {case.step} on conductor "), error
                )
                self.assertIn("fake step failed" if case.broken is None else CAUSE, error)
                self.assertTrue(error.endswith(f". {FLOWS[flow].advice}"), error)

    def test_the_advice_of_every_flow_is_a_sentence(self) -> None:
        for flow in FLOWS.values():
            self.assertRegex(flow.advice, r"^[A-Z].{20,}\.$")

    def test_a_plan_that_cannot_be_made_names_the_step_that_is_wrong(self) -> None:
        juggle = {**FAIL, "step": "juggle", "args": {}}
        bare = {name: juggle[name] for name in ("interface", "step")}
        for flow, request in (
            ("manual_clean", {"clean_steps": [bare]}),
            ("deploy", {"deploy_steps": [juggle]}),
            ("service", {"service_steps": [bare]}),
        ):
            with self.subTest(flow=flow):
                error = self.failed(flow, Case(IN_A_STEP[flow].running, **request)).last_error
                for words in ("before its first step", "vendor.juggle", "vendor.pause", FLOWS[flow].advice):
                    self.assertIn(words, error)

    def test_an_abort_says_so_and_what_to_do_next(self) -> None:
        pause = {"interface": "vendor", "step": "pause", "args": {"seconds": 600}}
        for flow, request in (
            ("manual_clean", {"clean_steps": [pause]}),
            ("deploy", {"deploy_steps": [{**pause, "priority": 50}]}),
            ("service", {"service_steps": [pause]}),
        ):
            with self.subTest(flow=flow):
                node = database.make_node(self.db)
                self.accept(node, flow, IN_A_STEP[flow].running, **request)
                self.notify(node)
                self.in_step_state(node, "polling")
                nodes.set_always(self.db, node.uuid, {"abort_requested": True, "due_at": clock.now()})
                self.notify(node, "abort")
                error = self.settled(node).last_error
                self.assertIn(f"{FLOWS[flow].title} was aborted in step vendor.pause", error)
                leaves = FLOWS[flow].abort_leaves  # and ends well: there is nothing to do next
                self.assertTrue(error.endswith("aborted by request." if leaves else FLOWS[flow].advice), error)

    def test_a_bug_in_a_driver_is_reported_with_its_step(self) -> None:
        def fails(*_given: Any) -> None:
            raise KeyError("colour")

        self.break_down("deploy.prepare", fails)
        error = self.failed("deploy", Case(states.DEPLOYING)).last_error
        for words in ("deploy.prepare", "KeyError", "colour", FLOWS["deploy"].advice):
            self.assertIn(words, error)

    def test_a_secret_whose_key_is_lost_fails_what_needs_it_until_it_is_written_anew(self) -> None:
        lost = keyring.Keyring(pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "secrets.key", seals=True)
        lost.add_key()
        self.break_down("power.get_power_state", lambda task: states.POWER_ON if task.node.driver_info else None)
        node = database.make_node(self.db, driver_info=self.db.keyring.wrap(lost.seal({"power_password": "s3cret"})))
        error = self.run_flow(node, "verify", states.VERIFYING).last_error
        for words in ("A secret cannot be decrypted", str(self.db.keyring.path), "has no key", "write the secret anew"):
            self.assertIn(words, error)
        nodes.set_always(self.db, node.uuid, {"driver_info": {"power_password": "s3cret"}})
        self.assertIsNone(self.run_flow(node, "verify", states.VERIFYING).last_error)

    def test_a_step_on_child_nodes_names_the_child_and_its_cause(self) -> None:
        parent = database.make_node(self.db)
        child = database.make_node(self.db, parent_node=parent.uuid, provision_state=states.MANAGEABLE)
        requested = [{**BARE, "execute_on_child_nodes": True}]
        error = self.run_flow(parent, "manual_clean", states.CLEANING, clean_steps=requested).last_error
        for words in ("vendor.fail", child.uuid, CAUSE, FLOWS["manual_clean"].advice):
            self.assertIn(words, error)


class HistoryOfFlows(conductor_case.ConductorCase):
    """One entry for each ended step, and one for the flow."""

    def test_of_each_flow(self) -> None:
        for flow, case in IN_A_STEP.items():
            if case.broken is None:
                with self.subTest(flow=flow):
                    node = database.make_node(self.db)
                    asked_by = {"user": "ada", "project": "engines"}
                    self.run_flow(node, flow, case.running, asked_by=asked_by, **case.request)
                    entries = [entry for entry in self.history(node) if entry.event_type == "step"]
                    ended = self.step_runs(node)
                    self.assertEqual([row.finished_at for row in ended], [entry.created_at for entry in entries])
                    self.assertEqual(
                        [(row.finished_at - row.started_at).total_seconds() for row in ended],
                        [entry.duration_seconds for entry in entries],
                    )
                    self.assertEqual({("ada", "engines")}, {(entry.user, entry.project) for entry in entries})
                    last = self.history(node)[-1]
                    self.assertEqual(("provisioning", "ada"), (last.event_type, last.user))

    def test_a_flow_that_was_looked_at_more_than_once_tells_all_its_steps(self) -> None:
        node = database.make_node(self.db)
        requested = [{"interface": "vendor", "step": "pause", "args": {"seconds": 0.1}}]
        self.run_flow(node, "service", states.SERVICING, service_steps=requested)
        steps = [entry.event.split()[1] for entry in self.history(node) if entry.event_type == "step"]
        self.assertEqual(["deploy.prepare_service", "vendor.pause", "deploy.tear_down_service"], steps)
