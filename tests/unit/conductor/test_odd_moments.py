"""What comes at an odd moment: aborts, other requests, agents that are silent for a while, hooks that break things."""

import datetime
import socket
from typing import Any
from unittest import mock

from ingot.common import clock, errors, states
from ingot.db import models, nodes
from ingot.drivers.agent import commands
from ingot.drivers.interfaces import base, results
from tests import conductor_case, database
from tests.steps_case import StepsCase, step


class OddCase(StepsCase):
    def wait_for(self, node: models.Node, step_state: str) -> models.Node:
        conductor_case.eventually(
            lambda: (
                nodes.get(self.db, node.uuid).step_state == step_state
                and nodes.get(self.db, node.uuid).reservation is None
            ),
            f"the step is {step_state}",
        )
        return nodes.get(self.db, node.uuid)

    def ran_of(self, node: models.Node) -> list[tuple[str, str]]:
        return [(row.step, row.state) for row in self.step_runs(node)]


class TestAgentAtCollection(OddCase):
    """The agent is asked for its steps when it calls first: that must not go wrong silently, nor for a trifle."""

    def clean(self, unanswered: int) -> models.Node:
        self.agent(step("wipe", 10, "deploy"))
        left = [unanswered]

        def offered(_task: Any, _kind: str) -> list[dict[str, Any]]:
            if left[0]:
                left[0] -= 1
                raise errors.AgentUnreachable(what="Agent command", reason="no agent is there")
            return [step("wipe", 10, "deploy")]

        self.put(self.interface("deploy"), "get_in_band_steps", offered)
        # Heard long ago: an agent that is taken for dead must not be taken for one without steps.
        long_ago = clock.now() - datetime.timedelta(hours=1)
        self.node = database.make_node(
            self.db, provision_state=states.MANAGEABLE, agent_url="http://agent", agent_last_heartbeat=long_ago
        )
        with mock.patch("ingot.conductor.steps.engine.RETRY_DELAYS", (0.05, 0.05)):
            return self.run_flow(self.node, "automated_clean", states.CLEANING)

    def test_an_unresponsive_bmc_is_waited_for_and_the_machine_boots_once(self) -> None:
        booted: list[str] = []
        self.put(self.interface("deploy"), "prepare_cleaning", lambda task: booted.append(task.node.uuid))
        after = self.clean(unanswered=2)
        self.assertEqual((states.AVAILABLE, None), (after.provision_state, after.last_error))
        self.assertEqual([("deploy.wipe", {})], self.calls)
        self.assertEqual(1, len(booted))
        self.assertEqual(["failed", "failed", "done"], [state for name, state in self.ran_of(self.node)][:3])

    def test_no_disk_is_left_as_it_is_because_the_agent_does_not_answer(self) -> None:
        failed = self.clean(unanswered=100)
        self.assertEqual((states.CLEANFAIL, True), (failed.provision_state, failed.maintenance))
        self.assertIn("no agent is there", failed.last_error)


class TestRetries(OddCase):
    def test_a_good_answer_gives_a_step_all_its_chances_back(self) -> None:
        answers = [errors.HardwareUnreachable(what="BMC", reason="busy"), 0.01] * 5 + [None]

        def poll(_task: Any) -> Any:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return None if answer is None else results.PollAfter(answer)

        self.declare("clean", "bios", "poll", base.clean_step(priority=10))
        self.put(self.interface("bios"), "poll", poll)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        with mock.patch("ingot.conductor.steps.engine.RETRY_DELAYS", (0.01, 0.01)):
            after = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((states.AVAILABLE, None), (after.provision_state, after.last_error))

    def test_what_is_waited_for_is_said_while_it_is_tried_again(self) -> None:
        shown: list[str | None] = []
        answers = [errors.HardwareUnreachable(what="BMC", reason="silent"), None]

        def read(task: Any) -> None:
            shown.append(nodes.get(self.db, task.node.uuid).last_error)
            if answer := answers.pop(0):
                raise answer

        self.declare("clean", "bios", "read", base.clean_step(priority=10))
        self.put(self.interface("bios"), "read", read)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        with mock.patch("ingot.conductor.steps.engine.RETRY_DELAYS", (0.01, 0.01)):
            after = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((states.AVAILABLE, None, None), (after.provision_state, after.last_error, shown[0]))
        for part in ("bios.read", "attempt 1", "BMC did not answer: silent", "tried again", "2 times at most"):
            self.assertIn(part, shown[1])

    def test_advice_is_given_once(self) -> None:
        silent = errors.HardwareUnreachable(what="BMC", reason="no answer within 20 s; check driver_info ipmi_address")
        self.put(self.interface("power"), "get_power_state", mock.Mock(side_effect=silent))
        node = database.make_node(self.db, provision_state=states.ENROLL)
        with mock.patch("ingot.conductor.steps.engine.RETRY_DELAYS", ()):
            after = self.run_flow(node, "verify", states.VERIFYING)
        advice = "check driver_info ipmi_address. Fix the cause and manage the node again."
        self.assertEqual(advice, after.last_error[-len(advice) :])
        self.assertEqual(1, after.last_error.count("driver_info"))


