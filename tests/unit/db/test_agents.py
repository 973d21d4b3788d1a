"""Lookup, the token that is given out once, and heartbeats."""

import threading

from ingot.common import clock, states
from ingot.db import agents, nodes
from tests import database

_BEAT = {"agent_url": "https://192.0.2.7:9999", "agent_version": "11.0.0"}


class AgentsOnSQLite(database.TestCase):
    def test_is_found_by_uuid_or_by_one_of_its_addresses(self) -> None:
        node, other = (database.make_node(self.db) for _ in range(2))
        ports = [database.make_port(self.db, node).address for _ in range(2)]
        foreign = database.make_port(self.db, other).address

        self.assertEqual(node.uuid, agents.look_up(self.db, None, [*ports, "52:54:00:ff:ff:ff"]).uuid)
        self.assertEqual(other.uuid, agents.look_up(self.db, other.uuid, ports).uuid)
        self.assertIsNone(agents.look_up(self.db, None, [ports[0], foreign]))
        self.assertIsNone(agents.look_up(self.db, None, ["52:54:00:ff:ff:ff"]))

    def ask_at_once(self, *addresses: str) -> list[str | None]:
        """Return the tokens that clients get, each with an address of its own or the same one."""
        node = agents.look_up(self.db, database.make_node(self.db).uuid, ())
        assert node is not None
        start = threading.Barrier(len(addresses))
        tokens: list[str | None] = []

        def ask(address: str) -> None:
            start.wait()
            tokens.append(agents.issue_token(self.db, node, address, 60))

        threads = [threading.Thread(target=ask, args=(address,)) for address in addresses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertIn(agents.read_for_heartbeat(self.db, node.uuid).agent_token, tokens)
        return tokens

    def test_of_two_agents_that_ask_at_once_one_gets_a_token(self) -> None:
        tokens = self.ask_at_once(*(f"192.0.2.{number}" for number in range(8)))
        self.assertEqual((8, 1), (len(tokens), len([token for token in tokens if token is not None])))

    def test_an_agent_that_asks_twice_at_once_gets_one_token_twice(self) -> None:
        tokens = self.ask_at_once(*["192.0.2.7"] * 8)
        self.assertEqual((8, 1), (len(tokens), len(set(tokens))))
        self.assertNotIn(None, tokens)

    def test_a_heartbeat_schedules_a_waiting_node(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYWAIT, agent_token="t")

        agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, node.uuid), _BEAT)

        seen = nodes.get(self.db, node.uuid)
        self.assertEqual(seen.agent_last_heartbeat, seen.due_at)
        self.assertEqual(_BEAT["agent_url"], seen.agent_url)
        self.assertEqual(node.revision, seen.revision)

    def test_a_heartbeat_schedules_no_other_node(self) -> None:
        for state in sorted(states.ALL - states.WAITING):
            node = database.make_node(self.db, provision_state=state, agent_token="t")
            agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, node.uuid), _BEAT)
            self.assertIsNone(nodes.get(self.db, node.uuid).due_at, state)

    def test_a_heartbeat_that_comes_late_does_not_wake_a_node_that_went_on(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYWAIT, agent_token="t")
        checked = agents.read_for_heartbeat(self.db, node.uuid)
        nodes.compare_and_set(self.db, node, {"provision_state": states.DEPLOYING})

        agents.record_heartbeat(self.db, checked, _BEAT)

        self.assertIsNone(nodes.get(self.db, node.uuid).due_at)

    def test_a_heartbeat_checked_before_the_wait_began_schedules_the_node(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYING, agent_token="t")
        checked = agents.read_for_heartbeat(self.db, node.uuid)
        nodes.compare_and_set(self.db, node, {"provision_state": states.DEPLOYWAIT})

        agents.record_heartbeat(self.db, checked, _BEAT)

        self.assertIsNotNone(nodes.get(self.db, node.uuid).due_at)

    def test_a_heartbeat_of_a_deleted_node_is_not_noted(self) -> None:
        checked = agents.read_for_heartbeat(self.db, database.make_node(self.db).uuid)
        with self.db.single() as connection:
            connection.execute(nodes.NODES.delete())

        self.assertFalse(agents.record_heartbeat(self.db, checked, _BEAT))

    def make_busy(self, ran: float, ago: float = 0.0) -> str:
        """Return the uuid of a node whose agent was asked a moment ago, and is still busy with a step.

        :param ran: seconds for which the step had run then.
        :param ago: seconds since.
        """
        sent = {**dict.fromkeys(("agent_verify_ca", "agent_status")), **_BEAT}
        return database.make_node(
            self.db,
            provision_state=states.DEPLOYWAIT,
            flow="deploy",
            step_state=states.StepState.WATCHING,
            step_started_at=clock.after(-ran - ago),
            provision_updated_at=clock.after(-ago),
            due_at=clock.after(100),
            agent_token="t",
            **sent,
        ).uuid

    def beat(self, uuid: str) -> tuple[bool, bool]:
        """Return whether a heartbeat is written, and whether the conductor is woken up for it."""
        node = agents.read_for_heartbeat(self.db, uuid)
        if agents.is_repeated(node, _BEAT):
            return False, False
        self.assertTrue(agents.record_heartbeat(self.db, node, _BEAT))
        return True, agents.needs_wakeup(node)

    def test_a_busy_agent_that_was_asked_a_moment_ago_costs_no_wake_up(self) -> None:
        uuid = self.make_busy(ran=30, ago=1)
        self.assertEqual((True, False), self.beat(uuid))
        seen = nodes.get(self.db, uuid)
        self.assertEqual(seen.agent_last_heartbeat, seen.due_at)  # no heartbeat is forgotten
        self.assertEqual((False, False), self.beat(uuid))
        self.assertEqual(seen, nodes.get(self.db, uuid))

    def test_an_agent_is_asked_again_when_the_pause_is_over(self) -> None:
        for ran, ago in ((30, 3.1), (3600, 4.1), (5, 0.6), (0.5, 0.0)):
            self.assertEqual((True, True), self.beat(self.make_busy(ran, ago)), (ran, ago))

    def test_hosts_whose_clocks_differ_forget_no_wake_up(self) -> None:
        self.assertEqual((True, True), self.beat(self.make_busy(ran=30, ago=-60)))

    def test_heartbeats_that_wait_for_an_answer_are_written_once(self) -> None:
        uuid = self.make_busy(ran=0.5)
        self.assertEqual((True, True), self.beat(uuid))
        self.assertEqual((False, False), self.beat(uuid))

    def test_one_while_the_agent_may_be_asked_is_written(self) -> None:
        """The answer may be older than the heartbeat."""
        uuid = self.make_busy(ran=30)
        self.beat(uuid)
        nodes.set_always(self.db, uuid, {"reservation": "one"})
        self.assertEqual((True, True), self.beat(uuid))

    def test_one_that_says_something_else_is_written(self) -> None:
        uuid = self.make_busy(ran=0.5)
        self.beat(uuid)
        node = agents.read_for_heartbeat(self.db, uuid)
        self.assertTrue(agents.is_repeated(node, _BEAT))
        for name, value in (("agent_version", "12.0.0"), ("agent_status", "end"), ("agent_verify_ca", "another")):
            self.assertFalse(agents.is_repeated(node, {**_BEAT, name: value}), name)

    def test_one_is_written_every_few_seconds_though_no_conductor_answers(self) -> None:
        uuid = self.make_busy(ran=0.5)
        self.beat(uuid)
        earlier = clock.after(-5)
        nodes.set_always(self.db, uuid, {"agent_last_heartbeat": earlier, "due_at": earlier})
        self.assertTrue(self.beat(uuid)[0])

    def test_a_conductor_that_may_be_about_to_wait_is_woken_up(self) -> None:
        """It began to wait after the heartbeat was read, or after it was written: nothing tells it that one came."""
        uuid = database.make_node(
            self.db, provision_state=states.DEPLOYING, flow="deploy", reservation="one", agent_token="t"
        ).uuid
        self.assertEqual((True, True), self.beat(uuid))

    def test_a_lookup_asks_a_busy_agent_once(self) -> None:
        for ago, wakes in ((1, False), (3.1, True)):
            uuid = self.make_busy(ran=30, ago=ago)
            for expected in (wakes, False):
                found = agents.look_up(self.db, uuid, ())
                assert found is not None
                self.assertEqual(expected, agents.request_check(self.db, found))
                self.assertLessEqual(nodes.get(self.db, uuid).due_at, clock.now())

    def test_a_lookup_takes_one_statement(self) -> None:
        uuid = self.make_busy(ran=30)
        address = database.make_port(self.db, nodes.get(self.db, uuid)).address
        nodes.set_always(self.db, uuid, {"due_at": clock.now()})
        for ident, addresses in ((uuid, ()), (None, (address, "52:54:00:ff:ff:ff"))):
            with database.statements(self.db) as sent:
                found = agents.look_up(self.db, ident, addresses)
                assert found is not None
                self.assertIsNone(agents.issue_token(self.db, found, "192.0.2.7", 60))
                self.assertFalse(agents.request_check(self.db, found))
            self.assertEqual(["SELECT"], [statement.split()[0] for statement in sent])

    def test_a_heartbeat_takes_two_statements(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYWAIT, agent_token="t")
        with database.statements(self.db) as sent:
            agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, node.uuid), _BEAT)
        self.assertEqual(["SELECT", "UPDATE"], [statement.split()[0] for statement in sent])
