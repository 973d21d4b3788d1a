"""The port of a process for those who watch it: metrics, health, TLS, and clients that mean no good."""

import contextlib
import json
import pathlib
import socket
import ssl
import time
import urllib.error
import urllib.request

import fixtures
import testtools

from ingot.common import errors, metrics, telemetry
from ingot.rack import ports
from tests import conductor_case, database, metric_values, patience, server_case

PATIENCE = patience.seconds(30)


class TelemetryCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf = database.configuration("sqlite://")
        self.port = ports.tcp()
        self.conf.set_override("api_port", self.port, group="metrics")
        self.useFixture(fixtures.MonkeyPatch("ingot.common.telemetry._checks", {}))

    def serve(self, part: metrics.Part = metrics.Part.ALL) -> telemetry.Server:
        server = telemetry.Server(self.conf, part, "api_port")
        server.start()
        self.addCleanup(server.stop)
        return server

    def get(self, path: str, port: int | None = None, context: ssl.SSLContext | None = None) -> tuple[int, str, str]:
        """Return status, type and body of an answer."""
        scheme = "https" if context else "http"
        url = f"{scheme}://127.0.0.1:{port or self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE, context=context) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.headers["Content-Type"], exc.read().decode()

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def refusal(self, option: str = "api_port") -> str:
        return str(self.assertRaises(errors.ConfigurationError, telemetry.check, self.conf, option))


