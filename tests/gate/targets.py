"""A storage that exports files by iSCSI: tgtd from Debian, which needs no privileges."""

import os
import pathlib
import subprocess
import time

import fixtures

from ingot.rack import ports
from tests import patience
from tests.gate import environments

PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
"""Where Debian keeps its programs: users' own paths often lack it."""

_PATIENCE_S = patience.seconds(30)


class Target(fixtures.Fixture):
    """
    :ivar port: at which it serves iSCSI, on loopback.
    :ivar socket: by which ``tgtadm`` changes it.
    """

    def _setUp(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.port, self.socket = ports.tcp(), place / "tgtd.socket"
        self._environment = {**os.environ, "PATH": PATH, "TGT_IPC_SOCKET": str(self.socket)}
        command = [*environments.TIED, "tgtd", "-f", "--iscsi", f"portal=127.0.0.1:{self.port}"]
        with (place / "tgtd.log").open("wb") as log:
            process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        until = time.monotonic() + _PATIENCE_S
        while not self._answers():
            if time.monotonic() > until:
                raise AssertionError((place / "tgtd.log").read_text())
            time.sleep(0.1)

    def _answers(self) -> bool:
        command = ["tgtadm", "--lld", "iscsi", "--op", "show", "--mode", "system"]
        return subprocess.run(command, env=self._environment, capture_output=True, check=False).returncode == 0

    def show(self) -> str:
        """Return its targets, with what they export, who is connected and who may be."""
        return environments.run(
            *("tgtadm", "--lld", "iscsi", "--op", "show", "--mode", "target"), env=self._environment
        )
