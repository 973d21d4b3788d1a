"""Who owns which node, and how few nodes change hands when a conductor joins or leaves."""

import collections
import concurrent.futures as futures
import random
import threading
import uuid

import testtools

from ingot.common import errors
from ingot.common.conf import opts
from ingot.db import conductors
from ingot.rpcapi import client
from tests import patience

POINTS = opts.load([], prog="ingot-tests", files=[]).hash_partition_exponent
PATIENCE = patience.seconds(10)


def owners(hosts: list[str], nodes: list[str]) -> dict[str, str]:
    """Return the owner of each node, with the options' defaults."""
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

    def test_of_forced_reads_that_overlap_the_newest_is_kept(self) -> None:
        began, go = threading.Semaphore(0), threading.Event()

        def read() -> list[conductors.RingMember]:
            self.asked += 1
            if self.asked > 1:
                began.release()
                go.wait(PATIENCE)
            return self.members

        self.rings = client.Rings(read, lambda: self.time, 5, POINTS)
        self.rings.owner("a node", "", "ipmi")
        self.time = 6.0
        self.members = [conductors.RingMember("second", "", "ipmi")]
        with futures.ThreadPoolExecutor(3) as pool:
            searches = [pool.submit(self.rings.owner, "a node", "west", "ipmi") for _one in range(3)]
            self.assertTrue(all(began.acquire(timeout=PATIENCE) for _read in range(3)))
            go.set()
            for search in searches:
                self.assertIsInstance(search.exception(PATIENCE), errors.NoConductor)
        asked = self.asked
        self.assertEqual("second", self.rings.owner("a node", "", "ipmi"))
        self.assertEqual(asked, self.asked)

    def test_an_unserved_node_is_searched_at_once(self) -> None:
        self.assertRaises(errors.NoConductor, self.rings.owner, "a node", "west", "ipmi")
        self.members = [*self.members, conductors.RingMember("second", "west", "ipmi")]
        self.assertEqual("second", self.rings.owner("a node", "west", "ipmi"))

    def test_a_node_belongs_to_its_own_group_and_driver(self) -> None:
        self.members = [conductors.RingMember(f"{group}-{driver}", group, driver) for group in "ew" for driver in "fi"]
        found = {self.rings.owner("a node", group, driver) for group in "ew" for driver in "fi"}
        self.assertEqual({member.hostname for member in self.members}, found)


class TestFrozenDatabase(testtools.TestCase):
    """A read of the members that does not come back."""

    def setUp(self) -> None:
        super().setUp()
        self.time = 0.0
        self.reads = 0
        self.frozen, self.thawed, self.began = False, threading.Event(), threading.Event()
        self.failure: Exception | None = None
        self.rings = client.Rings(self.read, lambda: self.time, 5, POINTS)
        self.threads = futures.ThreadPoolExecutor(4)
        self.addCleanup(self.threads.shutdown)
        self.addCleanup(self.thawed.set)

    def read(self) -> list[conductors.RingMember]:
        self.reads += 1
        if self.frozen:
            self.began.set()
            self.assertTrue(self.thawed.wait(6 * PATIENCE))
        if self.failure is not None:
            raise self.failure
        return [conductors.RingMember("later" if self.frozen else "first", "", "ipmi")]

    def ask(self) -> "futures.Future[str]":
        return self.threads.submit(self.rings.owner, "a node", "", "ipmi")

    def freeze(self, at: float) -> "futures.Future[str]":
        """Start one thread that reads, and is stuck."""
        self.frozen, self.time = True, at
        stuck = self.ask()
        self.assertTrue(self.began.wait(PATIENCE))
        return stuck

    def test_stops_one_thread_only(self) -> None:
        self.assertEqual("first", self.ask().result(PATIENCE))
        stuck = self.freeze(at=5.0)
        self.assertEqual(["first"] * 2, [self.ask().result(PATIENCE) for _number in range(2)])
        self.thawed.set()
        self.assertEqual("later", stuck.result(PATIENCE))
        self.assertEqual(("later", 2), (self.ask().result(PATIENCE), self.reads))

    def test_is_no_excuse_for_old_rings_for_ever(self) -> None:
        self.assertEqual("first", self.ask().result(PATIENCE))
        asked = [self.freeze(at=5 + client.STALEST_S), self.ask()]
        self.assertRaises(futures.TimeoutError, asked[1].result, 0.2)
        self.thawed.set()
        self.assertEqual((["later"] * 2, 2), ([one.result(PATIENCE) for one in asked], self.reads))

    def test_at_the_first_question_all_wait_for_one_read(self) -> None:
        asked = [self.freeze(at=0.0), self.ask()]
        self.assertRaises(futures.TimeoutError, asked[1].result, 0.2)
        self.thawed.set()
        self.assertEqual((["later"] * 2, 1), ([one.result(PATIENCE) for one in asked], self.reads))

    def test_all_that_waited_get_the_error_and_the_next_question_reads_anew(self) -> None:
        self.failure = errors.ServiceUnavailable(what="The database", reason="it is frozen")
        asked = [self.freeze(at=0.0), self.ask()]
        self.assertRaises(futures.TimeoutError, asked[1].result, 0.2)
        self.thawed.set()
        for one in asked:
            self.assertRaises(errors.ServiceUnavailable, one.result, PATIENCE)
        self.failure = None
        self.assertEqual(("later", 2), (self.ask().result(PATIENCE), self.reads))