class TestClocks(OddCase):
    """API and conductor run on hosts whose clocks differ; what an agent says is heard, and heard once, all the same."""

    def setUp(self) -> None:
        super().setUp()
        self.declare("clean", "bios", "flash", base.clean_step(priority=10, requires_ramdisk=False))
        self.put(self.interface("bios"), "flash", lambda _task: states.CLEANWAIT)

    def waiting(self, **columns: Any) -> models.Node:
        """Return a node in the middle of a step that the agent's next heartbeat ends."""
        node = database.make_node(self.db, provision_state=states.MANAGEABLE, **columns)
        self.accept(node, "automated_clean", states.CLEANING)
        self.notify(node)
        return self.wait_for(node, "ending")

    def test_a_heartbeat_counts_whatever_the_clock_of_its_writer_says(self) -> None:
        for off in (-3600, 3600):
            with self.subTest(off=off):
                node = self.waiting()
                nodes.set_always(self.db, node.uuid, {"agent_last_heartbeat": clock.after(off), "due_at": clock.now()})
                self.notify(node)
                self.assertEqual(states.AVAILABLE, self.settled(node).provision_state)

    def test_one_from_before_the_step_does_not_whatever_the_clock_says(self) -> None:
        node = self.waiting(agent_last_heartbeat=clock.after(3600))
        for _ in range(2):
            self.notify(node)
            node = self.wait_for(node, "ending")
        self.assertGreater(node.due_at, clock.now())


class TestSilence(OddCase):
    """Hardware that does not answer must not starve hardware that does."""

    def configure(self) -> None:
        self.conf.set_override("workers_pool_size", 3, group="conductor")
        self.conf.set_override("connect_timeout", 1, group="agent")

    def test_many_unresponsive_agents_do_not_keep_a_deployment_waiting(self) -> None:
        ears = socket.create_server(("127.0.0.1", 0))  # the kernel takes connections, no server answers
        self.addCleanup(ears.close)
        self.declare("clean", "bios", "ask", base.clean_step(priority=10, requires_ramdisk=False))
        self.put(self.interface("bios"), "ask", lambda task: commands.run(task, "clean.something", dict))
        silent = {"agent_url": f"https://127.0.0.1:{ears.getsockname()[1]}", "agent_token": "t"}
        cleaned = [database.make_node(self.db, provision_state=states.MANAGEABLE, **silent) for _ in range(9)]
        for node in cleaned:
            self.accept(node, "automated_clean", states.CLEANING)
            self.notify(node)
        deployed = self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING)
        self.assertEqual(states.ACTIVE, deployed.provision_state)
        for node in cleaned:
            self.assertEqual(states.CLEANING, self.wait_for(node, "polling").provision_state)


