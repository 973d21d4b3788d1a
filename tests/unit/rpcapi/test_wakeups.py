"""Wake-ups are sent beside the requests that cause them."""

import threading

import testtools

from ingot.common import errors
from ingot.rpcapi import transport
from tests import conductor_case


class TestWakeups(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.wakeups = transport.Wakeups(most_waiting=3)
        self.addCleanup(self.wakeups.close)
        self.broker_is_back = threading.Event()
        self.addCleanup(self.broker_is_back.set)

    def fill(self) -> int:
        """Send wake-ups until no more are taken; return how many were."""
        for number in range(100):
            try:
                self.wakeups.send(self.broker_is_back.wait)
            except errors.ServiceUnavailable as exc:
                self.assertIn("too many messages", exc.message)
                return number
        raise AssertionError("the number of wake-ups that wait has no limit")

    def test_a_sender_does_not_wait_for_the_broker_and_wake_ups_do_not_pile_up(self) -> None:
        self.assertGreaterEqual(self.fill(), 3)

    def test_one_that_fails_is_lost_and_the_next_is_sent(self) -> None:
        def fail(exc: Exception) -> None:
            raise exc

        notified = threading.Event()
        for exc in (errors.ServiceUnavailable(what="The bus", reason="away"), ZeroDivisionError()):
            self.wakeups.send(lambda exc=exc: fail(exc))
        self.wakeups.send(notified.set)
        self.assertTrue(notified.wait(conductor_case.PATIENCE))

    def test_all_are_sent_once_the_broker_is_back(self) -> None:
        self.fill()
        self.broker_is_back.set()
        notified = threading.Event()
        conductor_case.eventually(lambda: self.taken(notified), "there is room again")
        self.assertTrue(notified.wait(conductor_case.PATIENCE))

    def taken(self, notified: threading.Event) -> bool:
        try:
            self.wakeups.send(notified.set)
        except errors.ServiceUnavailable:
            return False
        return True
