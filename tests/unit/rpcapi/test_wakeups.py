"""Bells are sent beside the requests that ring them."""

import threading

import testtools

from ingot.common import errors
from ingot.rpcapi import transport
from tests import conductor_case


class TestBells(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bells = transport.Wakeups(most_waiting=3)
        self.addCleanup(self.bells.close)
        self.broker_is_back = threading.Event()
        self.addCleanup(self.broker_is_back.set)

    def ring(self) -> int:
        """Rings until no more bells are taken; how many were."""
        for number in range(100):
            try:
                self.bells.send(self.broker_is_back.wait)
            except errors.ServiceUnavailable as exc:
                self.assertIn("too many messages", exc.message)
                return number
        raise AssertionError("the number of bells that wait has no limit")

    def test_a_sender_does_not_wait_for_the_broker_and_wake_ups_do_not_pile_up(self) -> None:
        self.assertGreaterEqual(self.ring(), 3)

    def test_one_that_fails_is_lost_and_the_next_is_sent(self) -> None:
        def fail(exc: Exception) -> None:
            raise exc

        rung = threading.Event()
        for exc in (errors.ServiceUnavailable(what="The bus", reason="away"), ZeroDivisionError()):
            self.bells.send(lambda exc=exc: fail(exc))
        self.bells.send(rung.set)
        self.assertTrue(rung.wait(conductor_case.PATIENCE))

    def test_all_are_sent_once_the_broker_is_back(self) -> None:
        self.ring()
        self.broker_is_back.set()
        rung = threading.Event()
        conductor_case.eventually(lambda: self.taken(rung), "there is room again")
        self.assertTrue(rung.wait(conductor_case.PATIENCE))

    def taken(self, rung: threading.Event) -> bool:
        try:
            self.bells.send(rung.set)
        except errors.ServiceUnavailable:
            return False
        return True
