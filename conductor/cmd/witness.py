"""A small process beside a conductor that lets the others know at once when the conductor dies.

The two share a pipe, of which the conductor alone has the end to write to. The kernel closes that end when the
conductor ends, however it ends. If it has not said goodbye, the witness writes into the conductor's entry that it is
gone. The others take over then, as if its last heartbeat had been too long ago. That needs nothing special of broker or
database, whatever cluster they are, and their failures are no sign of a death. What takes the witness along, as the end
of a host or of a container does, is noticed by the missing heartbeats.
"""

import contextlib
import ctypes
import gc
import os
import signal
import time
from typing import NoReturn

from oslo_log import log

from ingot.common import errors
from ingot.conductor.membership import identify_process
from ingot.db import conductors
from ingot.db.engine import Database

LOG = log.getLogger(__name__)

_GOODBYE = b"x"
_PAUSE = 0.5
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_NAME = b"ingot-witness"
_PR_SET_NAME = 15  # <sys/prctl.h>
_LIBC = ctypes.CDLL(None)


class Witness:
    """The witness of this process; made while the process has one thread and no connection.

    :param host: name of the conductor.
    :param timeout: seconds after which the others know without it ([conductor] heartbeat_timeout).
    """

    def __init__(self, db: Database, host: str, timeout: float) -> None:
        self._db = db
        self._host = host
        self._timeout = timeout
        self._process = identify_process(os.getpid())
        ours, self._end = os.pipe()
        gc.freeze()  # the memory that both share stays shared
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # the witness ends with the conductor, not before
        if not os.fork():
            self._watch(ours)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        gc.unfreeze()
        os.close(ours)

    def dismiss(self) -> None:
        """Say that the conductor ends in order."""
        with contextlib.suppress(OSError):
            os.write(self._end, _GOODBYE)
        os.close(self._end)

    def _watch(self, pipe: int) -> NoReturn:
        """Wait for the conductor's end, in the process of the witness."""
        try:
            _LIBC.prctl(_PR_SET_NAME, _NAME)
            os.close(self._end)
            if not os.read(pipe, len(_GOODBYE)):
                self._note_death()
        except Exception:  # the edge of a process
            LOG.exception("The witness of conductor %s failed unexpectedly", self._host)
        finally:
            os._exit(0)

    def _note_death(self) -> None:
        until = time.monotonic() + self._timeout
        while time.monotonic() < until:
            with contextlib.suppress(errors.ServiceUnavailable):
                if conductors.note_death(self._db, self._host, self._process, self._timeout):
                    LOG.warning("Conductor %s has died; the others take over", self._host)
                return
            time.sleep(_PAUSE)
