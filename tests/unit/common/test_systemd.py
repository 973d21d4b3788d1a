"""What services say to systemd and to Ingot's own supervisor, and the socket that they are given."""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from typing import IO

import fixtures
import testtools

from ingot.common import signals, systemd, workers
from ingot.common.conf import opts
from tests import patience

PATIENCE = patience.seconds(60)

WORKER = """
import os, pathlib, sys, time
from ingot.common import systemd, workers
with pathlib.Path(sys.argv[1]).open("a") as file:
    print(os.getpid(), os.environ.get(workers.NOTIFY), file=file)
systemd.tell(workers.READY)
for _ in range(3):
    systemd.tell(workers.ALIVE)
    time.sleep(0.1)
time.sleep(3600)
"""
"""Is ready, and soon sends no keepalive any more."""

SUPERVISOR = """
import sys
from ingot.common import workers
workers.supervise("Test", {"one": {}, "two": {}}, sys.argv[1:], 1)
"""


class Systemd(fixtures.Fixture):  # type: ignore[misc]
    """The end of the socket that systemd listens on.

    :ivar address: what the environment of a service has for it.
    """

    def __init__(self, abstract: bool = False) -> None:
        self._abstract = abstract

    def _setUp(self) -> None:
        folder = self.useFixture(fixtures.TempDir()).path
        name = f"{folder}/notify"
        self.address = f"@{name}" if self._abstract else name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name}" if self._abstract else name)
        self._socket.settimeout(PATIENCE)
        self.addCleanup(self._socket.close)
        self.useFixture(fixtures.EnvironmentVariable(workers.NOTIFY, self.address))

    def next(self) -> list[str]:
        """Return the lines of the next message."""
        return self._socket.recv(4096).decode().splitlines()

    def until(self, line: str) -> list[str]:
        """Return the messages before the next one with a line."""
        passed: list[str] = []
        while line not in (lines := self.next()):
            passed += lines
        return passed


