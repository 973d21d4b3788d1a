"""Several processes of one service on one host, and a supervisor that keeps them running.

A service that is to have several becomes their supervisor when it has checked what it can be started with. It replaces
its program by this file, which imports nothing of Ingot: 12 MiB instead of a service's 80. Logs are written by services
only: one that is started says for which it comes, and the supervisor says what happens on standard error.

To systemd the supervisor speaks for all of them (sd_notify(3)). It is ready when one worker is and each other has been,
or has ended: that is started again, which is no reason to stop those that work. It kills a worker that has sent no
keepalive in time, which is then started again. A configuration that is to be corrected ends it before it is ready.
"""

import contextlib
import ctypes
import functools
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

TITLE, BEFORE = "INGOT_WORKER", "INGOT_WORKER_BEFORE"
"""Environment variables of a worker: what it is, and what became of the one before it."""

ANSWERS = "INGOT_WORKER_ANSWERS"
"""Environment variable of a worker: the descriptor of a socket on which it says that it is ready, and that it lives."""

NOTIFY, WATCHDOG, WATCHDOG_PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"
"""Environment variables of systemd: where it listens, and how often a process must show that it lives."""

LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"
"""Environment variables of systemd, for a process that is given sockets."""

READY, ALIVE, STOPPING = "READY=1", "WATCHDOG=1", "STOPPING=1"
"""What systemd understands (sd_notify(3))."""

_TO_CORRECT = os.EX_CONFIG
"""The exit code of a worker whose configuration is to be corrected, which starting again does not."""

_OF_SUPERVISOR = (NOTIFY, WATCHDOG_PID, LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES)
_LONGEST_MESSAGE = 4096
_READY_PAUSE = 0.2
"""Seconds between two looks at whether all workers are ready."""

_STOPS = (signal.SIGTERM, signal.SIGINT)
_SIGNALS = (*_STOPS, signal.SIGHUP, signal.SIGCHLD)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
"""Seconds before a worker that ended is started again: twice as long after each time, until it has run for a while."""

_A_WHILE = 60.0
_MARGIN = 30.0
"""Seconds that workers have to end besides the limits of their own."""

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # <sys/prctl.h>
_LIBC = ctypes.CDLL(None)

_SO_ATTACH_FILTER = 26  # <asm-generic/socket.h>
_DROP_SYN = ((0x30, 0, 0, 13), (0x45, 0, 1, 2), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))
"""A filter of packets: load the flags of TCP; if one is SYN, take no byte, otherwise all."""


class Shared(NamedTuple):
    """A socket that workers share.

    :param listener: its descriptor.
    :param lasts: it is systemd's: those who connect while the service stops wait for the next one.
    """

    listener: int
    lasts: bool = False


def supervise(
    kind: str,
    environments: Mapping[str, Mapping[str, str]],
    command: Sequence[str],
    patience: float,
    shared: Shared | None = None,
) -> NoReturn:
    """Become the supervisor of some workers: this process keeps nothing but its id and its environment.

    Its exit code is 0 if they end in order after SIGTERM or SIGINT. SIGHUP is passed on.

    :param kind: what they are.
    :param environments: what each has in its environment, by name. As a source of options it is stronger than files.
    :param command: starts one of them.
    :param patience: seconds within which one ends that is to end.
    :param shared: a socket that they share. Unless it lasts, no connection may begin when they stop.
    """
    listener = shared and shared.listener
    for name in os.listdir("/proc/self/fd"):  # a database's driver in C leaves its sockets to the program that follows
        with contextlib.suppress(OSError):  # the list's own
            os.set_inheritable(int(name), int(name) in (0, 1, 2, listener))
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # they wait until they are read
    given = json.dumps([kind, environments, list(command), patience, shared])
    os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, given])  # noqa: S606 - it is this file


def turn_away(listener: socket.socket) -> None:
    """Let no new connection begin, in any process that shares the socket. Those that have begun can be taken.

    A socket that is closed while clients connect would reset those that the kernel has let in already.
    """
    if listener.family == socket.AF_UNIX:
        pathlib.Path(listener.getsockname()).unlink(missing_ok=True)
        return
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _DROP_SYN))
    with contextlib.suppress(OSError):  # the kernel knows no filters
        program = struct.pack("HL", len(_DROP_SYN), ctypes.addressof(code))
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def tell_systemd(state: str) -> None:
    """Send a state, such as ``READY=1``, to what has started this process; without systemd nothing happens."""
    address = os.environ.get(NOTIFY, "")
    if not address:
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        sender.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


def read_watchdog() -> float | None:
    """Return the seconds within which this process must show systemd that it lives; None: it need not."""
    micros, pid = os.environ.get(WATCHDOG, ""), os.environ.get(WATCHDOG_PID, str(os.getpid()))
    return int(micros) / 1e6 or None if micros.isdecimal() and pid == str(os.getpid()) else None