class TestAborts(OddCase):
    def waiting(self, name: str, **args: Any) -> models.Node:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [{"interface": "vendor", "step": name, "args": args}]
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=requested)
        self.notify(node)
        return self.wait_for(node, "polling" if name == "wait" else "holding")

    def test_the_reserved_wait_waits_where_an_abort_is_taken(self) -> None:
        node = self.waiting("wait", seconds=3600)
        self.assertEqual(states.CLEANWAIT, node.provision_state)
        nodes.set_always(self.db, node.uuid, {"abort_requested": True, "due_at": clock.now()})
        self.notify(node)
        self.assertEqual(states.CLEANFAIL, self.settled(node).provision_state)

    def test_one_that_meets_the_last_step_comes_too_late_if_that_is_not_abortable(self) -> None:
        self.declare("clean", "bios", "flash", base.clean_step(priority=0, requires_ramdisk=False))
        self.put(self.interface("bios"), "flash", lambda _task: states.CLEANWAIT)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [{"interface": "bios", "step": "flash"}]
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=requested)
        self.notify(node)
        self.wait_for(node, "ending")
        nodes.set_always(self.db, node.uuid, {"abort_requested": True, "due_at": clock.now()})
        self.notify(node)
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "the wake-up is processed")
        self.assertEqual(states.CLEANWAIT, self.wait_for(node, "ending").provision_state)
        nodes.set_always(self.db, node.uuid, {"agent_last_heartbeat": clock.now(), "due_at": clock.now()})
        self.notify(node)
        after = self.settled(node)
        self.assertEqual((states.MANAGEABLE, None), (after.provision_state, after.last_error))
        self.assertFalse(after.abort_requested)
        self.assertEqual([("flash", "done"), ("tear_down_cleaning", "done")], self.ran_of(node)[-2:])

    def test_a_wait_has_a_longest_time(self) -> None:
        for seconds in (1e9, 10**15, -1, True, "1"):
            with self.subTest(seconds=seconds):
                node = database.make_node(self.db, provision_state=states.MANAGEABLE)
                requested = [{"interface": "vendor", "step": "wait", "args": {"seconds": seconds}}]
                failed = self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=requested)
                self.assertIn("seconds", failed.last_error)
                self.assertEqual([], self.step_runs(node))

    def test_an_abort_while_a_hold_begins_is_seen_without_a_wake_up(self) -> None:
        begins = self.conductor.services

        def abort(_task: Any) -> Any:
            nodes.set_always(begins.db, _task.node.uuid, {"abort_requested": True, "due_at": clock.now()})
            return results.HOLD

        self.declare("clean", "vendor", "stop", base.clean_step(priority=0, requires_ramdisk=False))
        self.put(self.interface("vendor"), "stop", abort)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [{"interface": "vendor", "step": "stop"}]
        self.accept(node, "manual_clean", states.CLEANING, clean_steps=requested)
        self.notify(node)
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "the wake-up is processed")
        self.conductor.sweeper.sweep()
        after = self.settled(node)
        self.assertEqual(states.CLEANFAIL, after.provision_state)
        self.assertIn("abort", after.last_error)

    def test_a_failure_of_its_own_after_an_abort_was_asked_for_is_a_failure(self) -> None:
        def fails(task: Any) -> None:
            nodes.set_always(self.db, task.node.uuid, {"abort_requested": True})
            task.node.abort_requested = True
            raise errors.StepFailed("the flash is broken")

        self.declare("clean", "bios", "flash", base.clean_step(priority=10, requires_ramdisk=False))
        self.put(self.interface("bios"), "flash", fails)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        failed = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((True, "clean failure"), (failed.maintenance, failed.fault))
        self.assertIn("failed in step bios.flash", failed.last_error)
        self.assertEqual(("flash", "failed"), self.ran_of(node)[-1])

    def test_a_parents_abort_reaches_its_children(self) -> None:
        parent = database.make_node(self.db, provision_state=states.MANAGEABLE)
        child = database.make_node(self.db, parent_node=parent.uuid, provision_state=states.MANAGEABLE)
        on_children = {
            "interface": "vendor",
            "step": "pause",
            "args": {"seconds": 3600},
            "execute_on_child_nodes": True,
        }
        self.accept(parent, "manual_clean", states.CLEANING, clean_steps=[on_children])
        self.notify(parent)
        self.wait_for(child, "polling")
        waits = self.wait_for(parent, "polling")
        self.assertEqual(states.CLEANWAIT, waits.provision_state)
        nodes.set_always(self.db, parent.uuid, {"abort_requested": True, "due_at": clock.now()})
        self.notify(parent)
        self.assertEqual(states.CLEANFAIL, self.settled(parent).provision_state)
        after = self.settled(child)
        self.assertEqual(states.MANAGEABLE, after.provision_state)
        self.assertIn("aborted", after.last_error)