class TestServer(TelemetryCase):
    def test_metrics_are_those_of_the_process(self) -> None:
        self.serve(metrics.Part.CONDUCTOR)
        status, media, body = self.get("/metrics")
        self.assertEqual((200, "text/plain; version=0.0.4; charset=utf-8"), (status, media))
        served = {sample.name for sample in metric_values.parse(body)}
        self.assertIn("ingot_build_info", served)
        self.assertNotIn("ingot_api_requests_total", served)

    def test_health_says_which_part_is_not_ready(self) -> None:
        def fail() -> str:
            raise errors.ServiceUnavailable(what="The database", reason="it is away")

        self.serve()
        status, media, body = self.get("/healthcheck")
        self.assertEqual((503, "application/json"), (status, media), "no part runs yet, or any more")
        self.assertEqual({"service": "it starts, or stops"}, json.loads(body))
        telemetry.add_check("sweep", lambda: None)
        self.assertEqual(200, self.get("/healthcheck")[0])
        telemetry.add_check("database", fail)
        status, _media, body = self.get("/healthcheck")
        self.assertEqual(503, status)
        self.assertEqual({"database", "sweep"}, set(json.loads(body)))
        self.assertIn("it is away", json.loads(body)["database"])
        self.assertEqual(0, metric_values.read("ingot_ready", check="database"))
        self.assertEqual(1, metric_values.read("ingot_ready", check="sweep"))

    def test_nothing_else_is_there(self) -> None:
        self.serve()
        self.assertEqual(404, self.get("/v1/nodes")[0])
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", method="POST")
        refused = self.assertRaises(urllib.error.HTTPError, urllib.request.urlopen, request, timeout=PATIENCE)
        with refused:
            self.assertEqual(501, refused.code)

    def test_without_a_port_nothing_is_served(self) -> None:
        self.conf.set_override("api_port", 0, group="metrics")
        telemetry.check(self.conf, "api_port")
        self.serve()
        self.assertRaises(ConnectionRefusedError, self.connect)

    def test_idle_clients_keep_no_client_out_for_long(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.common.telemetry._REQUEST_S", 1.0))
        self.serve()
        idle = [self.connect() for _ in range(20)]
        for number, connection in enumerate(idle):
            with contextlib.suppress(ConnectionError):  # those that were too many are closed at once
                connection.sendall(b"GET /metrics HTTP/1.1\r\nX:")
                self.assertEqual(b"", connection.recv(1), number)

        def answers() -> bool:
            try:
                return self.get("/metrics")[0] == 200
            except ConnectionError:  # the thread of the last idle client has not ended yet
                return False

        conductor_case.eventually(answers, "a client is answered")


class TestTls(TelemetryCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.own = server_case.make_certificate(self.folder)
        for option in ("cert_file", "key_file"):
            self.conf.set_override(option, self.own, group="metrics")

    def client(self, certificate: str | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.own)
        if certificate:
            context.load_cert_chain(certificate)
        return context

    def test_clients_need_a_certificate_where_an_authority_is_named(self) -> None:
        self.serve()
        self.assertEqual(200, self.get("/metrics", context=self.client())[0])
        self.conf.set_override("ca_file", self.own, group="metrics")
        telemetry.check(self.conf, "conductor_port")
        self.assertRaises(OSError, self.get, "/metrics", context=self.client())
        self.assertEqual(200, self.get("/metrics", context=self.client(self.own))[0])

    def test_what_does_not_speak_tls_gets_nothing(self) -> None:
        self.serve()
        connection = self.connect()
        connection.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            self.assertNotIn(b"HTTP", connection.recv(100))

    def test_clients_that_send_nothing_keep_no_client_out_for_long(self) -> None:
        self.serve()
        with fixtures.MonkeyPatch("ingot.common.telemetry._REQUEST_S", 0.5):  # too short for a client on a busy machine
            for number, connection in enumerate([self.connect() for _ in range(20)]):
                with contextlib.suppress(ConnectionError):
                    self.assertEqual(b"", connection.recv(1), number)
        self.assertEqual(200, self.get("/metrics", context=self.client())[0])

    def test_clients_that_trickle_are_cut(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.common.telemetry._REQUEST_S", 0.5))
        self.serve()
        with self.client().wrap_socket(self.connect(), server_hostname="127.0.0.1") as secured:
            began = time.monotonic()
            with contextlib.suppress(OSError):
                while time.monotonic() - began < PATIENCE:
                    secured.send(b"G")
                    time.sleep(0.05)
            self.assertLess(time.monotonic() - began, PATIENCE)

    def test_files_that_cannot_be_read_any_more_are_named(self) -> None:
        logged = self.useFixture(fixtures.FakeLogger("ingot.common.telemetry"))
        self.serve()
        pathlib.Path(self.own).write_text("no certificate")
        with contextlib.suppress(ConnectionError):
            self.assertEqual(b"", self.connect().recv(1))
        self.assertIn(self.own, logged.output)

    def test_files_that_cannot_be_used_are_refused_at_the_start(self) -> None:
        for option in ("cert_file", "ca_file"):
            broken = self.folder / option
            broken.write_text("no certificate")
            self.conf.set_override(option, str(broken), group="metrics")
            self.assertIn(str(broken), self.refusal())
            self.conf.set_override(option, self.own, group="metrics")

    def test_an_authority_alone_is_refused(self) -> None:
        self.conf.clear_override("cert_file", group="metrics")
        self.conf.set_override("ca_file", self.own, group="metrics")
        self.assertIn("A certificate and its key are needed", self.refusal())


class TestPorts(TelemetryCase):
    def test_one_that_is_taken_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", self.port)):
            server = telemetry.Server(self.conf, metrics.Part.ALL, "api_port")
            self.assertIn(str(self.port), str(self.assertRaises(errors.Occupied, server.start)))
            telemetry.check(self.conf, "api_port")  # its process may be about to end

    def test_an_address_of_another_host_is_refused(self) -> None:
        self.conf.set_override("host_ip", "192.0.2.1", group="metrics")
        self.assertRaises(errors.Occupied, self.serve)

    def test_none_of_an_address_of_another_host_can_be_used(self) -> None:
        self.conf.set_override("host_ip", "192.0.2.1", group="metrics")
        server = telemetry.Server(self.conf, metrics.Part.ALL, "api_port")
        self.assertIn("192.0.2.1", str(self.assertRaises(errors.Occupied, server.start_anywhere)))

    def test_services_of_several_processes_do_not_share_any(self) -> None:
        self.conf.set_override("api_workers", 4, group="api")
        self.conf.set_override("conductor_port", self.port + 3, group="metrics")
        self.assertIn(f"of which {self.port + 3} is one", self.refusal())
        self.conf.set_override("conductor_port", self.port + 4, group="metrics")
        telemetry.check(self.conf, "api_port")

    def test_each_process_has_its_own(self) -> None:
        own = telemetry.describe_worker(self.conf, "api_port", 2)
        self.assertEqual({"OS_METRICS__API_PORT": str(self.port + 2)}, own)
        self.assertEqual({}, telemetry.describe_worker(self.conf, "conductor_port", 2))

    def test_processes_that_do_not_know_how_many_they_are_take_the_next_one(self) -> None:
        with socket.create_server(("127.0.0.1", self.port)):
            server = telemetry.Server(self.conf, metrics.Part.ALL, "api_port")
            server.start_anywhere()
            self.addCleanup(server.stop)
            self.assertEqual(200, self.get("/metrics", server.port)[0])