class _Worker:
    """One of them, in one process after the other.

    :param title: what it is, for the log.
    :param environment: what it has more than this process.
    :param files: descriptors of this process that it shares.
    :ivar is_ready: whether it has said so, in any of its processes.
    :ivar code: the exit code of its last process that has ended, or that could not be started; None: there is none.
    """

    def __init__(
        self, title: str, command: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
    ) -> None:
        self.is_ready = False
        self.code: int | None = None
        self._answers: socket.socket | None = None
        self._heard_at: float | None = None
        self._title = title
        self._command = command
        self._environment = {**environment, TITLE: title}
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
            self.code = code
            self._put_off(now, f"ended with {code} after {now - self._started_at:.0f} s")
        if now < self._starts_at:
            return self._starts_at - now
        self._started_at, self._heard_at = now, None
        try:
            self._process = self._start()
        except (OSError, subprocess.SubprocessError) as exc:  # no memory, no process, a file that is being replaced
            self.code = os.EX_OSERR
            self._put_off(now, f"could not be started ({exc})")
            return self._pause
        return None

    def _start(self) -> "subprocess.Popen[bytes]":
        if self._answers is not None:
            self._answers.close()
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._answers.setblocking(False)
        inherited = {name: value for name, value in os.environ.items() if name not in _OF_SUPERVISOR}
        with theirs:
            return subprocess.Popen(  # noqa: S603 - the command that this process was started with
                self._command,
                stdin=subprocess.DEVNULL,
                env={**inherited, **self._environment, ANSWERS: str(theirs.fileno())},
                pass_fds=(*self._files, theirs.fileno()),
                preexec_fn=functools.partial(_become_worker, os.getpid()),
            )

    def hear(self, now: float, silence: float | None) -> None:
        """Read what it says, and kill it if it was ready and has said nothing since then.

        :param silence: seconds for which it may say nothing; None: for ever.
        """
        if self._process is None or self._answers is None:
            return
        with contextlib.suppress(OSError):  # that is all
            while state := self._answers.recv(_LONGEST_MESSAGE):
                self.is_ready = self.is_ready or READY.encode() in state.splitlines()
                self._heard_at = now
        if silence is not None and self._heard_at is not None and now - self._heard_at > silence:
            _tell(f"{self._title} has sent no keepalive for {now - self._heard_at:.0f} s and is killed")
            self._process.kill()
            self._heard_at = None

    def _put_off(self, now: float, end: str) -> None:
        """Note the end of its process, or why there is none, and when the next one starts."""
        ran = now - self._started_at
        self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE) if ran < _A_WHILE else _FIRST_PAUSE
        self._process, self._starts_at = None, now + self._pause
        what = f"{self._title} {end}; it starts again in {self._pause:.0f} s"
        self._environment[BEFORE] = what
        _tell(what)

    def send_signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def exit_code(self) -> int | None:
        """Return the exit code of the last process; None as long as it runs."""
        return 0 if self._process is None else self._process.poll()


class _Supervisor:
    """Keeps processes running until a signal stops it; parameters as of :func:`supervise`."""

    def __init__(
        self,
        kind: str,
        environments: Mapping[str, Mapping[str, str]],
        command: Sequence[str],
        patience: float,
        shared: Sequence[int] | None,
    ) -> None:
        _LIBC.prctl(_PR_SET_NAME, pathlib.Path(command[0]).name.encode())
        self._kind = kind
        listener, lasts = shared or (None, False)
        self._lasts = bool(lasts)
        self._listener = None if listener is None else socket.socket(fileno=listener)
        files = [] if listener is None else [listener]
        self._workers = [_Worker(f"{kind} {name}", command, own, files) for name, own in environments.items()]
        self._patience = patience + _MARGIN
        self._silence = read_watchdog()
        self._is_ready = False

    def run(self) -> int:
        """Return the exit code, when all have ended."""
        while True:
            now = time.monotonic()
            pauses = [*(worker.care(now) for worker in self._workers), self._report(now)]
            if not self._is_ready and any(worker.code == _TO_CORRECT for worker in self._workers):
                self._signal_all(signal.SIGTERM)
                self._stop()
                return _TO_CORRECT
            number = _next_signal(min((pause for pause in pauses if pause is not None), default=None))
            if number in _STOPS and self._listener is not None:
                if not self._lasts:
                    turn_away(self._listener)
                self._listener.close()
            if number in (*_STOPS, signal.SIGHUP):
                self._signal_all(number)
            if number in _STOPS:
                return self._stop()

    def _report(self, now: float) -> float | None:
        """Hear the workers, and tell systemd that they are ready, and that this process lives.

        :returns: seconds after which it is to be done again; None: never.
        """
        for worker in self._workers:
            worker.hear(now, self._silence)
        ready = sum(worker.is_ready for worker in self._workers)
        if not self._is_ready and ready and all(worker.is_ready or worker.code is not None for worker in self._workers):
            self._is_ready = True
            tell_systemd(f"{READY}\nSTATUS={self._kind}: {ready} of {len(self._workers)} run")
        if self._silence is not None:
            tell_systemd(ALIVE)
        limits = (_READY_PAUSE if not self._is_ready else None, self._silence and self._silence / 3)
        return min((limit for limit in limits if limit), default=None)

    def _signal_all(self, number: int) -> None:
        for worker in self._workers:
            worker.send_signal(number)

    def _stop(self) -> int:
        tell_systemd(STOPPING)
        until = time.monotonic() + self._patience
        while any(worker.exit_code() is None for worker in self._workers):
            rest = until - time.monotonic()
            if rest <= 0:
                _tell(f"{self._kind}: some have not ended after {self._patience:.0f} s and are killed")
                self._signal_all(signal.SIGKILL)
                rest = _MARGIN
            _next_signal(rest)
        orderly = (0, -signal.SIGTERM)  # the latter if it was about to start
        return 0 if all(worker.exit_code() in orderly for worker in self._workers) else 1


def _tell(what: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"ingot: {what}\n")


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


if __name__ == "__main__":
    sys.exit(_Supervisor(*json.loads(sys.argv[1])).run())
