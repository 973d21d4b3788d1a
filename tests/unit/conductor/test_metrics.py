"""What a conductor counts: flows, steps, locks, queues, timers, calls to BMCs; and what it shows of itself."""

import threading

from ingot.common import context, errors, metrics, states
from ingot.conductor import periodic
from ingot.conductor.flows import FLOWS
from ingot.conductor.task import task_manager
from tests import conductor_case, database, metric_values

FAILS = {"interface": "vendor", "step": "fail", "priority": 150, "args": {}}


class TestFlows(conductor_case.ConductorCase):
    def read(self, outcome: str) -> tuple[float, float]:
        labels = {"flow": "deploy", "outcome": outcome}
        seconds = metric_values.read("ingot_flow_duration_seconds_count", **labels)
        return metric_values.read("ingot_flows_total", **labels), seconds

    def read_steps(self, interface: str, step: str, outcome: str) -> tuple[float, float]:
        labels = {"flow": "deploy", "interface": interface, "step": step}
        seconds = metric_values.read("ingot_step_duration_seconds_count", **labels)
        return metric_values.read("ingot_steps_total", **labels, outcome=outcome), seconds

    def test_flows_and_steps_that_end_well(self) -> None:
        before = self.read("done") + self.read_steps("deploy", "deploy", "done")
        node = self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING)
        self.assertEqual(states.ACTIVE, node.provision_state)
        after = self.read("done") + self.read_steps("deploy", "deploy", "done")
        self.assertEqual(tuple(count + 1 for count in before), after)

    def test_flows_and_steps_that_fail(self) -> None:
        before = self.read("failed") + self.read_steps("vendor", "fail", "failed")
        node = self.run_flow(database.make_node(self.db), "deploy", states.DEPLOYING, deploy_steps=[FAILS])
        self.assertEqual(states.DEPLOYFAIL, node.provision_state)
        after = self.read("failed") + self.read_steps("vendor", "fail", "failed")
        self.assertEqual(tuple(count + 1 for count in before), after)

    def test_what_has_not_happened_yet_is_zero_and_not_missing(self) -> None:
        counted = {labels["flow"] for labels in metric_values.list_series("ingot_flows_total")}
        self.assertEqual(set(FLOWS), counted)

    def test_steps_of_others_have_one_name(self) -> None:
        names = {"write_image", "erase_devices", "wait", "verify_power", "power_on"}
        self.assertEqual(set(), {name for name in names if metrics.STEP_NAMES[name] == metrics.OTHER})
        self.assertEqual(metrics.OTHER, metrics.STEP_NAMES["a_site_of_its_own"])


class TestLocks(conductor_case.ConductorCase):
    def read(self) -> list[float]:
        outcomes = ("taken", "refused", "lost")
        return [metric_values.read("ingot_conductor_locks_total", outcome=outcome) for outcome in outcomes]

    def test_locks_are_counted_while_they_are_held_and_afterwards(self) -> None:
        node, services = database.make_node(self.db), self.conductor.services
        taken, refused, lost = self.read()
        held = metric_values.read("ingot_conductor_locks_held")
        with task_manager.acquire(services, context.admin(), node.uuid, "a test"):
            self.assertEqual(held + 1, metric_values.read("ingot_conductor_locks_held"))
        self.assertEqual(held, metric_values.read("ingot_conductor_locks_held"))
        other = database.make_node(self.db, reservation="another")
        with self.assertRaises(errors.NodeLocked):
            with task_manager.acquire(services, context.admin(), other.uuid, "a test"):
                self.fail("it was locked")
        self.assertEqual([taken + 1, refused + 1, lost], self.read())


