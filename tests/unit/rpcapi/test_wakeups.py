"""Wake-ups are sent beside the requests that cause them, and together while a message is under way."""

import queue
import threading

import testtools

from ingot.common import context, errors
from ingot.rpcapi import transport, versions
from tests import conductor_case

MOST = 3


def wakeup(node: str, why: str = "test") -> transport.Wakeup:
    return transport.Wakeup("advance", versions.RPC_VERSION, context.RequestContext(), {"node_uuid": node, "why": why})


class TestWakeups(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.begun = threading.Semaphore(0)
        self.broker_answers = threading.Event()
        self.messages: queue.Queue[tuple[str, list[str]]] = queue.Queue()
        self.failures: list[Exception] = []
        self.wakeups = transport.Wakeups(self.send, most_waiting=MOST)
        self.addCleanup(self.wakeups.close)
        self.addCleanup(self.broker_answers.set)

    def send(self, host: str, wakeups: list[transport.Wakeup]) -> None:
        self.begun.release()
        self.assertTrue(self.broker_answers.wait(conductor_case.PATIENCE))
        if self.failures:
            raise self.failures.pop()
        self.messages.put((host, [f"{one.args['node_uuid']} {one.args['why']}" for one in wakeups]))

    def next_message(self) -> tuple[str, list[str]]:
        return self.messages.get(timeout=conductor_case.PATIENCE)

    def occupy(self) -> None:
        """Begin a message that is under way until the broker answers."""
        self.wakeups.add("one", wakeup("first"))
        self.assertTrue(self.begun.acquire(timeout=conductor_case.PATIENCE))

    def test_one_alone_goes_out_at_once(self) -> None:
        self.broker_answers.set()
        for node in ("a", "b"):
            self.wakeups.add("one", wakeup(node))
            self.assertEqual(("one", [f"{node} test"]), self.next_message())

    def test_what_comes_while_one_is_sent_costs_one_message_for_each_conductor(self) -> None:
        self.occupy()
        for host, node in (("one", "a"), ("two", "b"), ("one", "c")):
            self.wakeups.add(host, wakeup(node))
        self.broker_answers.set()
        sent = [self.next_message() for _message in range(3)]
        self.assertEqual([("one", ["first test"]), ("one", ["a test", "c test"]), ("two", ["b test"])], sent)
        self.wakeups.add("one", wakeup("last"))
        self.assertEqual(("one", ["last test"]), self.next_message())

    def test_a_second_one_for_a_node_that_waits_adds_nothing(self) -> None:
        self.occupy()
        for why in ("heartbeat", "abort"):
            for node in ("a", "b"):
                self.wakeups.add("one", wakeup(node, why))
        self.wakeups.add("one", wakeup("first"))
        self.broker_answers.set()
        self.next_message()
        self.assertEqual(("one", ["a abort", "b abort", "first test"]), self.next_message())

    def test_only_some_wait_for_the_broker(self) -> None:
        self.occupy()
        for host, node in (("one", "a"), ("two", "b"), ("one", "c")):
            self.wakeups.add(host, wakeup(node))
        self.wakeups.add("one", wakeup("a", "again"))
        refusal = self.assertRaises(errors.ServiceUnavailable, self.wakeups.add, "two", wakeup("d"))
        self.assertIn("too many messages", refusal.message)

    def test_those_that_fail_are_lost_and_the_next_ones_are_sent(self) -> None:
        self.broker_answers.set()
        self.failures = [errors.ServiceUnavailable(what="The bus", reason="away"), ZeroDivisionError()]
        for node in ("a", "b", "c"):
            self.wakeups.add("one", wakeup(node))
            self.assertTrue(self.begun.acquire(timeout=conductor_case.PATIENCE))
        while "c test" not in self.next_message()[1]:
            pass
