"""Power states go to Nova by a thread of its own, which keeps no one waiting and counts what it loses."""

import contextlib
import logging
import uuid
from collections.abc import Iterator
from typing import Any

import fixtures
import testtools
from oslo_config import cfg

from ingot.common import metrics, states
from ingot.common.conf import opts
from ingot.notifications import nova
from tests import compute_service, patience
from tests.conductor_case import eventually

SERVER, OTHER = "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c58", "3b0e7b3c-5b0f-4a54-9d5e-b5f3d2a8d1aa"
REQUEST = "req-6a8b1d52-28b5-4b7c-9d0e-3f1f8f0f2b11"


def count(outcome: str) -> float:
    return metrics.POWER_UPDATES.labels(outcome)._value.get()


class NovaCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger("ingot.notifications", level=logging.INFO))
        self.nova = self.useFixture(compute_service.ComputeService())
        self.conf = cfg.ConfigOpts()
        opts.register(self.conf)
        self.conf([], default_config_files=[])
        self.nova.configure(self.conf)
        self.useFixture(fixtures.MonkeyPatch("ingot.notifications.nova._FIRST_PAUSE_S", 0.05))

    def updates(self, **options: Any) -> nova.PowerUpdates:
        for name, value in options.items():
            self.conf.set_override(name, value, group="nova")
        updates = nova.PowerUpdates(self.conf)
        self.addCleanup(updates.close, 0)
        return updates

    @contextlib.contextmanager
    def counted(self, **expected: int) -> Iterator[None]:
        """Check how many are counted in this block."""
        before = {outcome: count(outcome) for outcome in ("sent", "refused", "lost")}
        yield
        for outcome, number in before.items():
            eventually(lambda: count(outcome) - number >= expected.get(outcome, 0), outcome)  # noqa: B023
            self.assertEqual(expected.get(outcome, 0), count(outcome) - number, outcome)


class TestSent(NovaCase):
    def test_an_event_is_as_nova_takes_it(self) -> None:
        with self.counted(sent=1):
            self.updates().tell(SERVER, states.POWER_OFF, REQUEST)
        ((headers, sent),) = self.nova.requests
        self.assertEqual({"events": [{"name": "power-update", "server_uuid": SERVER, "tag": "POWER_OFF"}]}, sent)
        self.assertEqual("compute 2.76", headers["OpenStack-API-Version"])
        self.assertEqual(REQUEST, headers["X-Openstack-Request-Id"])

    def test_what_nova_has_no_use_for_is_passed_over(self) -> None:
        updates = self.updates()
        for server, state in ((None, states.POWER_ON), ("mine", states.POWER_ON), (SERVER, None), (SERVER, "error")):
            updates.tell(server, state)
        updates.close(patience.seconds(10))
        self.assertEqual([], self.nova.requests)

    def test_it_can_be_switched_off_while_it_runs(self) -> None:
        updates = self.updates()
        self.conf.set_override("send_power_notifications", False, group="nova")
        self.assertFalse(updates.is_on)
        updates.tell(SERVER, states.POWER_ON)
        updates.close(patience.seconds(10))
        self.assertEqual([], self.nova.requests)

    def test_without_a_login_it_is_said_that_nothing_is_sent(self) -> None:
        updates = self.updates(auth_type=None)
        updates.tell(SERVER, states.POWER_ON)
        self.assertFalse(updates.is_on)
        self.assertIn("[nova] auth_type is not set", self.log.output)

    def test_many_servers_go_in_few_requests(self) -> None:
        self.nova.pause = 0.1
        updates = self.updates()
        with self.counted(sent=101):
            for _one in range(101):
                updates.tell(str(uuid.uuid4()), states.POWER_ON)
        self.assertLess(len(self.nova.requests), 6)


