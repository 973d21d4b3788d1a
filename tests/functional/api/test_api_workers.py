"""``[api] api_workers``: several processes of ingot-api that share one address."""

import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading

import fixtures
import requests

from ingot.rack import ports
from tests import conductor_case, database, metric_values, patience, server_case

PATIENCE = patience.seconds(60)

AS_SYSTEMD = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.argv[2], sys.argv[2:])
"""


class Workers(database.TestCase):
    metrics_port = 0

    def start(self, given: socket.socket | None = None, **options: object) -> "subprocess.Popen[bytes]":
        """Start ingot-api on the database of the test; it is killed with the test.

        :param given: a socket that it gets as from systemd.
        """
        self.directory = pathlib.Path(self.database.url.removeprefix("sqlite:///")).parent
        self.port = ports.tcp()
        self.log = self.directory / "api.log"
        api = {"host_ip": "127.0.0.1", "port": self.port, "api_workers": 2, "api_threads": 2, **options}
        lines = ["[DEFAULT]", "transport_url = fake:/", "auth_strategy = noauth", f"log_file = {self.log}"]
        lines += ["rpc_transport = oslo", f"state_path = {self.directory}"]
        lines += ["[database]", f"connection = {self.database.url}"]
        lines += ["[secrets]", f"key_file = {self.conf.secrets.key_file}"]
        lines += ["[api]", *(f"{name} = {value}" for name, value in api.items())]
        lines += ["[metrics]", f"api_port = {self.metrics_port}"]
        config = self.directory / "ingot.conf"
        config.write_text("\n".join(lines))
        command = [str(pathlib.Path(sys.executable).parent / "ingot-api"), "--config-file", str(config)]
        with (self.directory / "output").open("wb") as output:
            if given is not None:
                command = [sys.executable, "-c", AS_SYSTEMD, str(given.fileno()), *command]
            passed = [] if given is None else [given.fileno()]
            process = subprocess.Popen(command, stdout=output, stderr=output, pass_fds=passed)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    @property
    def conf(self) -> "object":
        return self.database.conf

    def answers(self, path: str = "/v1", verify: str | bool = True) -> bool:
        scheme = "https" if isinstance(verify, str) else "http"
        try:
            url = f"{scheme}://127.0.0.1:{self.port}{path}"
            return requests.get(url, timeout=PATIENCE, verify=verify).status_code == 200
        except requests.ConnectionError:
            return False

    def processes(self) -> list[int]:
        """Return the processes that the supervisor has started."""
        written = self.log.read_text() if self.log.exists() else ""
        return [int(number) for number in re.findall(r"API process \d runs as process (\d+)", written)]

    def listening(self) -> int:
        return self.log.read_text().count("The API listens on") if self.log.exists() else 0

    def test_share_an_address_and_one_that_is_killed_is_replaced(self) -> None:
        process = self.start()
        conductor_case.eventually(lambda: self.listening() == 2, "both listen")
        self.assertTrue(self.answers("/v1/nodes"))
        first, second = self.processes()
        os.kill(first, signal.SIGKILL)
        for _ in range(20):
            self.assertTrue(self.answers("/v1/nodes"))
        conductor_case.eventually(lambda: self.listening() == 3, "another one listens")
        self.assertTrue(self.answers())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))
        self.assertFalse(self.answers())
        self.assertFalse(pathlib.Path(f"/proc/{second}").exists())

    def test_options_of_an_address_count_for_nothing_with_a_socket_of_systemd(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as given:
            self.start(given, host_ip="0.0.0.0")
            conductor_case.eventually(lambda: self.listening() == 2, "both listen")
            self.port = given.getsockname()[1]
            self.assertTrue(self.answers("/v1/nodes"))

    def test_each_serves_its_own_metrics(self) -> None:
        self.metrics_port = ports.tcp(2)
        self.start()
        conductor_case.eventually(lambda: self.listening() == 2, "both listen")
        for port in (self.metrics_port, self.metrics_port + 1):
            health = requests.get(f"http://127.0.0.1:{port}/healthcheck", timeout=PATIENCE)
            self.assertEqual((200, {"api": "OK"}), (health.status_code, health.json()))
        for _ in range(20):
            self.assertTrue(self.answers("/v1/nodes"))
        self.assertEqual(20, sum(self.requests(self.metrics_port + number) for number in range(2)))

    def requests(self, port: int) -> float:
        """Return how many lists of nodes the process has answered that serves its metrics at a port."""
        series = metric_values.parse(requests.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text)
        counted = [one for one in series if one.name == "ingot_api_requests_total"]
        return sum(one.value for one in counted if one.labels["route"] == "/v1/nodes")

    def test_give_memory_back_unless_the_operator_says_how(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable("MALLOC_ARENA_MAX", "7"))
        self.start()
        conductor_case.eventually(lambda: self.listening() == 2, "both listen")
        for process in self.processes():
            environment = pathlib.Path(f"/proc/{process}/environ").read_text().split("\0")
            self.assertIn("MALLOC_ARENA_MAX=7", environment)
            self.assertIn("MALLOC_TRIM_THRESHOLD_=262144", environment)

    def test_a_stop_loses_no_request(self) -> None:
        """Clients that keep their connection, and those that open one for each request, ask until they are refused."""
        process = self.start()
        conductor_case.eventually(lambda: self.listening() == 2, "both listen")
        outcomes: list[str] = []
        clients = [threading.Thread(target=self.ask_until_refused, args=(bool(n % 2), outcomes)) for n in range(8)]
        for client in clients:
            client.start()
        conductor_case.eventually(lambda: self.log.read_text().count("GET /v1/nodes 200 ") > 50, "they are served")
        process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(PATIENCE)
        self.assertEqual(["refused"] * len(clients), outcomes)
        self.assertEqual(0, process.wait(PATIENCE))

    def test_a_stop_during_the_start_is_orderly(self) -> None:
        process = self.start()
        conductor_case.eventually(lambda: len(self.processes()) == 2, "both have begun")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(PATIENCE))

    def ask_until_refused(self, keeps: bool, outcomes: list[str]) -> None:
        """Send requests; note how it ended."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        outcome = ""
        while not outcome:
            try:
                if connection.sock is None:
                    connection.connect()
            except ConnectionRefusedError:
                outcome = "refused"
                break
            try:
                connection.request("GET", "/v1/nodes", headers={} if keeps else {"Connection": "close"})
                answer = connection.getresponse()
                answer.read()
                outcome = "" if answer.status == 200 else str(answer.status)
            except OSError as exc:
                outcome = repr(exc)
        outcomes.append(outcome)

    def test_sighup_reads_the_certificate_again_in_each(self) -> None:
        folder = pathlib.Path(self.database.url.removeprefix("sqlite:///")).parent
        pem = server_case.make_certificate(folder)
        process = self.start(enable_ssl_api=True, cert_file=pem, key_file=pem)
        conductor_case.eventually(lambda: self.listening() == 2, "both listen")
        self.assertTrue(self.answers(verify=pem))
        kept = pathlib.Path(pem).read_text()
        pathlib.Path(pem).write_text("nonsense")
        process.send_signal(signal.SIGHUP)
        conductor_case.eventually(lambda: self.log.read_text().count("TLS stays as it was") == 2, "both have said so")
        pathlib.Path(pem).write_text(kept)
        for _ in range(6):
            self.assertTrue(self.answers(verify=pem))
        server_case.make_certificate(folder)
        process.send_signal(signal.SIGHUP)
        conductor_case.eventually(lambda: self.log.read_text().count("was read again") == 2, "both have read it")
        for _ in range(6):
            self.assertTrue(self.answers(verify=pem))

    def test_what_keeps_all_from_starting_is_said_once(self) -> None:
        process = self.start(host_ip="192.0.2.1")
        self.assertNotEqual(0, process.wait(PATIENCE))
        output = (self.directory / "output").read_text()
        self.assertEqual(1, output.count("192.0.2.1:"), output)
        self.assertNotIn("Traceback", output)
        self.assertEqual([], self.processes())
