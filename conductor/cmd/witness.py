"""A small process beside a conductor that lets the others know at once when the conductor dies.

The two share a pipe, of which the conductor alone has the end to write to. The kernel closes that end when the
conductor ends, however it ends. The witness is a shell that reads the other end, 2 MiB. If the conductor has not said
goodbye, the shell becomes this module, which reads the same configuration as the conductor did, and writes into its
entry that it is gone. The others take over then, as if its last heartbeat had been too long ago. That needs nothing
special of broker or database, whatever cluster they are, and their failures are no sign of a death. What takes the
witness along, as the end of a host or of a container does, is noticed by the missing heartbeats.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors
from ingot.common.conf import start
from ingot.conductor.cmd import drain
from ingot.db import conductors
from ingot.db.engine import Database

LOG = log.getLogger("ingot.witness")

_GOODBYE = b"goodbye\n"
_SHELL = "/bin/sh"
_WAIT = 'read goodbye || exec "$@"'
_PAUSE = 0.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT)
"""What systemd sends to all processes of the unit; SIGABRT is its watchdog's."""

_PROCESS = "INGOT_CONDUCTOR_PROCESS"
"""The environment variable with the identity of the conductor's process."""


class Witness:
    """The witness of this process.

    :param process: identity of this process, as it is in the conductor's entry.
    :param arguments: of the conductor's command line.
    """

    def __init__(self, process: str, arguments: Sequence[str]) -> None:
        ours, self._end = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the witness ends with the conductor, not before
        try:
            subprocess.Popen(  # noqa: S603 - the command that this process was started with
                ["sh", "-c", _WAIT, "ingot-witness", sys.executable, "-P", "-m", __name__, *arguments],  # noqa: S607
                executable=_SHELL,
                stdin=ours,
                env={**os.environ, _PROCESS: process},
            ).returncode = 0  # it is not waited for: it ends later than this process
        except OSError as exc:
            LOG.warning("This conductor has no witness: others notice its death by missing heartbeats only (%s)", exc)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(ours)

    def dismiss(self) -> None:
        """Say that the conductor ends in order."""
        with contextlib.suppress(OSError):
            os.write(self._end, _GOODBYE)
        os.close(self._end)


def main() -> int:
    """Note the death of a conductor. Exit code 0 when it is noted, or was not needed; else as of the conductor."""
    return start.run("ingot-witness", _note_death)


def _note_death() -> int:
    conf = start.Start("ingot-conductor", cli_opts=drain.OPTIONS, into=cfg.CONF).finish(quiet=True)
    timeout = conf.conductor.heartbeat_timeout
    db = Database(conf)
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        with contextlib.suppress(errors.ServiceUnavailable):
            if conductors.note_death(db, conf.host, os.environ[_PROCESS], timeout):
                LOG.warning("Conductor %s has died; the others take over", conf.host)
            break
        time.sleep(_PAUSE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
