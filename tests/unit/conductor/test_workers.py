"""Several conductors on one host: their names, and what their supervisor does when signals come or one of them ends."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import fixtures
import testtools

from ingot.common.conf import opts
from ingot.conductor.cmd import workers
from tests import conductor_case

WORKER = """
import os, pathlib, signal, sys
output = pathlib.Path(sys.argv[1], os.environ["OS_DEFAULT__HOST"])
def note(what):
    with output.open("a") as file:
        print(what, file=file)
heard = [signal.SIGHUP, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
note(f"started {os.getpid()} {os.environ['OS_CONDUCTOR__WORKERS']}")
while signal.sigwait(heard) == signal.SIGHUP:
    note("hangup")
note("stopped")
"""
"""Notes what it hears."""

SUPERVISOR = """
import os, sys
from ingot.common.conf import opts
from ingot.conductor.cmd import workers
conf = opts.load([], prog="test", files=[])
conf.set_override("host", "rack")
conf.set_override("workers", 3, group="conductor")
os.set_inheritable(os.open(sys.argv[1], os.O_RDONLY), True)
workers.supervise(conf, sys.argv[1:])
"""


class TestSupervisor(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.notes = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.program = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "worker")
        self.program.symlink_to(sys.executable)
        command = [str(self.program), "-c", textwrap.dedent(WORKER), str(self.notes)]
        self.supervisor = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SUPERVISOR), *command], stderr=subprocess.DEVNULL
        )
        self.addCleanup(self.end)
        for name in ("rack", "rack-2", "rack-3"):
            self.until(name, "started", 1)

    def end(self) -> None:
        self.supervisor.terminate()
        self.supervisor.wait(conductor_case.PATIENCE)

    def until(self, name: str, what: str, count: int) -> list[str]:
        """Return what a worker has noted, once it has noted something that often."""

        def matching_lines() -> list[str] | None:
            place = self.notes / name
            lines = place.read_text().splitlines() if place.exists() else []
            return lines if sum(line.startswith(what) for line in lines) == count else None

        lines: list[str] = conductor_case.eventually(matching_lines, f"{name}: {what}, {count} times")
        return lines

    def pid(self, name: str) -> int:
        """Return the id of the process that has the name now."""
        started = [line for line in (self.notes / name).read_text().splitlines() if line.startswith("started")]
        return int(started[-1].split()[1])

    def test_all_are_asked_to_stop_and_are_waited_for(self) -> None:
        self.supervisor.terminate()
        self.assertEqual(0, self.supervisor.wait(conductor_case.PATIENCE))
        for name in ("rack", "rack-2", "rack-3"):
            first, last = (self.notes / name).read_text().splitlines()
            self.assertEqual("stopped", last)
            self.assertEqual("1", first.split()[2], "a worker must not be a supervisor")

    def test_it_keeps_no_file_that_was_open_before(self) -> None:
        """A connection to a database, say, that would stay logged in."""
        kept = [os.readlink(file) for file in pathlib.Path(f"/proc/{self.supervisor.pid}/fd").iterdir()]
        self.assertNotIn(os.path.realpath(self.program), kept)

    def test_one_that_ends_is_started_again_under_its_name(self) -> None:
        os.kill(self.pid("rack-2"), signal.SIGKILL)
        self.until("rack-2", "started", 2)
        os.kill(self.pid("rack-2"), signal.SIGTERM)
        self.until("rack-2", "started", 3)
        self.assertEqual(["started"], [line.split()[0] for line in (self.notes / "rack").read_text().splitlines()])

    def test_one_that_cannot_be_started_is_tried_again_and_ends_no_other(self) -> None:
        elsewhere = self.program.rename(self.program.with_name("replaced"))
        os.kill(self.pid("rack-2"), signal.SIGKILL)
        self.assertRaises(subprocess.TimeoutExpired, self.supervisor.wait, 2)
        elsewhere.rename(self.program)
        self.until("rack-2", "started", 2)
        self.assertEqual(["started"], [line.split()[0] for line in (self.notes / "rack").read_text().splitlines()])

    def test_a_hangup_is_passed_on(self) -> None:
        self.supervisor.send_signal(signal.SIGHUP)
        for name in ("rack", "rack-2", "rack-3"):
            self.until(name, "hangup", 1)
        self.assertIsNone(self.supervisor.poll())

    def test_workers_of_a_supervisor_that_is_killed_stop(self) -> None:
        self.supervisor.kill()
        for name in ("rack", "rack-2", "rack-3"):
            self.until(name, "stopped", 1)


class TestNames(testtools.TestCase):
    def test_the_first_has_the_name_that_one_alone_has(self) -> None:
        conf = opts.load([], prog="test", files=[])
        conf.set_override("host", "rack")
        self.assertEqual(["rack"], workers.names(conf))
        conf.set_override("workers", 3, group="conductor")
        self.assertEqual(["rack", "rack-2", "rack-3"], workers.names(conf))

    def test_the_environment_tells_a_worker_what_it_is(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ingot.conf"
        place.write_text("[DEFAULT]\nhost = rack\n[conductor]\nworkers = 3\n")
        self.useFixture(fixtures.EnvironmentVariable("OS_DEFAULT__HOST", "rack-2"))
        self.useFixture(fixtures.EnvironmentVariable("OS_CONDUCTOR__WORKERS", "1"))
        conf = opts.load(["--config-file", str(place)], prog="test")
        self.assertEqual(["rack-2"], workers.names(conf))