class TestState(conductor_case.ConductorCase):
    def test_queues_show_what_waits_and_what_runs(self) -> None:
        begun, goes_on = threading.Event(), threading.Event()
        self.addCleanup(goes_on.set)
        queues = self.conductor.queues
        queues.submit("a node", lambda: begun.set() or goes_on.wait(conductor_case.PATIENCE))
        waiting = queues.submit("a node", lambda: None)
        begun.wait(conductor_case.PATIENCE)
        self.assertEqual(1, metric_values.read("ingot_conductor_nodes_with_work"))
        self.assertEqual(1, metric_values.read("ingot_conductor_jobs_waiting"))
        self.assertEqual(
            [(1, 5), (0, 2)],
            [
                tuple(metric_values.read("ingot_conductor_workers", pool=pool, state=one) for one in ("busy", "most"))
                for pool in ("usual", "slow")
            ],
        )
        measured = metric_values.read("ingot_conductor_queue_duration_seconds_count")
        goes_on.set()
        waiting.result(conductor_case.PATIENCE)
        self.assertEqual(measured + 1, metric_values.read("ingot_conductor_queue_duration_seconds_count"))
        conductor_case.eventually(
            lambda: metric_values.read("ingot_conductor_workers", pool="usual", state="busy") == 0, "the thread is free"
        )

    def test_heartbeat_ring_and_readiness(self) -> None:
        self.assertGreater(metric_values.read("ingot_conductor_heartbeat_timestamp_seconds"), 1e9)
        self.assertEqual(1, metric_values.read("ingot_conductor_ring_members"))
        self.assertEqual(0, metric_values.read("ingot_conductor_drained"))
        self.conductor.leave()
        self.assertEqual(1, metric_values.read("ingot_conductor_drained"))

    def test_owned_nodes_are_those_of_the_last_reading_of_power_states(self) -> None:
        for _ in range(3):
            database.make_node(self.db)
        database.make_node(self.db, reservation="another")
        self.conductor.synchronizer.sync_power()
        self.assertEqual(3, metric_values.read("ingot_conductor_nodes_owned"))

    def test_calls_to_bmcs_and_silent_ones(self) -> None:
        labels = {"driver": "fake-hardware", "outcome": "unanswered"}
        before = metric_values.read("ingot_bmc_calls_total", **labels)
        with self.assertRaises(errors.HardwareUnreachable):
            with self.conductor.services.circuit_breakers.observe_call("a node", "a BMC", "fake-hardware"):
                raise errors.HardwareUnreachable(what="BMC", reason="silence")
        self.assertEqual(before + 1, metric_values.read("ingot_bmc_calls_total", **labels))
        self.assertEqual(1, metric_values.read("ingot_bmc_circuit_breakers_open"))


class TestTimers(conductor_case.ConductorCase):
    starts = False

    def test_one_that_never_ends_well_has_a_time_to_compare_with(self) -> None:
        pool = periodic.TimerPool([periodic.Timer("test_idle_timer", lambda: None, 3600)])
        pool.stop()
        labels = {"timer": "test_idle_timer"}
        self.assertGreater(metric_values.read("ingot_conductor_timer_last_success_timestamp_seconds", **labels), 1e9)

    def test_their_calls_and_failures_are_counted(self) -> None:
        ends = [None, errors.ServiceUnavailable(what="The database", reason="away"), ValueError("a bug")]
        called = threading.Event()

        def work() -> None:
            if not ends:
                called.set()
            elif (end := ends.pop(0)) is not None:
                raise end

        pool = periodic.TimerPool([periodic.Timer("test_timer", work, 0.01, immediately=True)])
        self.assertTrue(called.wait(conductor_case.PATIENCE))
        pool.stop()
        pool.wait(conductor_case.PATIENCE)
        labels = {"timer": "test_timer"}
        self.assertGreaterEqual(metric_values.read("ingot_conductor_timer_duration_seconds_count", **labels), 4)
        self.assertEqual(2, metric_values.read("ingot_conductor_timer_failures_total", **labels))
        self.assertGreater(metric_values.read("ingot_conductor_timer_last_success_timestamp_seconds", **labels), 1e9)
