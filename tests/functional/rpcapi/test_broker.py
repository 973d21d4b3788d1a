"""Conductors are reached over RabbitMQ whatever becomes of a broker, and only of one that is who it says it is."""

import collections
import contextlib
import pathlib
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import fixtures
import oslo_messaging
import testtools
from oslo_config import cfg
from oslo_config import fixture as config
from oslo_messaging._drivers import impl_rabbit

from ingot.common import context, errors
from ingot.common.conf import broker, opts
from ingot.db.engine import Database
from ingot.rpcapi import client, transport, versions
from tests import patience
from tests.functional import proxy, queues, services
from tests.functional.deployment import lab

CTX = context.RequestContext()


class Endpoint:
    """A conductor that says when it was asked."""

    target = oslo_messaging.Target(version=versions.RPC_VERSION)

    def __init__(self) -> None:
        self.wakeups: list[str] = []
        self.requests: list[str] = []
        self.threads: dict[str, set[int]] = collections.defaultdict(set)

    @oslo_messaging.expose
    def get_boot_device(self, ctx: Mapping[str, Any], node_uuid: str) -> dict[str, Any]:
        self.threads["get_boot_device"].add(threading.get_ident())
        return transport.answer(ctx, lambda: {"node": node_uuid})

    @oslo_messaging.expose
    def get_load(self, ctx: Mapping[str, Any]) -> dict[str, Any]:
        return transport.answer(ctx, lambda: {"queue": 0})

    @oslo_messaging.expose
    def advance(self, ctx: Mapping[str, Any], node_uuid: str, why: str) -> None:
        self.threads["advance"].add(threading.get_ident())
        self.wakeups.append(node_uuid)
        self.requests.append(ctx["request_id"])

    @oslo_messaging.expose
    def wake_up(
        self, _ctx: Mapping[str, Any], wakeups: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]
    ) -> None:
        self.wakeups.append(" ".join(f"{method} {args['node_uuid']}" for method, _ctx, args in wakeups))
        self.requests += [ctx["request_id"] for _method, ctx, _args in wakeups]


class Bus(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = services.unique_name("conductor")
        self.endpoint = Endpoint()

    def bus(self, url: str, **options: Any) -> transport.OsloTransport:
        """Make the transport of a process with these options of the RabbitMQ driver."""
        lines = [f"[DEFAULT]\ntransport_url = {url}\n[{broker.GROUP}]", *(f"{k} = {v}" for k, v in options.items())]
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ingot.conf"
        file.write_text("\n".join(lines))
        self.useFixture(config.Config(cfg.CONF))  # which forgets it at the end
        conf = opts.load(["--config-file", str(file)], prog="ingot-tests", into=cfg.CONF)
        made = transport.OsloTransport(conf)
        self.addCleanup(made.close)
        return made

    def check(self, url: str) -> bool:
        """Return whether a process would find a broker at its start."""
        self.bus(url)
        return transport.check_brokers(cfg.CONF)

    def serve(self, bus: transport.OsloTransport) -> None:
        server = bus.server(self.host, self.endpoint)
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)

    def ask(self, bus: transport.OsloTransport, version: str = versions.RPC_VERSION) -> Any:
        return transport.unpack(bus.call(self.host, "get_boot_device", version, CTX, {"node_uuid": "one"}))["node"]

    def notify(self, bus: transport.OsloTransport, version: str = versions.RPC_VERSION) -> None:
        bus.cast(self.host, "advance", version, CTX, {"node_uuid": "one", "why": "test"})

    def eventually(self, check: Callable[[], Any], what: str) -> Any:
        until = time.monotonic() + lab.PATIENCE
        while True:
            with contextlib.suppress(errors.ServiceUnavailable):
                if answer := check():
                    return answer
            self.assertLess(time.monotonic(), until, what)
            time.sleep(0.1)


