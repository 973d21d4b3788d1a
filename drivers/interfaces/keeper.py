"""The program between a conductor and a child process: it ends the child in time, and with the conductor.

    python -I -S keeper.py FD SECONDS SILENCE MEMORY SCRATCH COMMAND...

It reads a byte now and then from FD, which only the conductor writes to. When the conductor is gone, or has not asked
for the child during SILENCE seconds, or when SECONDS are over, the child and all that it has started are killed. MEMORY
is what each of those processes may have, in MiB. SCRATCH is a directory that is removed in the end. Only the standard
library is used: it starts in a few milliseconds.
"""

import ctypes
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

TOO_LATE, LEFT_ALONE = 124, 125
"""Exit codes besides those of the child: it has taken too long; the conductor does not ask for it any more."""

_SUBREAPER, _DEATH_SIGNAL = 36, 1
_MEBIBYTE = 2**20


def main(arguments: list[str]) -> int:
    """Run a command until it ends or has to; return its exit code, as a shell would."""
    lease, seconds, silence, memory = (int(argument) for argument in arguments[:4])
    set_option = ctypes.CDLL(None, use_errno=True).prctl
    set_option(_SUBREAPER, 1, 0, 0, 0)

    def limit() -> None:
        set_option(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (memory * _MEBIBYTE, memory * _MEBIBYTE))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core would have secrets

    # There is one thread, so that a function between fork and exec is safe.
    child = subprocess.Popen(arguments[5:], preexec_fn=limit, start_new_session=True)  # noqa: S603
    try:
        return _wait(child, lease, time.monotonic() + seconds, silence)
    finally:
        _kill_all()
        shutil.rmtree(arguments[4], ignore_errors=True)


def _wait(child: "subprocess.Popen[bytes]", lease: int, deadline: float, silence: float) -> int:
    ended, asked = os.pidfd_open(child.pid), time.monotonic()
    while True:
        now = time.monotonic()
        if now >= deadline:
            return TOO_LATE
        if now >= asked + silence:
            return LEFT_ALONE
        ready, _, _ = select.select([ended, lease], [], [], min(deadline, asked + silence) - now)
        if ended in ready:
            code = child.wait()
            return code if code >= 0 else 128 - code
        if lease in ready:
            if not os.read(lease, 4096):
                return LEFT_ALONE
            asked = now


def _kill_all() -> None:
    """Kill what is left of the child and its descendants: those whose parents die become children of this process."""
    own = Path(f"/proc/self/task/{os.getpid()}/children")
    while children := own.read_text().split():
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        for child in children:
            os.waitpid(int(child), 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
