"""Several conductors on one host: a supervisor that runs each as a process of its own, under a name of its own."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Sequence

from oslo_config import cfg
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


def names(conf: cfg.ConfigOpts) -> list[str]:
    """Return the names of the conductors that a configuration runs: the first has the host's, as one alone has."""
    return [conf.host, *(f"{conf.host}-{number}" for number in range(2, conf.conductor.workers + 1))]


class _Worker:
    """One conductor, in one process after the other."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._command = command
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
        # Of all sources of options, the environment is stronger than files.
        own = {"OS_DEFAULT__HOST": self.name, "OS_CONDUCTOR__WORKERS": "1"}
        self._process = subprocess.Popen(  # noqa: S603 - the command that this process was started with
            self._command, stdin=subprocess.DEVNULL, env={**os.environ, **own}, preexec_fn=_become_worker
        )
        self._started_at = now
        LOG.info("Conductor %s runs as process %d", self.name, self._process.pid)
        return None

    def _put_off(self, now: float, code: int) -> None:
        ran = now - self._started_at
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE) if ran < _A_WHILE else _FIRST_PAUSE
        self._process, self._starts_at = None, now + self._pause
        LOG.error(
            "Conductor %s ended with %d after %.0f s; it starts again in %.0f s", self.name, code, ran, self._pause
        )

    def send_signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def exit_code(self) -> int | None:
        """Return the exit code of the last process; None as long as it runs."""
        return 0 if self._process is None else self._process.poll()


class Supervisor:
    """Keeps the conductors of a configuration running until a signal stops it.

    :param command: starts one of them; its name and number are in the environment.
    """

    def __init__(self, conf: cfg.ConfigOpts, command: Sequence[str]) -> None:
        self._workers = [_Worker(name, command) for name in names(conf)]
        limits = conf.conductor.graceful_shutdown_timeout + conf.hash_ring_reset_interval
        self._patience = limits + _MARGIN

    def run(self) -> int:
        """Return after SIGTERM or SIGINT, when all have ended: 0 if they did so in order. SIGHUP is passed on."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # they wait until they are read
        while True:
            now = time.monotonic()
            pauses = [worker.care(now) for worker in self._workers]
            number = _next_signal(min((pause for pause in pauses if pause is not None), default=None))
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
                LOG.error("Some conductors have not ended after %.0f s and are killed", self._patience)
                self._signal_all(signal.SIGKILL)
                rest = _MARGIN
            _next_signal(rest)
        return 0 if all(worker.exit_code() == 0 for worker in self._workers) else 1


def _next_signal(seconds: float | None) -> int:
    """Return the next signal; 0 if there was none in time."""
    if seconds is None:
        return signal.sigwaitinfo(_SIGNALS).si_signo
    received = signal.sigtimedwait(_SIGNALS, seconds)
    return received.si_signo if received else 0


def _become_worker() -> None:
    """Prepare the new process: the end of the supervisor is a SIGTERM, and an early SIGHUP ends nothing."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