class TestFailures(OddCase):
    def test_a_step_that_refuses_its_arguments_while_it_runs_needs_an_operator(self) -> None:
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [{"interface": "bios", "step": "apply_configuration", "args": {"settings": [{"no": "name"}]}}]
        failed = self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=requested)
        self.assertEqual((True, "clean failure"), (failed.maintenance, failed.fault))

    def test_a_machine_that_must_not_be_switched_off_is_not(self) -> None:
        node = database.make_node(self.db, disable_power_off=True, power_state=states.POWER_ON)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("fail", 50, "vendor")])
        self.assertEqual((states.DEPLOYFAIL, states.POWER_ON), (failed.provision_state, failed.power_state))

    def test_a_rebuild_that_is_refused_leaves_the_instance_running(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE, power_state=states.POWER_ON)
        failed = self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=[step("juggle", 50)], rebuild=True)
        self.assertEqual((states.DEPLOYFAIL, states.POWER_ON), (failed.provision_state, failed.power_state))

    def test_what_a_hook_breaks_is_the_fault_of_its_step(self) -> None:
        base.post_clean_step_hook("bios", "reset")(lambda task, _result: task.set(extra={"not": object()}))
        self.addCleanup(base._HOOKS.pop, ("clean", "bios", "reset"))
        self.declare("clean", "bios", "reset", base.clean_step(priority=10, requires_ramdisk=False))
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        failed = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertIn("in step bios.reset", failed.last_error)
        self.assertEqual([("prepare_cleaning", "done"), ("reset", "failed")], self.ran_of(node))

    def test_a_failure_that_leaves_what_cannot_be_written_ends_all_the_same(self) -> None:
        def fails(task: Any) -> None:
            task.set(extra={"not": object()})
            raise errors.StepFailed("broken \ud800 text")

        self.declare("clean", "bios", "flash", base.clean_step(priority=10, requires_ramdisk=False))
        self.put(self.interface("bios"), "flash", fails)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        failed = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((states.CLEANFAIL, True), (failed.provision_state, failed.maintenance))
        self.assertIn("in step bios.flash", failed.last_error)

    def test_a_step_that_must_not_be_repeated_is_not_in_a_later_call_either(self) -> None:
        calls: list[int] = []

        def burn(_task: Any) -> Any:
            calls.append(1)
            if len(calls) == 2:
                raise errors.LockLost(node="n", epoch=1, host="h")  # as if the conductor had died here
            return results.PollAfter(0.01) if len(calls) < 4 else None

        self.declare("deploy", "bios", "burn", base.deploy_step(priority=50))
        self.put(self.interface("bios"), "burn", burn)
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING)
        self.notify(node)
        conductor_case.eventually(lambda: len(calls) == 2, "it was called again")
        self.conductor.sweeper.sweep()
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("not safe to repeat", failed.last_error)
        self.assertEqual(2, len(calls))

    def test_secrets_of_steps_are_not_kept_in_step_runs(self) -> None:
        self.declare("clean", "bios", "lock", base.clean_step(priority=0, argsinfo={"password": {"description": "."}}))
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [{"interface": "bios", "step": "lock", "args": {"password": "s3cret"}}]
        self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=requested)
        self.assertEqual([("bios.lock", {"password": "s3cret"})], self.calls)
        self.assertNotIn("s3cret", str([vars(row) for row in self.step_runs(node)]))

    def test_an_abort_that_finds_only_leaving_left_comes_too_late(self) -> None:
        self.declare("clean", "bios", "last", base.clean_step(priority=10, requires_ramdisk=False))

        def last(task: Any) -> None:
            task.node.abort_requested = True

        self.put(self.interface("bios"), "last", last)
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        after = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((states.AVAILABLE, None), (after.provision_state, after.last_error))

    def test_an_unknown_flow_ends_on_a_node_at_rest(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE, flow="paint", due_at=clock.now())
        self.notify(node)
        after = self.settled(node)
        self.assertEqual(states.ACTIVE, after.provision_state)
        self.assertIn("does not know", after.last_error)

    def test_priorities_may_have_fractions(self) -> None:
        self.agent(step("scrub", 50.5, "deploy"), step("wash", 98.5, "deploy"))
        after = self.deploy()
        self.assertEqual(states.ACTIVE, after.provision_state, after.last_error)
        self.assertEqual([100, 98.5, 50.5], [priority for _, priority, _ in self.ran()])
        self.assertIsInstance(self.ran()[0][1], int)


class TestCutOff(OddCase):
    def test_a_flow_cut_off_by_another_request_is_recorded(self) -> None:
        node = database.make_node(self.db)
        requested = [step("wait", 120, "vendor", seconds=3600)]
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=requested)
        self.notify(node)
        waiting = self.wait_for(node, "polling")
        replaced = {"flow": "deploy", "run": waiting.run_id}
        self.run_flow(node, "delete", states.DELETING, replaces=replaced)
        self.assertEqual([("prepare", "done"), ("wait", "aborted")], self.ran_of(node)[:2])
        events = [entry.event for entry in self.history(node)]
        self.assertIn("Deployment was ended in step vendor.wait: Tear down was requested.", events)

    def test_plans_can_be_read_by_the_release_before(self) -> None:
        self.agent(step("scrub", 50, "deploy"))
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING, deploy_steps=[step("hold", 150, "power")])
        self.notify(node)
        plan = self.wait_for(node, "holding").driver_internal_info["deploy_steps"]
        self.assertEqual({"flow", "driver", "reserved"}, {one["runner"] for one in plan})
