"""Several processes of one service on one host, and a supervisor that keeps them running."""

import ctypes
import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from oslo_log import log

LOG = log.getLogger(__name__)

_STOPS = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_STOPS, signal.SIGHUP, signal.SIGCHLD)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a worker that ended is started again: twice as long after each time, until it has run for a while."""

_A_WHILE = 60.0
_MARGIN = 30.0
"""Seconds that workers have to end besides the limits of their own."""

_PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
_LIBC = ctypes.CDLL(None)


class _Worker:
    """One of them, in one process after the other.

    :param kind: what it is, for the log.
    :param environment: what it has more than this process.
    :param files: descriptors of this process that it shares.
    """

    def __init__(
        self, kind: str, name: str, command: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
    ) -> None:
        self._title = f"{kind} {name}"
        self._command = command
        self._environment = environment
        self._files = files
        self._process: subprocess.Popen[bytes] | None = None
        self._pause = 0.0
        self._started_at = self._starts_at = float("-inf")

    def care(self, now: float) -> float | None:
        """Start it, if it is time.

        :returns: seconds after which it is to be started; None: it runs.
        """
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return None
            self._put_off(now, code)
        if now < self._starts_at:
            return self._starts_at - now
        self._process = subprocess.Popen(  # noqa: S603 - the command that this process was started with
            self._command,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **self._environment},
            pass_fds=self._files,
            preexec_fn=functools.partial(_become_worker, os.getpid()),
        )
        self._started_at = now
        LOG.info("%s runs as process %d", self._title, self._process.pid)
        return None

    def _put_off(self, now: float, code: int) -> None:
        ran = now - self._started_at
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE) if ran < _A_WHILE else _FIRST_PAUSE
        self._process, self._starts_at = None, now + self._pause
        LOG.error("%s ended with %d after %.0f s; it starts again in %.0f s", self._title, code, ran, self._pause)

    def send_signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def exit_code(self) -> int | None:
        """Return the exit code of the last process; None as long as it runs."""
        return 0 if self._process is None else self._process.poll()


class Supervisor:
    """Keeps processes running until a signal stops it.

    :param kind: what they are, for the log.
    :param environments: what each has in its environment, by name. As a source of options it is stronger than files.
    :param command: starts one of them.
    :param patience: seconds within which one ends that is to end.
    :param files: descriptors of this process that they share.
    :param before_stop: called before they are asked to stop.
    """

    def __init__(
        self,
        kind: str,
        environments: Mapping[str, Mapping[str, str]],
        command: Sequence[str],
        patience: float,
        files: Sequence[int] = (),
        before_stop: Callable[[], object] = lambda: None,
    ) -> None:
        self._kind = kind
        self._before_stop = before_stop
        self._workers = [_Worker(kind, name, command, own, files) for name, own in environments.items()]
        self._patience = patience + _MARGIN

    def run(self) -> int:
        """Return after SIGTERM or SIGINT, when all have ended: 0 if they did so in order. SIGHUP is passed on."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # they wait until they are read
        while True:
            now = time.monotonic()
            pauses = [worker.care(now) for worker in self._workers]
            number = _next_signal(min((pause for pause in pauses if pause is not None), default=None))
            if number in _STOPS:
                self._before_stop()
            if number in (*_STOPS, signal.SIGHUP):
                self._signal_all(number)
            if number in _STOPS:
                return self._stop()

    def _signal_all(self, number: int) -> None:
        for worker in self._workers:
            worker.send_signal(number)

    def _stop(self) -> int:
        until = time.monotonic() + self._patience
        while any(worker.exit_code() is None for worker in self._workers):
            rest = until - time.monotonic()
            if rest <= 0:
                LOG.error("%s: some have not ended after %.0f s and are killed", self._kind, self._patience)
                self._signal_all(signal.SIGKILL)
                rest = _MARGIN
            _next_signal(rest)
        orderly = (0, -signal.SIGTERM)  # the latter if it was about to start
        return 0 if all(worker.exit_code() in orderly for worker in self._workers) else 1


def _next_signal(seconds: float | None) -> int:
    """Return the next signal; 0 if there was none in time."""
    if seconds is None:
        return signal.sigwaitinfo(_SIGNALS).si_signo
    received = signal.sigtimedwait(_SIGNALS, seconds)
    return received.si_signo if received else 0


def _become_worker(supervisor: int) -> None:
    """Prepare the new process: the end of the supervisor is a SIGTERM, and an early SIGHUP ends nothing."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != supervisor:  # it has ended before
        os._exit(1)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
