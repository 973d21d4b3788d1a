"""What happens to work whose conductor is gone: found by the sweep, repeated where safe, fenced where not."""

import datetime
import logging
import uuid
from collections.abc import Callable
from typing import Any

import fixtures
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.common import clock, context, errors, states
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import engine
from ingot.conductor.task import task_manager
from ingot.db import agents, models, nodes
from ingot.drivers.interfaces import results
from tests import conductor_case, database

_AGO = datetime.timedelta(hours=1)


def planned(interface: str, name: str, idempotent: bool) -> dict[str, object]:
    return {
        "interface": interface,
        "step": name,
        "priority": 100,
        "args": {},
        "origin": "driver",
        "abortable": False,
        "idempotent": idempotent,
        "runner": "driver",
        "requires_ramdisk": False,
        "reboot_requested": False,
    }


class TestRecovery(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 1, group="conductor")

    def node_in_step(self, step: dict[str, object], **values: object) -> models.Node:
        """Return a node whose conductor died in a step, an hour ago."""
        return database.make_node(
            self.db,
            **{
                "provision_state": states.DEPLOYING,
                "target_provision_state": states.ACTIVE,
                "flow": "deploy",
                "request": {"started_at": clock.iso(clock.now() - _AGO)},
                "run_id": str(uuid.uuid4()),
                "driver_internal_info": {"deploy_steps": [step], "deploy_step_index": 0},
                "step_state": "running",
                "step_attempt": 1,
                "step_started_at": clock.now() - _AGO,
                "provision_updated_at": clock.now() - _AGO,
                "reservation": "a-dead-conductor",
                "lock_epoch": 7,
                "due_at": clock.now() - _AGO,
                **values,
            },
        )

    def test_an_accepted_request_needs_no_wake_up(self) -> None:
        node = database.make_node(self.db)
        self.accept(node, "deploy", states.DEPLOYING)
        self.start(self.conductor)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_a_request_that_was_not_checked_is_checked_when_it_begins(self) -> None:
        for flow, state, failed, wrong in (
            ("deploy", states.DEPLOYING, states.DEPLOYFAIL, {"instance_info": {"traits": ["CUSTOM_NONE"]}}),
            ("deploy", states.DEPLOYING, states.DEPLOYFAIL, {"power_interface": "not-enabled"}),
            ("inspect", states.INSPECTING, states.INSPECTFAIL, {"inspect_interface": "not-enabled"}),
        ):
            node = database.make_node(self.db, **wrong)
            asked = {"request": {}} if flow == "deploy" else {"flow": flow}
            method = "validate_deploy" if flow == "deploy" else "validate_flow"
            answer = getattr(self.conductor.endpoint, method)({}, node_uuid=node.uuid, **asked)
            self.accept(node, flow, state, unchecked={"project": None, "roles": []})
            self.notify(node)
            ended = self.settled(node)
            self.assertEqual(failed, ended.provision_state, wrong)
            self.assertIn(answer["error"]["message"].rstrip("."), ended.last_error)
            self.assertEqual([], self.step_runs(node))

    def test_an_idempotent_step_of_a_dead_conductor_is_repeated(self) -> None:
        node = self.node_in_step(planned("deploy", "deploy", idempotent=True))
        self.start(self.conductor)
        done = self.settled(node)
        self.assertEqual((states.ACTIVE, None), (done.provision_state, done.last_error))
        self.assertEqual([(1, "interrupted"), (2, "done")], [(row.attempt, row.state) for row in self.step_runs(node)])

    def test_a_plan_of_release_0_1_names_no_runner(self) -> None:
        old = {name: value for name, value in planned("deploy", "deploy", idempotent=True).items() if name != "runner"}
        info = {"deploy_steps": [{**old, "in_band": False}], "deploy_step_index": 0}
        interrupted = self.node_in_step({**old, "in_band": False})
        failed = database.make_node(self.db, provision_state=states.DEPLOYFAIL, driver_internal_info=info)
        self.accept(failed, "deploy", states.DEPLOYING)
        self.start(self.conductor)
        for node in (interrupted, failed):
            done = self.settled(node)
            self.assertEqual((states.ACTIVE, None), (done.provision_state, done.last_error))

    def test_a_runner_of_another_release_fails_the_flow_and_says_so(self) -> None:
        node = self.node_in_step({**planned("deploy", "deploy", idempotent=True), "runner": "robot"})
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("upgrade all conductors", failed.last_error)

    def test_a_step_that_takes_its_conductors_down_is_given_up(self) -> None:
        node = self.node_in_step(planned("deploy", "deploy", idempotent=True), step_memory={"engine": {"lost": 4}})
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("5 times in a row", failed.last_error)

    def test_another_step_of_a_dead_conductor_fails_the_flow_and_says_why(self) -> None:
        node = self.node_in_step(planned("deploy", "deploy", idempotent=False))
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("deploy.deploy", failed.last_error)
        self.assertIn("not safe to repeat", failed.last_error)

    def test_a_step_that_waits_goes_on_waiting(self) -> None:
        later = clock.now() + _AGO
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            provision_state=states.DEPLOYWAIT,
            step_state="waiting",
            step_deadline=later,
        )
        self.start(self.conductor)
        waiting = conductor_case.eventually(
            lambda: nodes.get(self.db, node.uuid).reservation is None and nodes.get(self.db, node.uuid), "lock is free"
        )
        self.assertEqual(states.DEPLOYWAIT, waiting.provision_state)
        self.assertEqual(later, waiting.due_at)
        self.assertEqual([], self.step_runs(node))

    def test_a_step_that_watches_its_agent_looks_when_that_is_overdue(self) -> None:
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            provision_state=states.DEPLOYWAIT,
            step_state="watching",
            step_deadline=clock.now() + _AGO,
            reservation=None,
        )
        self.start(self.conductor)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_a_step_is_known_to_be_untouched_only_right_after_it_began(self) -> None:
        """Then an agent is not asked whether it has the step's command already."""
        seen: list[bool] = []
        step = self.conductor.services.hardware.interface("deploy", "fake")
        step.deploy = lambda task: seen.append(task.is_first_call)  # type: ignore[attr-defined]
        self.start(self.conductor)
        for found in ("running", "polling", "watching", "next"):
            node = self.node_in_step(
                planned("deploy", "deploy", idempotent=True),
                step_state=found,
                step_deadline=clock.now() + _AGO,
                agent_last_heartbeat=clock.now(),
                reservation=None,
            )
            self.conductor.sweeper.sweep()
            self.assertIsNone(self.settled(node).last_error)
        self.assertEqual([False, False, False, True], seen)

    def test_a_busy_agent_that_calls_often_is_asked_again_after_a_pause_without_a_wake_up(self) -> None:
        self.conf.set_override("sweep_interval", 60, group="conductor")
        answers = [results.DONE, results.WaitForAgent(watch=True)]
        step = self.conductor.services.hardware.interface("deploy", "fake")
        step.deploy = lambda _task: answers.pop()  # type: ignore[attr-defined]
        self.start(self.conductor)
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            provision_state=states.DEPLOYWAIT,
            step_state="watching",
            step_started_at=clock.after(-25),
            agent_last_heartbeat=clock.now(),
            agent_token="t",
            reservation=None,
        )
        self.notify(node, "heartbeat")
        conductor_case.eventually(
            lambda: len(answers) == 1 and nodes.get(self.db, node.uuid).reservation is None, "the agent was asked"
        )
        heard = agents.read_for_heartbeat(self.db, node.uuid)
        self.assertTrue(agents.record_heartbeat(self.db, heard, {"agent_url": "https://192.0.2.7:9999"}))
        self.assertFalse(agents.needs_wakeup(heard))
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_a_step_that_must_not_be_repeated_runs_in_each_of_its_calls(self) -> None:
        seen: list[str] = []

        def step(task: task_manager.Task) -> None:
            seen.append(nodes.get(self.db, task.node.uuid).step_state)

        self.conductor.services.hardware.interface("deploy", "fake").deploy = step  # type: ignore[attr-defined]
        self.start(self.conductor)
        for resumed in ("waiting", "watching", "polling"):
            node = self.node_in_step(
                planned("deploy", "deploy", idempotent=False),
                provision_state=states.DEPLOYWAIT,
                step_state=resumed,
                step_deadline=clock.now() + _AGO,
                agent_last_heartbeat=clock.now(),
                reservation=None,
            )
            self.conductor.sweeper.sweep()
            self.assertIsNone(self.settled(node).last_error)
        self.assertEqual(["running"] * 3, seen)

    def test_a_wait_that_is_too_long_fails_and_names_the_step(self) -> None:
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            provision_state=states.DEPLOYWAIT,
            step_state="waiting",
            step_deadline=clock.now() - _AGO,
            reservation=None,
        )
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("timed out", failed.last_error)
        self.assertIn("deploy.deploy", failed.last_error)

    def test_a_heartbeat_ends_a_wait(self) -> None:
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            provision_state=states.DEPLOYWAIT,
            step_state="ending",
            step_deadline=clock.now() + _AGO,
            agent_last_heartbeat=clock.now(),
            reservation=None,
        )
        self.start(self.conductor)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_a_lock_of_a_dead_conductor_is_released_even_if_no_work_is_scheduled(self) -> None:
        node = database.make_node(self.db, provision_state=states.ACTIVE, reservation="a-dead-conductor")
        self.start(self.conductor)
        free = conductor_case.eventually(
            lambda: nodes.get(self.db, node.uuid).reservation is None and nodes.get(self.db, node.uuid), "lock is free"
        )
        self.assertEqual(states.ACTIVE, free.provision_state)

    def test_an_abort_ends_a_waiting_deployment(self) -> None:
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            provision_state=states.DEPLOYWAIT,
            step_state="waiting",
            step_deadline=clock.now() + _AGO,
            abort_requested=True,
            reservation=None,
        )
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("aborted", failed.last_error)
        self.assertEqual("aborted", self.step_runs(node)[-1].state)

    def test_an_abort_of_a_clean_step_that_is_not_abortable_comes_after_it(self) -> None:
        node = self.node_in_step(
            planned("bios", "factory_reset", idempotent=True),
            flow="manual_clean",
            provision_state=states.CLEANWAIT,
            driver_internal_info={
                "clean_steps": [planned("bios", "factory_reset", True), planned("vendor", "pause", True)],
                "clean_step_index": 0,
            },
            step_state="waiting",
            step_deadline=clock.now() + _AGO,
            abort_requested=True,
            reservation=None,
        )
        self.start(self.conductor)
        nodes.set_always(self.db, node.uuid, {"agent_last_heartbeat": clock.now(), "due_at": clock.now()})
        failed = self.settled(node)
        self.assertEqual((states.CLEANFAIL, False), (failed.provision_state, failed.maintenance))
        self.assertEqual(
            [("factory_reset", "done"), ("pause", "aborted")], [(row.step, row.state) for row in self.step_runs(node)]
        )

    def test_an_abort_does_not_cut_off_a_step_whose_conductor_died_in_it(self) -> None:
        node = self.node_in_step(
            planned("bios", "factory_reset", idempotent=True),
            flow="manual_clean",
            provision_state=states.CLEANING,
            driver_internal_info={
                "clean_steps": [planned("bios", "factory_reset", True), planned("vendor", "pause", True)],
                "clean_step_index": 0,
            },
            abort_requested=True,
        )
        self.start(self.conductor)
        self.assertEqual(states.CLEANFAIL, self.settled(node).provision_state)
        self.assertEqual(
            [("factory_reset", "interrupted"), ("factory_reset", "done"), ("pause", "aborted")],
            [(row.step, row.state) for row in self.step_runs(node)],
        )

    def test_an_abort_takes_effect_after_the_step_that_a_heartbeat_ends(self) -> None:
        node = self.node_in_step(
            planned("bios", "factory_reset", idempotent=True),
            flow="manual_clean",
            provision_state=states.CLEANWAIT,
            driver_internal_info={
                "clean_steps": [planned("bios", "factory_reset", True), planned("vendor", "fail", True)],
                "clean_step_index": 0,
            },
            step_state="ending",
            agent_last_heartbeat=clock.now(),
            abort_requested=True,
            reservation=None,
        )
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertEqual(states.CLEANFAIL, failed.provision_state)
        self.assertIn("was aborted", failed.last_error)
        self.assertEqual("aborted", self.step_runs(node)[-1].state)

    def test_a_flow_that_this_release_does_not_know_fails_and_says_so(self) -> None:
        for progress in ({"run_id": None, "request": {}}, {}):
            node = self.node_in_step(planned("deploy", "deploy", idempotent=True), flow="paint", **progress)
            self.start(self.make_conductor(self.db))
            failed = self.settled(node)
            self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
            self.assertIn("paint", failed.last_error)
            self.assertIn("Upgrade", failed.last_error)

    def test_a_step_that_begins_is_found_by_the_sweep_should_its_conductor_die(self) -> None:
        node = self.node_in_step(
            planned("deploy", "deploy", idempotent=True),
            step_state="ending",
            provision_state=states.DEPLOYWAIT,
            driver_internal_info={
                "deploy_steps": [planned("bios", "factory_reset", True), planned("vendor", "fail", True)],
                "deploy_step_index": 0,
            },
            agent_last_heartbeat=clock.now(),
            due_at=None,
            reservation=None,
        )
        services = self.conductor.services
        with task_manager.acquire(services, context.admin(), node.uuid, "a look") as task:
            engine.Run(task, FLOWS["deploy"], FLOWS)._next(results.DONE)
            self.assertEqual("running", nodes.get(self.db, node.uuid).step_state)
            self.assertGreaterEqual(clock.now(), nodes.get(self.db, node.uuid).due_at)


