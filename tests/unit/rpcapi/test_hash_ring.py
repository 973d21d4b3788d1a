"""Who owns which node, and how few nodes change hands when a conductor joins or leaves."""

import collections
import random
import uuid

import testtools

from ingot.common import errors
from ingot.common.conf import loader
from ingot.db import conductors
from ingot.rpcapi import client

POINTS = loader.load([], prog="ingot-tests", files=[]).hash_partition_exponent


def owners(hosts: list[str], nodes: list[str]) -> dict[str, str]:
    """The owner of each node, with the options' defaults."""
    members = [conductors.RingMember(host, "", "ipmi") for host in hosts]
    rings = client.Rings(lambda: members, lambda: 0.0, 5, POINTS)
    return {node: rings.owner(node, "", "ipmi") for node in nodes}


class TestChanges(testtools.TestCase):
    """A fleet of 10,000 nodes."""

    def setUp(self) -> None:
        super().setUp()
        chance = random.Random(6)  # noqa: S311 - no secret
        self.nodes = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _number in range(10_000)]

    def test_a_conductor_that_joins_takes_its_share_and_one_that_leaves_gives_it_back(self) -> None:
        for number in (1, 2, 9):
            with self.subTest(f"{number} conductors, and one more"):
                hosts = [f"conductor-{place}" for place in range(number + 1)]
                without, complete = owners(hosts[:-1], self.nodes), owners(hosts, self.nodes)
                moved = [node for node in self.nodes if without[node] != complete[node]]
                self.assertEqual({hosts[-1]}, {complete[node] for node in moved})
                ideal = len(self.nodes) / (number + 1)
                self.assertTrue(ideal / 1.5 <= len(moved) <= ideal * 1.5, f"{len(moved)} moved, ideally {ideal:.0f}")
                shares = collections.Counter(complete.values())
                self.assertLess(max(shares.values()), 1.8 * ideal, shares)


class TestMembership(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.time = 0.0
        self.asked = 0
        self.members = [conductors.RingMember("first", "", "ipmi")]
        self.rings = client.Rings(self.read, lambda: self.time, 5, POINTS)

    def read(self) -> list[conductors.RingMember]:
        self.asked += 1
        return self.members

    def test_a_change_is_seen_after_the_interval(self) -> None:
        self.assertEqual("first", self.rings.owner("a node", "", "ipmi"))
        self.members = [conductors.RingMember("second", "", "ipmi")]
        self.time = 4.9
        self.assertEqual("first", self.rings.owner("a node", "", "ipmi"))
        self.time = 5.0
        self.assertEqual("second", self.rings.owner("a node", "", "ipmi"))
        self.assertEqual(2, self.asked)

    def test_an_unserved_node_is_searched_at_once(self) -> None:
        self.assertRaises(errors.NoConductor, self.rings.owner, "a node", "west", "ipmi")
        self.members = [*self.members, conductors.RingMember("second", "west", "ipmi")]
        self.assertEqual("second", self.rings.owner("a node", "west", "ipmi"))

    def test_a_node_belongs_to_its_own_group_and_driver(self) -> None:
        self.members = [conductors.RingMember(f"{group}-{driver}", group, driver) for group in "ew" for driver in "fi"]
        found = {self.rings.owner("a node", group, driver) for group in "ew" for driver in "fi"}
        self.assertEqual({member.hostname for member in self.members}, found)
