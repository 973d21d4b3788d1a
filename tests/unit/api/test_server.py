"""The web server in the process, and what the commands say when they cannot start."""

import contextlib
import io
import pathlib
import resource
import socket
import ssl
import stat
import threading
from typing import Any

import fixtures
import requests
from oslo_config import cfg

from ingot.api import cmd, server
from ingot.common import errors
from ingot.common.conf import opts, safety
from tests import api_case, command_process, server_case
from tests.server_case import ASK, PATIENCE


class ServerTests(server_case.ServerCase):
    def test_serves_until_it_is_stopped(self) -> None:
        web = self.serve()
        url = f"{self.url}/v1/nodes"
        self.assertEqual([], requests.get(url, timeout=PATIENCE).json()["nodes"])
        web.stop()
        self.assertRaises(requests.ConnectionError, requests.get, url, timeout=2)

    def test_takes_as_many_connections_as_the_process_may_have(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
        self.serve()
        self.assertEqual(hard, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def test_connections_of_many_clients_stay_open_between_requests(self) -> None:
        self.serve()
        clients = [requests.Session() for _number in range(20)]
        for client in clients:
            self.addCleanup(client.close)
            self.assertNotIn("Connection", client.get(f"{self.url}/v1/nodes", timeout=PATIENCE).headers)

    def test_a_server_that_stops_answers_what_comes_on_open_connections(self) -> None:
        web = self.serve()
        connections = [self.connect(ASK) for _number in range(5)]
        for connection in connections:
            self.assertNotIn("connection: close", self.read_head(connection).lower())
            self.assertIn("nodes", connection.recv(4096).decode())
        stopping = threading.Thread(target=web.stop)
        stopping.start()
        for connection in connections:
            connection.sendall(ASK)
        for connection in connections:
            self.assertIn(" 200 OK", self.read(connection))
        stopping.join(PATIENCE)
        self.assertRaises(ConnectionRefusedError, self.connect)

    def test_who_sends_no_more_gets_the_answer(self) -> None:
        self.serve()
        connection = self.connect(ASK)
        connection.shutdown(socket.SHUT_WR)
        self.assertIn(" 200 OK", self.read(connection))

    def test_every_address_is_that_of_ipv4_too(self) -> None:
        self.serve(host_ip="::")
        for host in ("127.0.0.1", "[::1]"):
            self.assertEqual(200, requests.get(f"http://{host}:{self.port}/v1", timeout=PATIENCE).status_code)

    def test_a_port_in_use_is_reported(self) -> None:
        self.serve()
        refusal = self.assertRaises(errors.ConfigurationError, server.Server(self.conf, self.http.application).start)
        self.assertIn(str(self.conf.api.port), refusal.message)

    def test_links_use_the_public_endpoint(self) -> None:
        self.conf.set_override("public_endpoint", "https://metal.example.com/", group="api")
        http = self.application().test_client()
        links = http.get("/v1").get_json()["nodes"]
        self.assertEqual("https://metal.example.com/v1/nodes/", links[0]["href"])


class UnixSocket(server_case.ServerCase):
    def configure(self) -> None:
        super().configure()
        self.path = self.directory / "api.sock"
        self.conf.set_override("unix_socket", str(self.path), group="api")

    def ask(self) -> str:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.path))
            connection.sendall(ASK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            return self.read(connection)

    def test_serves_there_with_the_mode_that_is_configured(self) -> None:
        self.conf.set_override("unix_socket_mode", "600", group="api")
        self.serve()
        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))
        self.assertIn(" 200 OK", self.ask())

    def test_nothing_is_left_of_a_server_that_stops(self) -> None:
        self.serve().stop()
        self.assertFalse(self.path.exists())

    def test_what_a_killed_server_has_left_is_replaced(self) -> None:
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(self.path))
        self.serve()
        self.assertIn(" 200 OK", self.ask())

    def test_that_of_another_server_and_another_file_stay(self) -> None:
        self.serve()
        again = server.Server(self.conf, self.http.application)
        self.assertIn("unix_socket", self.assertRaises(errors.ConfigurationError, again.start).message)
        self.assertIn(" 200 OK", self.ask())
        file = self.directory / "precious"
        file.write_text("kept")
        self.conf.set_override("unix_socket", str(file), group="api")
        self.assertIn("precious", self.assertRaises(errors.ConfigurationError, again.start).message)
        self.assertEqual("kept", file.read_text())


