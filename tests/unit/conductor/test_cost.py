"""How many statements the conductor needs for the flows of a node: one for each transition."""

import collections

from ingot.common import clock, context, states
from ingot.conductor.task import task_manager
from ingot.db import events, nodes
from tests import conductor_case, database, sql_counter

_LOCK = ["UPDATE", "SELECT"]


class Cost(conductor_case.ConductorCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.conductor.membership.join()
        self.node = database.make_node(self.db)

    def statements(self, flow: str, state: str) -> list[str]:
        """Run a flow on this thread; return the first words of its statements."""
        self.accept(self.node, flow, state)
        with sql_counter.counting(self.db) as counted:
            self.conductor.dispatcher._reconcile(self.node.uuid, "test")
        self.assertIsNone(nodes.get(self.db, self.node.uuid).flow)
        return [text.split()[0] for text in counted.statements]

    def test_a_flow_costs_its_lock_and_one_write_for_each_transition(self) -> None:
        self.statements("verify", states.VERIFYING)  # reads the membership, once for a while
        # It has two steps, and so two step runs; the history is written at the end.
        two_steps = ["UPDATE", "UPDATE", "INSERT", "UPDATE", "INSERT", "INSERT"]
        self.assertEqual([*_LOCK, *two_steps], self.statements("automated_clean", states.CLEANING))
        self.assertEqual([*_LOCK, *two_steps], self.statements("deploy", states.DEPLOYING))
        # Then it is cleaned under the same lock.
        torn_down = ["UPDATE", "UPDATE", "INSERT", "INSERT"]
        self.assertEqual([*_LOCK, *torn_down, *two_steps], self.statements("delete", states.DELETING))

    def test_a_lock_that_lasts_ends_with_an_event_that_costs_nothing(self) -> None:
        for age, expected in ((0, []), (2, ["lock"])):
            with sql_counter.counting(self.db) as counted:
                services = self.conductor.services
                with task_manager.acquire(services, context.admin(), self.node.uuid, "test") as task:
                    task.node.locked_at = clock.after(-age)
            self.assertEqual(3, len(counted), counted)
            events.collect(self.db, 60)
            seen = [event.kind for event in events.read_page(self.db, 0, 100) if event.node_uuid == self.node.uuid]
            self.assertEqual(expected, seen)

    def test_what_was_read_of_the_machine_is_written_with_the_transition(self) -> None:
        sent = self.statements("verify", states.VERIFYING)
        self.assertEqual(
            {"UPDATE": 5, "INSERT": 5}, {k: v for k, v in collections.Counter(sent).items() if k != "SELECT"}
        )