class TestNeedlessWakeups(conductor_case.ConductorCase):
    def test_an_idle_node_is_not_locked(self) -> None:
        node = database.make_node(self.db)
        for why in ("alarm", "heartbeat"):
            self.notify(node, why)
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "the wake-ups are processed")
        self.assertEqual(node.lock_epoch, nodes.get(self.db, node.uuid).lock_epoch)


class TestWithoutDatabase(conductor_case.ConductorCase):
    starts = False

    def logged(self, work: Callable[[], Any]) -> list[str]:
        """Return what is logged for work while the database does not answer, in lines."""
        logger = self.useFixture(fixtures.FakeLogger(level=logging.INFO))

        def refuse(*_statement: object) -> None:
            raise db_exc.DBConnectionError("it is away")

        sa.event.listen(self.db.engine, "before_cursor_execute", refuse)
        try:
            work()
        finally:
            sa.event.remove(self.db.engine, "before_cursor_execute", refuse)
        return logger.output.splitlines()

    def test_a_wake_up_is_one_line(self) -> None:
        node = database.make_node(self.db, due_at=clock.now())

        def wake_up() -> None:
            self.notify(node)
            self.conductor.queues.submit(node.uuid, lambda: None).result(conductor_case.PATIENCE)

        self.assertEqual(["Database unavailable: it is away"], self.logged(wake_up))

    def test_an_outage_is_one_line_however_often_it_is_met(self) -> None:
        node = database.make_node(self.db)

        def look() -> None:
            for _ in range(3):
                self.assertRaises(errors.ServiceUnavailable, nodes.get, self.db, node.uuid)

        for _outage in range(2):
            self.assertEqual(["Database unavailable: it is away"], self.logged(look))
            nodes.get(self.db, node.uuid)

    def test_one_for_an_allocation_is_one_line_too(self) -> None:
        def wake_up() -> None:
            self.conductor.endpoint.process_allocation({}, allocation_uuid="one")
            conductor_case.eventually(lambda: not self.conductor.queues.is_busy("allocation one"), "it was looked at")

        self.assertEqual(["Database unavailable: it is away"], self.logged(wake_up))


