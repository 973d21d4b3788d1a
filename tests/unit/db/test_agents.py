"""Lookup, the token that is given out once, and heartbeats."""

import threading

from ingot.common import states
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
        node = database.make_node(self.db, provision_state=states.DEPLOYWAIT)

        agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, node.uuid), _BEAT)

        seen = nodes.get(self.db, node.uuid)
        self.assertEqual(seen.agent_last_heartbeat, seen.due_at)
        self.assertEqual(_BEAT["agent_url"], seen.agent_url)
        self.assertEqual(node.revision, seen.revision)

    def test_a_heartbeat_schedules_no_other_node(self) -> None:
        for state in sorted(states.ALL - states.WAITING):
            node = database.make_node(self.db, provision_state=state)
            agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, node.uuid), _BEAT)
            self.assertIsNone(nodes.get(self.db, node.uuid).due_at, state)

    def test_a_heartbeat_that_comes_late_does_not_wake_a_node_that_went_on(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYWAIT)
        checked = agents.read_for_heartbeat(self.db, node.uuid)
        nodes.compare_and_set(self.db, node, {"provision_state": states.DEPLOYING})

        agents.record_heartbeat(self.db, checked, _BEAT)

        self.assertIsNone(nodes.get(self.db, node.uuid).due_at)

    def test_a_heartbeat_checked_before_the_wait_began_schedules_the_node(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYING)
        checked = agents.read_for_heartbeat(self.db, node.uuid)
        nodes.compare_and_set(self.db, node, {"provision_state": states.DEPLOYWAIT})

        agents.record_heartbeat(self.db, checked, _BEAT)

        self.assertIsNotNone(nodes.get(self.db, node.uuid).due_at)

    def test_a_heartbeat_of_a_deleted_node_is_not_noted(self) -> None:
        checked = agents.read_for_heartbeat(self.db, database.make_node(self.db).uuid)
        with self.db.single() as connection:
            connection.execute(nodes.NODES.delete())

        self.assertFalse(agents.record_heartbeat(self.db, checked, _BEAT))

    def test_a_heartbeat_takes_two_statements(self) -> None:
        node = database.make_node(self.db, provision_state=states.DEPLOYWAIT)
        with database.statements(self.db) as sent:
            agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, node.uuid), _BEAT)
        self.assertEqual(["SELECT", "UPDATE"], [statement.split()[0] for statement in sent])
