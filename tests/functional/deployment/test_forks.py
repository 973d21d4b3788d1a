"""What starts the services of the tests leaves nothing behind."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import fixtures
import testtools

from ingot.rack import ports
from tests import patience
from tests.functional.deployment import lab

# A worker of stestr that starts the all-in-one, says under which number it runs, and is killed.
_WORKER = """
import os, pathlib, signal, sys
from tests.functional.deployment import forks
program, configuration, log = sys.argv[1:]
with open(log, "wb") as output:
    print(forks.start([program, "--config-file", configuration], output, None, dict(os.environ)).pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


class KilledTest(testtools.TestCase):
    def test_services_end_with_a_worker_that_is_killed(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        port, configuration = ports.tcp(), place / "ingot.conf"
        configuration.write_text(
            f"[DEFAULT]\nauth_strategy = noauth\nstate_path = {place}\nenabled_hardware_types = fake-hardware\n"
            f"[api]\nhost_ip = 127.0.0.1\nport = {port}\n"
        )
        words = [sys.executable, "-c", _WORKER, str(lab.HERE / "ingot"), str(configuration), str(place / "log")]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run(
            words, stdout=subprocess.PIPE, text=True, timeout=lab.PATIENCE, check=False, env=variables
        )
        self.assertEqual(-signal.SIGKILL, ended.returncode)
        service, until = int(ended.stdout), time.monotonic() + patience.seconds(20)
        self.addCleanup(self._kill, service)
        while self._runs(service) and time.monotonic() < until:
            time.sleep(0.1)
        self.assertFalse(self._runs(service))

    def _runs(self, pid: int) -> bool:
        """Return whether a process runs; a zombie has no command line."""
        try:
            return bool(pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        except FileNotFoundError:
            return False

    def _kill(self, pid: int) -> None:
        if self._runs(pid):
            os.kill(pid, signal.SIGKILL)
