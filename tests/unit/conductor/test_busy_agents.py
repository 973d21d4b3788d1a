"""What an agent costs that is busy for long and calls as real ones do, seconds to minutes apart."""

import datetime

from ingot.common import clock, states
from ingot.common.states import StepState
from ingot.db import agents, models, node_lists, nodes
from ingot.drivers.agent import commands
from tests import database, sql_counter
from tests.steps_case import StepsCase, step
from tests.unit.drivers import http_agent

BEAT = ("agent_url", "agent_version", "agent_verify_ca", "agent_status")


class TestBusyAgents(StepsCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.conductor.membership.join()
        self.machine = http_agent.HttpAgent()
        self.addCleanup(self.machine.stop)
        self.agent(step("burn", 50, "deploy"))
        self.put(self.interface("deploy"), "execute_in_band_step", commands.execute_step)
        there = {**self.machine.columns(), "agent_last_heartbeat": clock.now()}
        self.node = database.make_node(self.db, **there)
        self.accept(self.node, "deploy", states.DEPLOYING)
        self.reconcile()
        self.assertEqual(StepState.WATCHING, self.read().step_state)

    def read(self) -> models.Node:
        return nodes.get(self.db, self.node.uuid)

    def reconcile(self) -> None:
        self.conductor.dispatcher._reconcile(self.node.uuid, "test")

    def beat(self) -> None:
        """Let some seconds pass, have the agent call, and let the conductor answer that."""
        seen, ago = self.read(), datetime.timedelta(seconds=5)
        back = ("step_started_at", "provision_updated_at", "agent_last_heartbeat", "step_heard")
        nodes.set_always(self.db, self.node.uuid, {name: getattr(seen, name) - ago for name in back})
        node = agents.read_for_heartbeat(self.db, self.node.uuid)
        values = {name: getattr(node, name) for name in BEAT}
        self.assertFalse(agents.is_repeated(node, values))
        self.assertTrue(agents.record_heartbeat(self.db, node, values))
        self.assertTrue(agents.needs_wakeup(node))
        self.reconcile()

    def test_each_call_costs_one_question_and_a_lock(self) -> None:
        asked = len(self.machine.methods)
        for _ in range(3):
            with sql_counter.counting(self.db) as counted:
                self.beat()
            kinds = [text.split()[0] for text in counted.statements]
            # After what the test reads and writes: the heartbeat, the lock and the node, and the end of the lock.
            self.assertEqual(["SELECT", "UPDATE", "UPDATE", "SELECT", "UPDATE"], kinds[-5:], counted)
            self.assertEqual(0, counted.commits)
        self.assertEqual(["GET"] * 3, self.machine.methods[asked:])

    def test_between_two_calls_nothing_is_due(self) -> None:
        self.beat()
        services = self.conductor.services
        due = node_lists.list_to_check(self.db, clock.after(60), 100, services.group, services.hardware.drivers)
        self.assertEqual([], [node.uuid for node in due])

    def test_when_it_has_ended_the_flow_goes_on_to_its_end(self) -> None:
        self.beat()
        self.machine.end(result={})
        self.beat()
        self.assertEqual((states.ACTIVE, None), (self.read().provision_state, self.read().flow))
