"""The API as several processes of gunicorn, as the guides say.

One is killed, and all are replaced, while a client works with it; streams of events leave threads for requests.
"""

import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys

import fixtures
import requests
import testtools

from ingot.rack import ports
from tests import database, metric_values
from tests.functional import services
from tests.functional.deployment import lab
from tests.gate import environments
from tests.gate.pages import typed

REQUIREMENT = "gunicorn==23.0.0"
PROCESSES = 3
THREADS = "--worker-class gthread --threads 8 --keep-alive 75"
LIMITS = "--graceful-timeout 60 --timeout 120"
STREAMS = 40
"""Fewer than one process serves by default, and more than it has threads for requests."""


class TestGunicorn(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        url = self.useFixture(database.DatabaseFixture("mysql", migrated=False)).url
        self.metrics_port = ports.tcp(PROCESSES)
        options = {"metrics": {"api_port": self.metrics_port}}
        self.site = self.useFixture(lab.Lab(database_url=url, rabbit_url=services.broker_url(), options=options))
        self.site.process.stop()  # gunicorn takes its place, and its address
        self.access = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "access.log"

    def start(self, *words: str) -> None:
        """Start gunicorn from an environment of its own, with this environment's product.

        :param words: the command after its name.
        """
        (packages,) = environments.cached("gunicorn", REQUIREMENT).parent.glob("lib/python*/site-packages")
        place = f"--bind {self.site.url.removeprefix('http://')} --access-logfile {self.access}"
        own = {
            "GUNICORN_CMD_ARGS": f"{place} --access-logformat '%(p)s %(s)s'",
            "INGOT_CONFIG_FILES": str(self.site.directory / "api-0.conf"),
            "PYTHONPATH": str(packages),
        }
        command = [sys.executable, "-W", "ignore", "-m", "gunicorn", *words]
        with (self.site.directory / "gunicorn.log").open("wb") as output:
            self.gunicorn = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **own})
        self.addCleanup(self.end)
        self.site.wait_until_served()

    def end(self) -> None:
        self.gunicorn.terminate()
        try:
            self.gunicorn.wait(lab.PATIENCE)
        except subprocess.TimeoutExpired:
            self.gunicorn.kill()
            self.gunicorn.wait()

    def served_by(self) -> set[int]:
        """Return the ids of the processes that have answered."""
        *lines, _unfinished = self.access.read_text().split("\n") if self.access.exists() else [""]
        return {int(line.split()[0].strip("<>")) for line in lines}

    def ask_until(self, count: int, beside: set[int]) -> None:
        """Send requests on new connections until ``count`` processes other than ``beside`` have answered.

        A process that ends may close a connection that it has taken and not read. A load balancer retries with another
        process then, and so does this.
        """

        def asked() -> bool:
            lab.User(self.site.url).get("/v1/nodes")
            return len(self.served_by() - beside) >= count

        self.site.eventually(asked, f"{count} processes of gunicorn beside {beside} answer")

    def count_requests(self) -> float:
        """Return how many lists of nodes all processes say that they have answered; each has a port of its own."""
        urls = [f"http://127.0.0.1:{self.metrics_port + number}/metrics" for number in range(PROCESSES)]
        series = [one for url in urls for one in metric_values.parse(requests.get(url, timeout=lab.PATIENCE).text)]
        counted = [one for one in series if one.name == "ingot_api_requests_total"]
        return sum(one.value for one in counted if one.labels["route"] == "/v1/nodes")

    def test_processes_share_the_requests_and_are_replaced(self) -> None:
        self.start(*shlex.split(f"--workers {PROCESSES} {THREADS} {LIMITS} ingot.api.wsgi:application"))
        uuid = self.site.user.post("/v1/nodes", {"driver": "fake-hardware"})["uuid"]
        self.site.make_available(uuid)
        self.ask_until(PROCESSES, set())
        first = self.served_by()
        self.assertGreaterEqual(self.count_requests(), PROCESSES)
        os.kill(min(first), signal.SIGKILL)
        self.ask_until(1, first)
        self.site.user.provision(uuid, "active")
        before = self.served_by()
        self.gunicorn.send_signal(signal.SIGHUP)  # each process ends what it answers, and a new one takes its place
        self.ask_until(PROCESSES, before)
        self.site.reach(uuid, "active")
        self.gunicorn.terminate()
        self.assertEqual(0, self.gunicorn.wait(lab.PATIENCE))

    def test_streams_leave_threads_for_requests(self) -> None:
        page = environments.ROOT / "doc/source/operator/bulk-and-events.rst"
        (command,) = typed.read_for(__file__, page.read_text())
        gunicorn, *words = shlex.split(command.text)
        self.assertEqual("gunicorn", gunicorn)
        self.start(*words)
        self.assertEqual({b"HTTP/1.1 200"}, {self.open_stream() for _ in range(STREAMS)})
        self.ask_until(2, set())

    def open_stream(self) -> bytes:
        """Open a stream of events, which stays open; return how its answer begins."""
        host, port = self.site.url.removeprefix("http://").split(":")
        stream = socket.create_connection((host, int(port)), lab.PATIENCE)
        self.addCleanup(stream.close)
        stream.sendall(b"GET /ingot/v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
        return stream.recv(12)
