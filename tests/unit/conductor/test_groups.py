"""Conductor groups: a conductor works on the nodes of its group and on no others."""

from typing import Any

from ingot.common import clock, states
from ingot.conductor import manager
from ingot.db import models, nodes
from tests import conductor_case, database


class TestGroups(conductor_case.ConductorCase):
    starts = False

    def joined(self, host: str, group: str) -> manager.Conductor:
        """Start a conductor with its own options."""
        conf = database.configuration(self.database.url)
        conductor_case.fake_hardware(conf)
        for name, value in (("sweep_interval", 1), ("conductor_group", group)):
            conf.set_override(name, value, group="conductor")
        conf.set_override("hash_ring_reset_interval", 0)
        conf.set_override("host", host)
        conductor = manager.Conductor(conf, self.db)
        self.start(conductor)
        return conductor

    def accepted(self, **columns: Any) -> models.Node:
        """Return a node with an accepted deployment of which no conductor was notified."""
        node = database.make_node(self.db, **columns)
        self.accept(node, "deploy", states.DEPLOYING)
        return node

    def worked_on_by(self, node: models.Node) -> set[str]:
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        return {row.conductor for row in self.step_runs(node)}

    def test_each_works_on_the_nodes_of_its_group(self) -> None:
        for host, group in (("of-none", ""), ("of-west", "WEST"), ("of-east", "east")):
            self.joined(host, group)
        expected = [("of-none", ""), ("of-west", "west"), ("of-east", "east")]
        made = [(host, self.accepted(conductor_group=group)) for host, group in expected for _ in range(3)]
        for host, node in made:
            self.assertEqual({host}, self.worked_on_by(node))

    def test_work_waits_until_a_conductor_of_the_group_joins(self) -> None:
        other = self.joined("of-none", "")
        node = self.accepted(conductor_group="west")
        other.sweeper.sweep()
        conductor_case.eventually(lambda: not other.queues.is_busy(node.uuid), "it has nothing to do")
        self.assertEqual("deploy", nodes.get(self.db, node.uuid).flow)
        self.joined("of-west", "west")
        self.assertEqual({"of-west"}, self.worked_on_by(node))

    def test_a_node_that_is_moved_is_worked_on_in_its_new_group(self) -> None:
        self.joined("of-none", "")
        node = self.accepted()
        self.assertEqual({"of-none"}, self.worked_on_by(node))
        self.joined("of-west", "west")
        moved = {"conductor_group": "west", "provision_state": states.AVAILABLE}
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), moved)
        self.accept(node, "deploy", states.DEPLOYING)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)
        runs: dict[str, set[str]] = {}
        for row in self.step_runs(node):
            runs.setdefault(row.run_id, set()).add(row.conductor)
        self.assertEqual([{"of-none"}, {"of-west"}], list(runs.values()))

    def test_a_late_wake_up_is_not_served_in_the_old_group(self) -> None:
        old = self.joined("of-none", "")
        node = self.accepted(conductor_group="west")
        old.queues.notify(node.uuid, "an alarm that was set before")
        conductor_case.eventually(lambda: not old.queues.is_busy(node.uuid), "it has looked")
        left = nodes.get(self.db, node.uuid)
        self.assertEqual(("deploy", None, []), (left.flow, left.reservation, self.step_runs(node)))
        self.assertLessEqual(left.due_at, clock.now())