class Queues(Bus):
    def test_are_quorum_queues(self) -> None:
        bus = self.bus(services.broker_url())

        self.serve(bus)

        self.assertEqual("one", self.ask(bus))
        self.assertTrue(queues.is_quorum(f"{transport.TOPIC}.{self.host}"))

    def test_several_conductors_are_asked_at_once_and_none_waits_for_one_that_is_away(self) -> None:
        bus = self.bus(services.broker_url())
        self.serve(bus)
        asking = client.ConductorClient(cfg.CONF, mock.Mock(spec=Database), bus)
        hosts = {self.host: versions.RPC_VERSION, services.unique_name("away"): versions.RPC_VERSION, "old": "1.2"}
        within = patience.seconds(3)
        self.eventually(lambda: self.ask(bus), "the connection is open")
        began = time.monotonic()
        found = asking.ask_all(CTX, hosts, "get_load", within)
        here, away, old = (found[host] for host in hosts)
        self.assertEqual({"queue": 0}, here)
        self.assertIsInstance(away, errors.ConductorAway)
        self.assertIn("1.2", old.message)
        self.assertLess(time.monotonic() - began, within + patience.seconds(2))

    def test_a_call_costs_few_looks_for_messages(self) -> None:
        bus = self.bus(services.broker_url())
        self.serve(bus)
        self.ask(bus)
        looks = []
        consume = impl_rabbit.Connection.consume

        def look(connection: Any, *args: Any, **kwargs: Any) -> Any:
            looks.append(connection)
            return consume(connection, *args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch("oslo_messaging._drivers.impl_rabbit.Connection.consume", look))
        for _ in range(10):
            self.ask(bus)
            time.sleep(0.1)
        self.assertLessEqual(len(looks), 100)  # at each side one for the message, and at most four until the next one

    def test_calls_share_a_thread_and_wakeups_need_none(self) -> None:
        bus = self.bus(services.broker_url())
        self.serve(bus)
        for number in range(1, 21):
            self.ask(bus)
            self.notify(bus)
            self.eventually(lambda number=number: len(self.endpoint.wakeups) == number, "the wake-up came")
        self.assertLessEqual(len(self.endpoint.threads["get_boot_device"]), 5)
        self.assertEqual(1, len(self.endpoint.threads["advance"]))
        self.assertFalse(self.endpoint.threads["get_boot_device"] & self.endpoint.threads["advance"])

    def test_a_wakeup_comes_through(self) -> None:
        bus = self.bus(services.broker_url())
        self.serve(bus)

        self.notify(bus, versions.RELEASES["0.0"].rpc)

        self.eventually(lambda: self.endpoint.wakeups, "the wake-up came")

    def notify_meanwhile(self, version: str) -> list[str]:
        """Send two wake-ups while another one is under way; return their requests."""
        send, begun, go = transport.OsloTransport._send, threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def send_later(*args: Any) -> None:
            begun.set()
            self.assertTrue(go.wait(lab.PATIENCE))
            send(*args)

        self.useFixture(fixtures.MonkeyPatch("ingot.rpcapi.transport.OsloTransport._send", send_later))
        bus = self.bus(services.broker_url())
        self.serve(bus)
        requests = [context.RequestContext() for _node in range(3)]
        for node, ctx in zip(("one", "two", "three"), requests, strict=True):
            bus.cast(self.host, "advance", version, ctx, {"node_uuid": node, "why": "test"})
            self.assertTrue(begun.wait(lab.PATIENCE))
        go.set()
        self.eventually(lambda: len(self.endpoint.requests) == 3, "all have come")
        return [str(ctx.request_id) for ctx in requests]

    def test_wakeups_that_wait_for_another_come_in_one_message(self) -> None:
        requests = self.notify_meanwhile(versions.RPC_VERSION)
        self.assertEqual({"one", "advance two advance three"}, set(self.endpoint.wakeups))
        self.assertEqual(sorted(requests), sorted(self.endpoint.requests))

    def test_conductors_of_the_release_before_get_each_wakeup_alone(self) -> None:
        requests = self.notify_meanwhile(versions.RELEASES["0.2"].rpc)
        self.assertEqual({"one", "two", "three"}, set(self.endpoint.wakeups))
        self.assertEqual(sorted(requests), sorted(self.endpoint.requests))


