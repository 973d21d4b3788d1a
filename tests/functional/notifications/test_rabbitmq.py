"""Notifications reach a consumer of Ironic's by RabbitMQ: one that listens as Ceilometer does."""

import logging
import pathlib
import queue
import shlex
import time
import urllib.parse
from typing import Any

import fixtures
import oslo_messaging
import testtools
from oslo_config import cfg
from oslo_config import fixture as config

from ingot.common import context
from ingot.common.conf import broker, opts
from ingot.notifications import bus
from ingot.notifications.notifier import API, Notice, Notifier
from ingot.notifications.payloads import CRUD
from tests import patience
from tests.functional import proxy, queues, services
from tests.gate.pages import typed

_PAGE = pathlib.Path(__file__).parents[3] / "doc/source/operator/notifications.rst"
_ROW = {"uuid": "c9b1a5b2-6a3e-4f2e-9a55-0f3f1a1d3c11", "extra": {"a": 1}, "description": "a rack"}


class Consumer:
    """An endpoint of a notification listener."""

    def __init__(self) -> None:
        self.received: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def info(self, ctx: Any, publisher: str, event_type: str, payload: Any, metadata: Any) -> None:
        self.received.put((publisher, event_type, payload, ctx, metadata))

    def take(self) -> tuple[Any, ...]:
        return self.received.get(timeout=patience.seconds(60))


class RabbitTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.url = services.broker_url()
        self.topic = services.unique_name("notices")
        self.useFixture(fixtures.TempDir())
        self.useFixture(config.Config(cfg.CONF))
        self.conf = opts.load([], prog="ingot-tests", files=[], into=cfg.CONF)
        broker.register(self.conf)
        broker.notification_address(self.conf)
        self.conf.set_override("notification_level", "info")
        self.conf.set_override("versioned_notifications_topics", [self.topic])
        self.conf.set_override("driver", ["messagingv2"], broker.NOTIFICATIONS)

    def make_notifier(self, url: str) -> Notifier:
        self.conf.set_override("transport_url", url, broker.NOTIFICATIONS)
        made = Notifier(self.conf, API)
        self.addCleanup(made.close)
        return made

    def listen(self) -> Consumer:
        """Start a consumer with the options that oslo.messaging has by default."""
        options = cfg.ConfigOpts()
        options([], default_config_files=[])
        transport = oslo_messaging.get_notification_transport(options, self.url)
        consumer = Consumer()
        target = oslo_messaging.Target(topic=self.topic, exchange=bus.EXCHANGE)
        listener = oslo_messaging.get_notification_listener(transport, [target], [consumer], executor="threading")
        listener.start()
        self.addCleanup(transport.cleanup)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)
        return consumer

    def test_a_consumer_reads_them(self) -> None:
        consumer = self.listen()
        notifier, ctx = self.make_notifier(self.url), context.RequestContext(user_id="u", auth_token="hunter2")
        with notifier.change(ctx, "chassis", "create", _ROW):
            pass
        for status in ("start", "end"):
            publisher, event_type, payload, crossed, metadata = consumer.take()
            self.assertEqual(f"ironic-api.{self.conf.host}", publisher)
            self.assertEqual(f"baremetal.chassis.create.{status}", event_type)
            self.assertEqual("ChassisCRUDPayload", payload["ironic_object.name"])
            self.assertEqual({"a": 1}, payload["ironic_object.data"]["extra"])
            self.assertEqual(ctx.request_id, crossed["request_id"])
            self.assertNotIn("hunter2", str((crossed, payload, metadata)))
        self.assertFalse(queues.is_quorum(f"{self.topic}.info"))  # as consumers declare it, too

    def test_they_wait_for_a_broker_that_comes_back(self) -> None:
        consumer = self.listen()
        given = urllib.parse.urlsplit(self.url)
        way = self.useFixture(proxy.Proxy((str(given.hostname), given.port or 5672)))
        login = given.netloc.rpartition("@")[0]
        way.cut()
        notifier = self.make_notifier(f"rabbit://{login}@{way.host}:{way.port}{given.path}")
        log = self.useFixture(fixtures.FakeLogger("ingot.notifications", level=logging.WARNING))
        notifier.tell(context.RequestContext(), "chassis", Notice(CRUD["chassis"], "update", "end"), _ROW)
        until = time.monotonic() + patience.seconds(60)
        while "Notifications wait for the broker" not in log.output and time.monotonic() < until:
            time.sleep(0.02)
        way.restore()
        self.assertEqual("baremetal.chassis.update.end", consumer.take()[1])
        self.assertIn("Notifications wait for the broker", log.output)

    def test_what_is_given_up_is_counted(self) -> None:
        self.conf.set_override("retry", 0, broker.NOTIFICATIONS)
        self.useFixture(fixtures.FakeLogger("oslo_messaging"))  # which logs it whole
        notifier = self.make_notifier("rabbit://a:b@127.0.0.1:1/")
        notifier.tell(context.RequestContext(), "chassis", Notice(CRUD["chassis"], "update", "end"), _ROW)
        notifier.close(patience.seconds(60))
        assert notifier.outbound
        self.assertEqual((0, 1), (notifier.outbound.sent, notifier.outbound.lost))

    def test_the_policy_of_the_guide_limits_a_queue_without_a_consumer(self) -> None:
        (command,) = typed.read_for(__file__, _PAGE.read_text())
        rabbitmqctl, *words = shlex.split(command.text)
        self.assertEqual("rabbitmqctl", rabbitmqctl)
        self.addCleanup(services.control_broker, "clear_policy", "notifications")
        services.control_broker(*words)
        self.topic = services.unique_name("ironic_versioned_notifications")
        self.conf.set_override("versioned_notifications_topics", [self.topic])
        notifier, ctx = self.make_notifier(self.url), context.RequestContext(user_id="u")
        with notifier.change(ctx, "chassis", "create", _ROW):
            pass
        notifier.close()
        limited = services.control_broker("--quiet", "list_queues", "name", "policy")
        self.assertIn(f"{self.topic}.info\tnotifications", limited)