class Telling(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        for name in (workers.WATCHDOG, workers.WATCHDOG_PID, workers.ANSWERS):
            self.useFixture(fixtures.EnvironmentVariable(name))

    def wait(self, parts: systemd.Parts, stopped: threading.Event) -> None:
        thread = threading.Thread(target=systemd.wait, args=(stopped, parts))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(stopped.set)

    def test_without_systemd_nothing_is_said(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable(workers.NOTIFY))
        systemd.tell(workers.READY)

    def test_a_socket_that_is_gone_stops_no_service(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable(workers.NOTIFY, "/nowhere/notify"))
        systemd.tell(workers.READY)

    def test_both_kinds_of_addresses(self) -> None:
        for abstract in (False, True):
            listener = self.useFixture(Systemd(abstract))
            systemd.tell(workers.READY)
            self.assertEqual([workers.READY], listener.next())

    def test_a_service_is_ready_then_stops(self) -> None:
        listener = self.useFixture(Systemd())
        stopped = threading.Event()
        stopped.set()
        self.assertEqual(1, signals.wait_for_stop(stopped, opts.load([], prog="test", files=[])))
        self.assertEqual([[workers.READY], [workers.STOPPING]], [listener.next(), listener.next()])

    def test_keepalives_come_as_long_as_all_parts_turn(self) -> None:
        listener = self.useFixture(Systemd())
        self.useFixture(fixtures.EnvironmentVariable(workers.WATCHDOG, "300000"))
        turned_at = time.monotonic()
        parts: dict[str, Callable[[], float]] = {"loop": time.monotonic, "sweep": lambda: turned_at}
        stopped = threading.Event()
        log = self.useFixture(fixtures.FakeLogger("ingot.common.systemd"))
        self.wait(parts, stopped)
        self.assertEqual([workers.READY], listener.next())
        self.assertEqual([workers.ALIVE], listener.next())
        listener.until(workers.ALIVE)
        deadline = time.monotonic() + PATIENCE
        while "no keepalive of: sweep" not in log.output and time.monotonic() < deadline:
            time.sleep(0.05)
        stopped.set()
        said = listener.until(workers.STOPPING)
        self.assertLess(len(said), 4, "keepalives went on")
        self.assertEqual(1, log.output.count("no keepalive of: sweep"), "once is enough")

    def test_the_watchdog_of_another_process_is_not_for_this_one(self) -> None:
        self.useFixture(fixtures.EnvironmentVariable(workers.WATCHDOG, "3000000"))
        self.assertEqual(3, workers.read_watchdog())
        self.useFixture(fixtures.EnvironmentVariable(workers.WATCHDOG_PID, "1"))
        self.assertIsNone(workers.read_watchdog())
        self.useFixture(fixtures.EnvironmentVariable(workers.WATCHDOG_PID))
        self.useFixture(fixtures.EnvironmentVariable(workers.WATCHDOG, "0"))
        self.assertIsNone(workers.read_watchdog(), "0 is none, not one that is asked all the time")

    def test_a_reload_has_a_beginning_and_an_end(self) -> None:
        listener = self.useFixture(Systemd())
        with systemd.announce_reload():
            state, moment = listener.next()
        self.assertEqual("RELOADING=1", state)
        self.assertEqual("MONOTONIC_USEC", moment.partition("=")[0])
        self.assertEqual([workers.READY], listener.next())


class Workers(testtools.TestCase):
    def test_their_supervisor_is_ready_when_all_are_and_kills_one_that_is_stuck(self) -> None:
        listener = self.useFixture(Systemd())
        notes = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "notes")
        command = [sys.executable, "-c", textwrap.dedent(WORKER), str(notes)]
        supervisor = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SUPERVISOR), *command],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, workers.WATCHDOG: "1500000"},
        )
        self.addCleanup(supervisor.wait, PATIENCE)
        self.addCleanup(supervisor.terminate)
        listener.until("STATUS=Test: 2 of 2 run")
        assert supervisor.stderr is not None
        self.addCleanup(supervisor.stderr.close)
        self.assertIn("has sent no keepalive", supervisor.stderr.readline())
        listener.until(workers.ALIVE)
        self.assertIsNone(supervisor.poll())
        started = notes.read_text().splitlines()
        self.assertEqual({"None"}, {line.split()[1] for line in started}, "workers speak to their supervisor only")

    def supervise(self, program: str) -> "subprocess.Popen[str]":
        """Start a supervisor of two workers that are this program; ``name`` is which of them."""
        begin = "import os, sys, time\nfrom ingot.common import systemd, workers\nname = os.environ[workers.TITLE]\n"
        command = [sys.executable, "-c", begin + textwrap.dedent(program)]
        supervisor = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SUPERVISOR), *command],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert supervisor.stderr is not None
        self.addCleanup(supervisor.stderr.close)
        self.addCleanup(supervisor.wait, PATIENCE)
        self.addCleanup(supervisor.terminate)
        return supervisor

    def test_one_that_cannot_start_does_not_stop_the_others(self) -> None:
        listener = self.useFixture(Systemd())
        supervisor = self.supervise("""
            if name.endswith("two"):
                sys.exit(75)
            systemd.tell(workers.READY)
            time.sleep(3600)
        """)
        self.assertEqual([workers.READY, "STATUS=Test: 1 of 2 run"], listener.next())
        self.assertIsNone(supervisor.poll())

    def test_a_configuration_to_be_corrected_ends_all_before_they_are_ready(self) -> None:
        for notified in (True, False):
            if notified:
                listener = self.useFixture(Systemd())
            else:
                self.useFixture(fixtures.EnvironmentVariable(workers.NOTIFY))
            supervisor = self.supervise("""
                if name.endswith("two"):
                    sys.exit(78)
                time.sleep(3600)
            """)
            self.assertEqual(78, supervisor.wait(PATIENCE))
        self.assertEqual([workers.STOPPING], listener.next())


class Sockets(testtools.TestCase):
    """Each in a process of its own, in which the socket has the number that systemd gives it."""

    def take(self, given: socket.socket | IO[bytes], count: str = "1", pid: int | None = None) -> str:
        """Return what a process makes of a socket: the address, or the refusal."""
        program = """
        import os, sys
        from ingot.common import errors, systemd
        os.dup2(int(sys.argv[1]), 3)
        os.environ.update(LISTEN_PID=sys.argv[3] or str(os.getpid()), LISTEN_FDS=sys.argv[2])
        try:
            found = systemd.take_socket()
            print(found and found.getsockname(), "LISTEN_FDS" in os.environ)
        except errors.ConfigurationError as exc:
            print(exc.message)
        """
        arguments = [str(given.fileno()), count, str(pid or "")]
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program), *arguments],
            pass_fds=[given.fileno()],
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        ).stdout.strip()

    def listen(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        return listener

    def test_one_that_listens_is_taken(self) -> None:
        listener = self.listen()
        self.assertEqual(f"{listener.getsockname()} False", self.take(listener))

    def test_that_of_another_process_is_left_alone(self) -> None:
        self.assertEqual("None False", self.take(self.listen(), pid=1))

    def test_others_are_refused(self) -> None:
        self.assertIn("'2 sockets'", self.take(self.listen(), count="2"))
        with socket.socket() as deaf:
            self.assertIn("one socket that listens", self.take(deaf))
        with tempfile.TemporaryFile() as file:
            self.assertIn("one socket that listens", self.take(file))

    def test_none_by_default(self) -> None:
        self.assertIsNone(systemd.take_socket())
