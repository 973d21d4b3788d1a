"""What a service says to its supervisor, systemd or Ingot's own (:mod:`ingot.common.workers`), and what it is given.

Source of the protocol: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3). Without a supervisor nothing happens.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from oslo_log import log

from ingot.common import errors, workers

LOG = log.getLogger(__name__)

_FIRST_DESCRIPTOR = 3
"""Of the sockets that systemd gives (SD_LISTEN_FDS_START)."""

_SIGNS_PER_LIMIT = 3

Parts = Mapping[str, Callable[[], float]]
"""Parts of a service that must turn, by name: each returns when it did so last, or is to do so next, by the monotonic
clock."""


def tell(state: str) -> None:
    """Tell the supervisor a state, such as :data:`ingot.common.workers.READY`."""
    number = os.environ.get(workers.ANSWERS)
    if number is None:
        workers.tell_systemd(state)
        return
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(number))) as answers:
        answers.setblocking(False)
        answers.send(state.encode())


@contextlib.contextmanager
def announce_reload() -> Iterator[None]:
    """Tell the supervisor that files are read again, and when that is over."""
    tell(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")
    try:
        yield
    finally:
        tell(workers.READY)


def wait(stopped: threading.Event, parts: Parts) -> None:
    """Say that the service is ready, then show that its parts live until it is to stop.

    A part that does not turn any more within the supervisor's limit has the service killed and started again.
    """
    tell(workers.READY)
    limit = workers.read_watchdog()
    stuck: list[str] = []
    while not stopped.wait(limit and limit / _SIGNS_PER_LIMIT):
        before, stuck = stuck, list_stuck(parts, limit or 0)
        if not stuck:
            tell(workers.ALIVE)
        elif stuck != before:
            LOG.critical("For %g s there was no keepalive of: %s. The supervisor ends it", limit, ", ".join(stuck))
    tell(workers.STOPPING)


def list_stuck(parts: Parts, limit: float) -> list[str]:
    """Return the names of the parts that have not turned for some seconds, or are late by as many."""
    now = time.monotonic()
    return [name for name, moment in parts.items() if now - moment() > limit]


def take_socket() -> socket.socket | None:
    """Return the socket that systemd has opened for this service; None if there is none.

    :raises ConfigurationError: there are several, or it is none that listens.
    """
    pid, count = os.environ.pop(workers.LISTEN_PID, ""), os.environ.pop(workers.LISTEN_FDS, "")
    os.environ.pop(workers.LISTEN_FDNAMES, None)
    if pid != str(os.getpid()) or not count.isdecimal() or count == "0":
        return None
    for number in range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + int(count)):
        with contextlib.suppress(OSError):  # it is not open
            os.set_inheritable(number, False)
    with contextlib.suppress(OSError):  # a pipe, or a file
        given = socket.socket(fileno=_FIRST_DESCRIPTOR)
        if count == "1" and given.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return given
    raise errors.ConfigurationError(
        option="The unit of the socket",
        value=f"{count} sockets" if count != "1" else os.readlink(f"/proc/self/fd/{_FIRST_DESCRIPTOR}"),
        allowed="Ingot takes one socket that listens: one ListenStream=, and Accept=no.",
    )