class TestFencing(conductor_case.ConductorCase):
    starts = False

    def test_a_task_whose_lock_was_taken_over_writes_nothing(self) -> None:
        node = database.make_node(self.db)
        services = self.conductor.services
        with task_manager.acquire(services, context.admin(), node.uuid, "a long nap") as task:
            nodes.lock(self.db, node.uuid, "conductor-2", "take-over", steal_from=("conductor-1",))
            task.set(last_error="written too late")
            task.save()
            self.fail("a write with a lost lock went through")
        after = nodes.get(self.db, node.uuid)
        self.assertEqual(("conductor-2", None), (after.reservation, after.last_error))

    def frozen_task(self, node: models.Node, stolen: bool, alive: bool) -> list[str]:
        """Return what a task does with its machine after its conductor was frozen for an hour in the middle of it.

        :param stolen: whether another conductor takes the lock meanwhile.
        :param alive: whether it has written a heartbeat again, and the task goes on only then.
        """
        services, did = self.conductor.services, []
        with task_manager.acquire(services, context.admin(), node.uuid, "a long nap") as task:
            did.append(task.driver.power.get_power_state(task))
            services.lease.renew(services.lease.now() - 3600)
            if stolen:
                nodes.lock(self.db, node.uuid, "conductor-2", "take-over", steal_from=("conductor-1",))
            if alive:
                services.lease.renew(services.lease.now())
            task.driver.power.start_power_change(task, states.POWER_ON)
            did.append("power on")
        return did

    def test_a_conductor_that_was_frozen_tells_machines_nothing_that_others_have(self) -> None:
        for alive in (True, False):
            self.assertEqual(["power off"], self.frozen_task(database.make_node(self.db), stolen=True, alive=alive))

    def test_a_conductor_that_was_frozen_goes_on_with_machines_that_are_still_its_own(self) -> None:
        for alive in (True, False):
            did = self.frozen_task(database.make_node(self.db), stolen=False, alive=alive)
            self.assertEqual(["power off", "power on"], did)

    def test_a_conductor_with_recent_heartbeats_does_not_read_its_lock(self) -> None:
        services = self.conductor.services
        services.lease.renew(services.lease.now())
        with task_manager.acquire(services, context.admin(), database.make_node(self.db).uuid, "work") as task:
            with database.statements(self.db) as sent:
                task.driver.power.get_power_state(task)
            self.assertEqual([], sent)

    def test_the_lock_is_given_back_and_half_a_change_is_dropped_on_an_exception(self) -> None:
        node = database.make_node(self.db)

        def work() -> None:
            with task_manager.acquire(self.conductor.services, context.admin(), node.uuid, "an accident") as task:
                task.set(last_error="half a change")
                raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, work)
        after = nodes.get(self.db, node.uuid)
        self.assertEqual((None, None), (after.reservation, after.last_error))

    def test_a_conflict_says_who_since_when_and_for_what(self) -> None:
        node = database.make_node(self.db)
        nodes.lock(self.db, node.uuid, "conductor-2", "deploying for a friend")

        def work() -> None:
            with task_manager.acquire(self.conductor.services, context.admin(), node.uuid, "me too"):
                pass

        refused = self.assertRaises(errors.NodeLocked, work)
        self.assertIn("conductor-2", refused.message)
        self.assertIn("deploying for a friend", refused.message)