class Tls(server_case.ServerCase):
    def configure(self) -> None:
        super().configure()
        self.pem = self.make_certificate("server")
        for name, value in (("enable_ssl_api", True), ("cert_file", self.pem), ("key_file", self.pem)):
            self.conf.set_override(name, value, group="api")

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def ask(self, **how: Any) -> requests.Response:
        return requests.get(f"{self.url}/v1", timeout=PATIENCE, **{"verify": self.pem, **how})

    def test_serves_https_and_links_say_so(self) -> None:
        self.serve()
        self.assertTrue(self.ask().json()["nodes"][0]["href"].startswith(f"{self.url}/v1/nodes"))
        self.assertEqual(self.url, opts.agent_api_url(self.conf))
        self.assertIn(" 200 OK", self.read_head(self.secure(ASK)))
        with self.assertRaises(requests.ConnectionError):
            requests.get(f"{self.url.replace('https', 'http')}/v1", timeout=PATIENCE)

    def secure(self, sent: bytes) -> socket.socket:
        context = ssl.create_default_context(cafile=self.pem)
        connection = context.wrap_socket(self.connect(), server_hostname="127.0.0.1")
        self.addCleanup(connection.close)
        connection.sendall(sent)
        return connection

    def test_large_requests_and_answers_pass(self) -> None:
        self.serve()
        text = "x" * 900_000
        answer = requests.post(f"{self.url}/v1/chassis", json={"extra": {"a": text}}, timeout=PATIENCE, verify=self.pem)
        self.assertEqual(text, answer.json()["extra"]["a"])

    def test_who_does_not_end_the_handshake_keeps_no_other_waiting(self) -> None:
        self.serve()
        for number in range(100):
            self.connect(b"\x16\x03\x01"[: number % 4])
        self.assertEqual(200, self.ask().status_code)

    def test_who_sends_much_instead_of_a_handshake_is_refused(self) -> None:
        self.serve()
        connection = self.connect()
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"\x16\x03\x01\xff\xff" + bytes(4_000_000))
            while connection.recv(4096):
                pass
        self.assertEqual(200, self.ask().status_code)

    def test_clients_need_a_certificate_where_there_is_an_authority(self) -> None:
        own, foreign = self.make_certificate("own"), self.make_certificate("foreign")
        self.conf.set_override("ca_file", own, group="api")
        self.serve()
        self.assertEqual(200, self.ask(cert=own).status_code)
        for cert in (None, foreign):
            self.assertRaises(requests.ConnectionError, self.ask, cert=cert)

    def test_a_new_certificate_is_read_without_a_restart(self) -> None:
        web = self.serve()
        kept = requests.Session()
        self.addCleanup(kept.close)
        kept.get(f"{self.url}/v1", timeout=PATIENCE, verify=self.pem)
        old = pathlib.Path(self.pem).read_text()
        pathlib.Path(self.pem).write_text("nonsense")
        web.reload()
        trusted = self.directory / "old.pem"
        trusted.write_text(old)
        self.assertEqual(200, self.ask(verify=str(trusted)).status_code)
        self.make_certificate("server")
        web.reload()
        self.assertEqual(200, self.ask().status_code)
        self.assertRaises(requests.ConnectionError, self.ask, verify=str(trusted))
        self.assertEqual(200, kept.get(f"{self.url}/v1", timeout=PATIENCE, verify=self.pem).status_code)

    def test_what_cannot_be_used_is_refused_by_name(self) -> None:
        for option, value in (
            ("cert_file", None),
            ("cert_file", "/missing"),
            ("key_file", __file__),
            ("ca_file", "/missing"),
            ("server_tls_ciphers", "NONE-SUCH"),
        ):
            before = self.conf.api[option]
            self.conf.set_override(option, value, group="api")
            refusal = self.assertRaises(errors.ConfigurationError, server.Server, self.conf, self.http.application)
            self.assertIn(option, refusal.message)
            self.conf.set_override(option, before, group="api")


class Starting(api_case.ApiCase):
    def test_an_api_of_its_own_needs_a_bus(self) -> None:
        self.conf.set_override("rpc_transport", "none")
        self.assertIn(
            "rpc_transport", self.assertRaises(errors.ConfigurationError, safety.check_transport, self.conf).message
        )

    def refused_start(self, *options: str) -> str:
        """Return what ingot-api says that cannot start with options of [DEFAULT], nor without a schema."""
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = directory / "ingot.conf"
        lines = ["[DEFAULT]", "auth_strategy = noauth", "transport_url = fake:/", *options]
        config.write_text("\n".join([*lines, "[database]", f"connection = sqlite:///{directory}/new.sqlite", ""]))
        self.useFixture(fixtures.MonkeyPatch("sys.argv", ["ingot-api", "--config-file", str(config)]))
        self.useFixture(fixtures.MonkeyPatch("oslo_config.cfg.CONF", cfg.ConfigOpts()))
        self.useFixture(command_process.CommandProcess())
        with contextlib.redirect_stderr(io.StringIO()) as output:
            self.assertEqual(78, cmd.main())
        self.assertNotIn("Traceback", output.getvalue())
        return output.getvalue()

    def test_a_pin_to_an_unknown_release_is_refused_at_the_start(self) -> None:
        output = self.refused_start("pin_release_version = 0.1", "rpc_transport = none")
        for part in ("pin_release_version", "0.1", "Known releases", "rpc_transport"):
            self.assertIn(part, output)

    def test_the_command_says_why_it_cannot_start(self) -> None:
        output = self.refused_start()
        self.assertIn("ingot-api: Configuration option [database] connection", output)
        self.assertIn("ingot-dbsync upgrade", output)
