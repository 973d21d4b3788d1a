"""Ensures that a conductor's name has one process: two would take each other's locks for their own, left over from a
process before, and repeat each other's steps."""

import os
import time
from pathlib import Path

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors
from ingot.db import conductors
from ingot.db.engine import Database

LOG = log.getLogger(__name__)

_PROC = Path("/proc")
_ENDED = ("Z", "X")
_PAUSE = 0.5


def identify_process(pid: int) -> str:
    """Return an identity of a process that no other has or had: the host's boot, the namespace of process ids, the id
    in it, and the moment of its start. Those that the operating system does not know are empty."""
    return " ".join((*_read_namespace(), str(pid), _read_start(pid)))


def _read_namespace() -> tuple[str, str]:
    """Return boot and namespace: within them, a process id means the same."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return boot, os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return "", ""


def _read_start(pid: int) -> str:
    """Return when a process was started, in ticks since the boot; empty if there is none that still runs."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    state, *rest = stat.rpartition(")")[2].split()  # its name, in brackets, may have brackets and blanks
    return "" if state in _ENDED else rest[18]


def is_running(identity: str | None) -> bool | None:
    """Return whether a process runs, as :func:`identify_process` named it; None: that cannot be seen from here."""
    *where, pid, started = (identity or "   ").split(" ")
    if not all((*where, started)) or tuple(where) != _read_namespace():
        return None
    return _read_start(int(pid)) == started


def check(db: Database, conf: cfg.ConfigOpts) -> None:
    """Check that the name ``[DEFAULT] host`` is free, before anything is done under it.

    A conductor that was killed here does not delay the next one; of one that was killed elsewhere (another container,
    or before a reboot) it takes two of its heartbeats, or ``heartbeat_timeout`` since its last one, to be sure.

    :raises ConfigurationError: a conductor of this name runs.
    """
    other = find_registered(db, conf)
    if other is None or other.process == identify_process(os.getpid()):
        return
    seen = is_running(other.process)
    if seen is None:
        seen = _has_new_heartbeat(db, conf, other)
    if seen:
        raise errors.ConfigurationError(
            option="[DEFAULT] host",
            value=conf.host,
            allowed=f"A conductor of this name works already (process {other.process or 'unknown'!r}: boot id, "
            "namespace, process id, start): stop it, or give each conductor a name of its own.",
        )


def find_registered(db: Database, conf: cfg.ConfigOpts) -> conductors.Conductor | None:
    """Return the conductor that has the name, if it did not end in order and may be alive."""
    try:
        found = conductors.get(db, conf.host, conf.conductor.heartbeat_timeout)
    except errors.NotFound:
        return None
    return found if found.alive else None


def _has_new_heartbeat(db: Database, conf: cfg.ConfigOpts, other: conductors.Conductor) -> bool:
    until = time.monotonic() + 2 * conf.conductor.heartbeat_interval + _PAUSE
    LOG.info("A conductor %s was heard a moment ago; this one waits to see whether it is alive", conf.host)
    while time.monotonic() < until:
        time.sleep(_PAUSE)
        now = find_registered(db, conf)
        if now is None:
            return False
        if now.heartbeat_at != other.heartbeat_at:
            return True
    return False
