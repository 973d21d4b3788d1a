"""What is stored and has taken conductors down is not tried again and again, wherever in its work that happened."""

import dataclasses
import datetime
import uuid
from typing import Any
from unittest import mock

from ingot.common import clock, states
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import engine
from ingot.conductor.task import task_manager
from ingot.db import models, nodes
from tests import conductor_case, database
from tests.unit.conductor.test_recovery import planned

_AGO = datetime.timedelta(hours=1)


class TestGivenUp(conductor_case.ConductorCase):
    starts = False

    def configure(self) -> None:
        self.conf.set_override("sweep_interval", 1, group="conductor")

    def lost(self, times: int, **columns: Any) -> models.Node:
        """Make a node with which so many conductors have died, one after the other."""
        return database.make_node(
            self.db, reservation="a-dead-conductor", lock_epoch=7, lock_attempts=times, due_at=clock.now(), **columns
        )

    def waiting(self, times: int, **columns: Any) -> models.Node:
        values = {
            "provision_state": states.DEPLOYWAIT,
            "flow": "deploy",
            "run_id": str(uuid.uuid4()),
            "driver_internal_info": {
                "deploy_steps": [planned("deploy", "deploy", idempotent=True)],
                "deploy_step_index": 0,
            },
            "step_state": "waiting",
            "step_attempt": 1,
            "step_started_at": clock.now() - _AGO,
            "agent_last_heartbeat": clock.now(),
            "step_heard": clock.now() - _AGO,
        }
        return self.lost(times, **{**values, **columns})

    def test_the_lock_counts_who_was_lost_with_it(self) -> None:
        node = database.make_node(self.db)
        for times in range(1, 4):
            found = nodes.lock(self.db, node.uuid, f"conductor-{times}", "test", [f"conductor-{times - 1}"])
            self.assertEqual(times, found.lock_attempts)
        nodes.release_stale(self.db, "conductor-3")
        found = nodes.lock(self.db, node.uuid, "conductor-4", "test")
        self.assertEqual(4, found.lock_attempts)
        nodes.write_locked(self.db, found, nodes.UNLOCKED)
        self.assertEqual(1, nodes.lock(self.db, node.uuid, "conductor-5", "test").lock_attempts)

    def test_a_wait_that_ends_deadly(self) -> None:
        node = self.waiting(task_manager.MOST_LOST_ATTEMPTS)
        with mock.patch.object(engine, "call_step", side_effect=AssertionError("called")) as called:
            self.start(self.conductor)
            failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn(f"{task_manager.MOST_LOST_ATTEMPTS} conductors in a row", failed.last_error)
        self.assertIn("undeploy", failed.last_error)
        self.assertFalse(called.called)
        self.assertEqual(0, failed.lock_attempts)

    def test_a_wait_goes_on_before(self) -> None:
        node = self.waiting(task_manager.MOST_LOST_ATTEMPTS - 1)
        self.start(self.conductor)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_a_beginning_that_is_deadly(self) -> None:
        node = self.lost(
            task_manager.MOST_LOST_ATTEMPTS,
            provision_state=states.INSPECTING,
            flow="inspect",
            request={"started_at": "x"},
        )
        self.start(self.conductor)
        self.assertIn("conductors in a row", self.settled(node).last_error)

    def test_a_remedy_that_is_deadly_too(self) -> None:
        remedy = mock.Mock()
        flow = dataclasses.replace(FLOWS["deploy"], on_fail=remedy)
        node = self.waiting(task_manager.MOST_LOST_ATTEMPTS + 1)
        with mock.patch.dict(FLOWS, deploy=flow):
            self.start(self.conductor)
            failed = self.settled(node)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("Nothing was cleaned up", failed.last_error)
        self.assertFalse(remedy.called)

    def test_a_power_change_that_is_deadly(self) -> None:
        node = self.lost(
            task_manager.MOST_LOST_ATTEMPTS,
            provision_state=states.MANAGEABLE,
            target_power_state=states.POWER_ON,
            power_request={"target": states.POWER_ON},
        )
        self.start(self.conductor)
        failed = self.settled(node)
        self.assertIn("conductors in a row", failed.last_error)
        self.assertIsNone(failed.target_power_state)

    def test_a_new_step_is_not_blamed_for_the_one_before(self) -> None:
        seen: list[int] = []
        hardware = self.conductor.services.hardware
        with mock.patch.object(hardware.interface("deploy", "fake"), "deploy", lambda task: seen.append(
            nodes.get(self.db, task.node.uuid).lock_attempts
        )):  # fmt: skip
            node = self.lost(3, provision_state=states.DEPLOYING, flow="deploy", request={"started_at": "x"})
            self.start(self.conductor)
            self.settled(node)
        self.assertEqual([1], seen)