class TestFaults(NovaCase):
    def test_what_may_end_is_tried_again(self) -> None:
        self.nova.refusals += [503, 401, 500, 429]
        with self.counted(sent=1):
            self.updates().tell(SERVER, states.POWER_ON)
        self.assertEqual([(SERVER, "POWER_ON")], self.nova.taken)
        self.assertEqual(1, self.log.output.count("will be sent again"), "one line for all")

    def test_what_is_no_nova_is_tried_again(self) -> None:
        self.nova.body = {"events": [{"code": 200}]}
        updates = self.updates()
        with self.counted(sent=1):
            updates.tell(SERVER, states.POWER_ON)
            eventually(lambda: len(self.nova.requests) > 1, "it is asked again")
            self.nova.body = None
        self.assertIn("is no Nova", self.log.output)

    def test_what_would_not_end_is_not_tried_again(self) -> None:
        for status, said in ((404, "no Nova at its endpoint"), (403, "role"), (406, "2.76"), (400, "understand")):
            self.nova.refusals.append(status)
            updates = self.updates()
            with self.counted(refused=1):
                updates.tell(SERVER, states.POWER_ON)
            self.assertIn(said, self.log.output)
        self.assertEqual(4, len(self.nova.requests))

    def test_a_server_that_nova_does_not_know_keeps_no_other(self) -> None:
        self.nova.codes = {SERVER: 404}
        updates = self.updates()
        with self.counted(refused=1, sent=1):
            for server in (SERVER, OTHER):
                updates.tell(server, states.POWER_ON)
        self.assertEqual([(OTHER, "POWER_ON")], self.nova.taken)
        self.assertIn("knows no such server", self.log.output)

    def test_of_a_server_the_last_state_counts(self) -> None:
        self.nova.refusals += [503] * 3
        updates = self.updates()
        with self.counted(sent=1):
            updates.tell(SERVER, states.POWER_OFF)
            eventually(lambda: self.nova.requests, "the first try")
            updates.tell(SERVER, states.POWER_ON)
        self.assertEqual([(SERVER, "POWER_ON")], self.nova.taken)

    def test_a_server_that_nova_fails_with_keeps_no_other(self) -> None:
        """As when the database of one of its cells is away; whether they are of one request, or come later."""
        self.nova.pause = 0.1
        self.nova.broken = {SERVER}
        updates = self.updates()
        first, second, later = (str(uuid.uuid4()) for _one in range(3))
        with self.counted(sent=4):
            updates.tell(first, states.POWER_ON)
            for server in (SERVER, second):
                updates.tell(server, states.POWER_OFF)
            eventually(lambda: len(self.nova.requests) > 1, "it fails")
            updates.tell(later, states.POWER_ON, REQUEST)
            eventually(lambda: {second, later} <= {server for server, _tag in self.nova.taken}, "others are taken")
            self.nova.broken = set()

    def test_a_slow_nova_keeps_no_one_and_is_given_up_in_time(self) -> None:
        self.nova.pause = patience.seconds(2)
        updates = self.updates(timeout=1, power_notification_deadline=1)
        with self.counted(lost=1):
            updates.tell(SERVER, states.POWER_ON)
        self.assertIn(f"The last is {SERVER} (POWER_ON)", self.log.output)

    def test_a_nova_that_is_away_loses_them_in_the_end(self) -> None:
        updates = self.updates(endpoint_override="http://127.0.0.1:1/v2.1", power_notification_deadline=1)
        with self.counted(lost=2):
            for server in (SERVER, OTHER):
                updates.tell(server, states.POWER_ON, f"request for {server}")
        self.assertIn("2 servers", self.log.output, "what is too old waits for no attempt of its own")

    def test_no_more_wait_than_may(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.notifications.nova.MOST_WAITING", 3))
        self.nova.pause = 0.5
        updates = self.updates()
        with self.counted(sent=4, lost=2):
            updates.tell(SERVER, states.POWER_ON)
            eventually(lambda: self.nova.requests, "the first is being sent")
            for _one in range(5):
                updates.tell(str(uuid.uuid4()), states.POWER_ON)

    def test_the_end_of_the_process_waits_a_little(self) -> None:
        self.nova.pause = 0.1
        updates = self.updates()
        with self.counted(sent=1):
            updates.tell(SERVER, states.POWER_ON)
            updates.close(patience.seconds(10))
        slow = self.updates(endpoint_override="http://127.0.0.1:1/v2.1")
        with self.counted(lost=1):
            slow.tell(SERVER, states.POWER_ON)
            slow.close(patience.seconds(10))
        with self.counted(lost=1):
            slow.tell(SERVER, states.POWER_ON)

    def test_what_is_being_sent_at_the_end_is_lost_once(self) -> None:
        self.nova.pause, self.nova.refusals = 0.3, [503]
        updates = self.updates()
        with self.counted(lost=1):
            updates.tell(SERVER, states.POWER_ON)
            eventually(lambda: self.nova.requests, "it is being sent")
            updates.close(0)
            updates.close(patience.seconds(10))
