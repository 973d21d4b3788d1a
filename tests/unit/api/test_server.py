"""The web server in the process, and what the commands say when they cannot start."""

import contextlib
import io
import pathlib
import socket
import sys

import fixtures
import requests

from ingot.api import cmd, server
from ingot.common import errors
from ingot.rack import ports
from tests import api_case


class ServerTests(api_case.ApiCase):
    def configure(self) -> None:
        self.conf.set_override("port", ports.tcp(), group="api")
        self.conf.set_override("host_ip", "127.0.0.1", group="api")
        self.conf.set_override("api_threads", 1, group="api")

    def serve(self) -> server.Server:
        web = server.Server(self.conf, self.http.application)
        web.start()
        self.addCleanup(web.stop)
        return web

    def test_serves_until_it_is_stopped(self) -> None:
        web = self.serve()
        url = f"http://127.0.0.1:{self.conf.api.port}/v1/nodes"
        self.assertEqual([], requests.get(url, timeout=60).json()["nodes"])
        web.stop()
        self.assertRaises(requests.ConnectionError, requests.get, url, timeout=2)

    def test_a_body_that_does_not_arrive_whole_is_refused(self) -> None:
        self.serve()
        for length, body, expected in (
            ("Content-Length: 100", "{}", "100"),
            ("Content-Length: -5", "{}", "Content-Length"),
            ("Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n", "chunk"),
            ("Transfer-Encoding: chunked", "10\r\n{}", "chunk"),
        ):
            head = f"POST /v1/chassis HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{length}\r\n\r\n"
            answer = self.exchange(head + body)
            self.assertIn(" 400 ", answer.splitlines()[0])
            self.assertIn(expected, answer)

    def test_connections_of_many_clients_stay_open_between_requests(self) -> None:
        self.serve()
        url = f"http://127.0.0.1:{self.conf.api.port}/v1/nodes"
        clients = [requests.Session() for _number in range(20)]
        for client in clients:
            self.addCleanup(client.close)
            self.assertNotIn("Connection", client.get(url, timeout=60).headers)

    def test_who_asks_once_a_minute_finds_the_connection_open(self) -> None:
        self.serve()
        ask = "GET /v1 HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
        headers = [line for line in self.exchange(ask).splitlines() if line.startswith("Keep-Alive: timeout=")]
        self.assertGreater(int(headers[0].partition("=")[2]), 60)

    def test_who_stops_in_the_middle_of_a_request_keeps_no_thread(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.api.server._SENDING_SECONDS", 0.1))
        self.serve()
        with socket.create_connection(("127.0.0.1", self.conf.api.port), timeout=60) as connection:
            connection.sendall(b"GET /v1 HT")
            with connection.makefile() as answer:
                self.assertIn(" 408 ", answer.readline())

    def exchange(self, request: str) -> str:
        """Send what no HTTP client would."""
        with socket.create_connection(("127.0.0.1", self.conf.api.port), timeout=60) as connection:
            connection.sendall(request.encode())
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile() as answer:
                return answer.read()

    def test_a_port_in_use_is_reported(self) -> None:
        self.serve()
        refusal = self.assertRaises(errors.ConfigurationError, server.Server(self.conf, self.http.application).start)
        self.assertIn(str(self.conf.api.port), refusal.message)

    def test_links_use_the_public_endpoint(self) -> None:
        self.conf.set_override("public_endpoint", "https://metal.example.com/", group="api")
        http = self.application().test_client()
        links = http.get("/v1").get_json()["nodes"]
        self.assertEqual("https://metal.example.com/v1/nodes/", links[0]["href"])


class Starting(api_case.ApiCase):
    def test_an_api_of_its_own_needs_a_bus(self) -> None:
        self.conf.set_override("rpc_transport", "none")
        self.assertIn("rpc_transport", self.assertRaises(errors.ConfigurationError, cmd.build, self.conf).message)

    def test_a_pin_to_an_unknown_release_is_refused_at_the_start(self) -> None:
        self.conf.set_override("rpc_transport", "oslo")
        self.conf.set_override("pin_release_version", "0.1")
        error = self.assertRaises(errors.ConfigurationError, cmd.build, self.conf)
        for part in ("pin_release_version", "0.1", "Known releases"):
            self.assertIn(part, error.message)

    def test_the_command_says_why_it_cannot_start(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        config = directory / "ingot.conf"
        config.write_text(
            f"[DEFAULT]\ntransport_url = fake:/\n[database]\nconnection = sqlite:///{directory}/new.sqlite\n"
        )
        self.useFixture(fixtures.MonkeyPatch("sys.argv", ["ingot-api", "--config-file", str(config)]))
        self.useFixture(fixtures.MonkeyPatch("oslo_log.log.setup", lambda *_arguments: None))
        with contextlib.redirect_stderr(io.StringIO()) as output:
            self.assertEqual(1, cmd.main())
        self.assertIn("ingot-api cannot start", output.getvalue())
        self.assertIn("ingot-dbsync upgrade", output.getvalue())
        self.assertNotIn("Traceback", output.getvalue())
        self.assertTrue(sys.argv)
