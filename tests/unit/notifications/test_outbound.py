"""Notifications are sent by a thread of their own, which keeps no one waiting and counts what it loses."""

import logging
import threading

import fixtures
import testtools

from ingot.common import context
from ingot.common.conf import broker
from ingot.notifications import bus
from tests import database, notices, patience


def message(number: int = 0) -> bus.Message:
    return bus.Message(context.RequestContext(), "ironic-api.h", f"baremetal.node.update.{number}", "info", {})


class OutboundTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger("ingot.notifications", level=logging.ERROR))
        self.sent: list[str] = []
        self.broker_is_there = threading.Event()
        self.taken = threading.Event()

    def send(self, one: bus.Message) -> None:
        self.taken.set()
        self.assertTrue(self.broker_is_there.wait(patience.seconds(60)))
        self.sent.append(one.event_type)

    def test_they_are_sent_in_their_order(self) -> None:
        self.broker_is_there.set()
        outbound = bus.Outbound(self.send)
        for number in range(50):
            outbound.add(message(number))
        outbound.close(patience.seconds(60))
        self.assertEqual([f"baremetal.node.update.{number}" for number in range(50)], self.sent)
        self.assertEqual((50, 0), (outbound.sent, outbound.lost))

    def test_no_one_waits_for_a_broker_that_is_away(self) -> None:
        outbound = bus.Outbound(self.send, most_waiting=10)
        outbound.add(message())
        self.assertTrue(self.taken.wait(patience.seconds(60)))
        for number in range(30):
            outbound.add(message(number))
        self.assertEqual(20, outbound.lost)
        self.assertEqual(1, self.log.output.count("notifications lost"), self.log.output)  # a line, not twenty
        self.broker_is_there.set()
        outbound.close(patience.seconds(60))
        self.assertEqual(11, len(self.sent))

    def test_a_stop_does_not_wait_for_a_broker_for_ever(self) -> None:
        self.addCleanup(self.broker_is_there.set)
        outbound = bus.Outbound(self.send)
        for number in range(5):
            outbound.add(message(number))
        self.assertTrue(self.taken.wait(patience.seconds(60)))
        outbound.close(0.05)
        self.assertEqual(5, outbound.lost)  # and the end of the queue, which is none, is not among them
        self.assertIn("5 notifications lost: the broker did not take them before this process ended", self.log.output)
        outbound.add(message())
        self.assertEqual(6, outbound.lost)

    def test_one_that_cannot_be_sent_is_counted(self) -> None:
        def refuse(_one: bus.Message) -> None:
            raise ValueError("odd")

        outbound = bus.Outbound(refuse)
        outbound.add(message())
        outbound.close(patience.seconds(60))
        self.assertEqual((0, 1), (outbound.sent, outbound.lost))

    def test_one_that_cannot_be_written_is_lost_at_once(self) -> None:
        self.useFixture(fixtures.FakeLogger("oslo_messaging"))
        conf = database.configuration("sqlite://")
        notices.switch_on(conf)
        conf.set_override("driver", ["messagingv2"], broker.NOTIFICATIONS)
        send = bus.connect(conf)
        assert send is not None
        outbound = bus.Outbound(send)
        outbound.add(message()._replace(payload={"extra": object()}))
        outbound.add(message())
        outbound.close(patience.seconds(60))
        self.assertEqual((1, 1), (outbound.sent, outbound.lost))
