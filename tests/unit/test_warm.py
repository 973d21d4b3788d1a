"""Commands of programs that are imported once: each runs as if started alone, and nothing stays behind."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import testtools

from tests import patience
from tests.gate import warm

PROGRAMS = pathlib.Path(sys.executable).parent
PROGRAM = "ingot-dbsync"

# A worker of stestr that has a server of its own, runs a command, says where, and is killed.
_WORKER = f"""
import os, pathlib, signal, subprocess
from tests.gate import warm
server = warm.Warm(pathlib.Path({str(PROGRAMS)!r}), {PROGRAM!r}, [])
server.setUp()
subprocess.run([server.directory / {PROGRAM!r}, "--help"], stdout=subprocess.DEVNULL, check=True)
print(server.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


class WarmTest(testtools.TestCase):
    def _run(self, directory: pathlib.Path) -> subprocess.CompletedProcess[str]:
        words = [directory / PROGRAM, "--help"]
        return subprocess.run(words, capture_output=True, text=True, timeout=patience.seconds(60), check=False)

    def test_who_goes_away_at_once_leaves_no_complaint_to_others(self) -> None:
        server = self.useFixture(warm.Warm(PROGRAMS, PROGRAM, []))
        self.assertEqual("", self._run(server.directory).stderr)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(server.directory / ".warm"))
        for _ in range(2):
            outcome = self._run(server.directory)
            self.assertEqual((0, ""), (outcome.returncode, outcome.stderr))

    def test_it_ends_with_a_worker_that_is_killed(self) -> None:
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run(
            [sys.executable, "-c", _WORKER], stdout=subprocess.PIPE, text=True, timeout=60, check=False, env=variables
        )
        self.assertEqual(-signal.SIGKILL, ended.returncode)
        place, until = pathlib.Path(ended.stdout.strip()), time.monotonic() + patience.seconds(20)
        self.addCleanup(subprocess.run, ["rm", "-r", place], check=False)
        while self._is_served(place) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertFalse(self._is_served(place))

    def _is_served(self, place: pathlib.Path) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            return connection.connect_ex(str(place / ".warm")) == 0