class SeveralBrokers(Bus):
    """Two addresses of brokers, that lead to the same broker, which no client can see."""

    def setUp(self) -> None:
        super().setUp()
        address = urllib.parse.urlsplit(services.broker_url())
        assert address.hostname and address.port
        self.lines = [self.useFixture(proxy.Proxy((address.hostname, address.port))) for _ in range(2)]
        login = address.netloc.rpartition("@")[0]
        hosts = ",".join(f"{login}@127.0.0.1:{line.port}" for line in self.lines)
        self.url = f"rabbit://{hosts}{address.path}"

    def test_one_after_the_other_is_away(self) -> None:
        bus = self.bus(self.url)
        self.serve(bus)
        self.assertEqual("one", self.ask(bus))
        for line in self.lines:
            line.cut()
            self.eventually(lambda: self.ask(bus), "the other broker is used")
            line.restore()
        self.eventually(lambda: self.ask(bus), "still")

    def test_all_are_away_for_a_while(self) -> None:
        bus = self.bus(self.url)
        self.serve(bus)
        self.assertEqual("one", self.ask(bus))
        for line in self.lines:
            line.cut()

        self.assertRaises(errors.ServiceUnavailable, self.ask, bus)

        for line in self.lines:
            line.restore()
        self.eventually(lambda: self.ask(bus), "they are back")
        self.notify(bus)
        self.eventually(lambda: self.endpoint.wakeups, "the wake-up came")

    def test_all_are_away_from_the_beginning(self) -> None:
        for line in self.lines:
            line.cut()
        bus = self.bus(self.url)

        self.assertRaises(errors.ServiceUnavailable, self.ask, bus)

        for line in self.lines:
            line.restore()
        self.serve(bus)
        self.eventually(lambda: self.ask(bus), "they are back")

    def test_one_stops_its_heartbeats(self) -> None:
        bus = self.bus(self.url, heartbeat_timeout_threshold=2)
        self.serve(bus)
        self.assertEqual("one", self.ask(bus))
        for line in self.lines:
            line.hold()
            self.eventually(lambda: self.ask(bus), "the other broker is used")
            line.resume()


class Encrypted(Bus):
    def setUp(self) -> None:
        super().setUp()
        self.url = services.broker_url(services.RABBIT_TLS)
        address = urllib.parse.urlsplit(self.url)
        assert address.hostname and address.port
        self.authority = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "authority.pem"
        self.authority.write_text(ssl.get_server_certificate((address.hostname, address.port)))

    def refused(self, url: str, **options: Any) -> str:
        bus = self.bus(url, ssl=True, **options)
        return self.assertRaises(errors.ServiceUnavailable, self.ask, bus).message

    def test_a_broker_with_a_certificate_of_the_authority_is_used(self) -> None:
        bus = self.bus(self.url, ssl=True, ssl_ca_file=str(self.authority))
        self.serve(bus)

        self.assertEqual("one", self.ask(bus))

    def test_a_broker_with_an_untrusted_certificate_is_refused(self) -> None:
        self.assertIn("certificate verify failed", self.refused(self.url))

    def test_a_certificate_for_another_host_is_refused(self) -> None:
        elsewhere = self.url.replace("127.0.0.1", "localhost")

        self.assertIn("certificate", self.refused(elsewhere, ssl_ca_file=str(self.authority)))

    def test_of_several_brokers_each_untrusted_one_is_refused(self) -> None:
        login = self.url.removeprefix("rabbit://").removesuffix("/")

        self.assertIn("certificate verify failed", self.refused(f"rabbit://{login},{login}/"))


class Starts(Bus):
    def test_a_broker_that_is_there(self) -> None:
        self.assertTrue(self.check(services.broker_url()))

    def test_a_broker_that_is_away_is_named(self) -> None:
        logger = self.useFixture(fixtures.FakeLogger())
        self.assertFalse(self.check("rabbit://ada:hunter2@127.0.0.1:1/"))
        self.assertIn("No broker can be reached: 127.0.0.1:1 (", logger.output)

    def test_a_broker_that_refuses_the_user_is_not_tried_again(self) -> None:
        place = services.broker_url().rpartition("@")[2].partition("/")[0]
        strange = f"rabbit://stranger:hunter2@{place}/"
        refusal = self.assertRaises(errors.ConfigurationError, self.check, strange).message
        self.assertIn(f"{place} refuses user stranger", refusal)
        self.assertNotIn("hunter2", refusal)
