"""What ``ingot-conductor`` does besides running: has conductors hand over their nodes, and lists them.

A conductor that is drained stays online to finish what runs and begins nothing. That is kept in the database, so it
lasts until it is undrained, however often the conductor is started.
"""

import time
from collections.abc import Callable, Sequence

from oslo_config import cfg

from ingot.common import errors
from ingot.conductor.cmd import workers
from ingot.db import conductors
from ingot.db.engine import Database
from ingot.rpcapi import drains

_PAUSE = 0.5

OPTIONS: Sequence[cfg.Opt] = (
    cfg.StrOpt(
        "command",
        positional=True,
        required=False,
        default="run",
        choices=["run", "drain", "undrain", "list", "forget"],
        help="run (default): be a conductor. drain, undrain: have conductors hand over all their nodes, and take "
        "nodes again. list: show all conductors. forget: remove conductors that never come back.",
    ),
    cfg.MultiStrOpt(
        "conductors",
        positional=True,
        default=[],
        help="For drain, undrain and forget: names of conductors; without, those that this configuration runs. "
        "forget needs at least one.",
    ),
    cfg.IntOpt(
        "wait",
        min=0,
        default=0,
        help="Seconds to wait. For drain: until they have finished all work. For undrain: until all of them take "
        "nodes again. The command fails after that time.",
    ),
    cfg.BoolOpt("force", default=False, help="For drain: also if some nodes are then served by no conductor."),
)


def drain(db: Database, conf: cfg.ConfigOpts) -> None:
    """Take conductors off all rings.

    :raises IngotError: it cannot be done, or has not come to its end within the time to wait.
    """
    chosen = _list_chosen(conf)
    timeout = conf.conductor.heartbeat_timeout
    drains.refuse_old(db, timeout, chosen)
    if not conf.force:
        drains.refuse_orphans(db, timeout, chosen, "drain with --force")
    for hostname in chosen:
        conductors.drain(db, hostname)
        print(f"{hostname}: drained; it hands over its nodes")
    if conf.wait:
        failure = "Not finished after {wait} s: {left}. They stay drained."
        _wait(conf.wait, lambda: _list_busy(db, conf, chosen), failure)
        print("They have finished all work.")


def undrain(db: Database, conf: cfg.ConfigOpts) -> None:
    """Let conductors come back to the rings.

    :raises IngotError: there is none of that name, or one is not back within the time to wait.
    """
    chosen = _list_chosen(conf)
    for hostname in chosen:
        conductors.undrain(db, hostname)
        print(f"{hostname}: takes nodes again within {conf.conductor.heartbeat_interval} s, if it runs")
    if conf.wait:
        failure = "Not back after {wait} s: {left}. They stay undrained."
        _wait(conf.wait, lambda: _list_away(db, conf, chosen), failure)
        print("They take nodes.")


def show(db: Database, conf: cfg.ConfigOpts) -> None:
    """Print a line for each conductor."""
    rows = [("NAME", "GROUP", "RELEASE", "STATE", "LOCKED NODES")]
    for one, state, locked in drains.list_all(db, conf.conductor.heartbeat_timeout):
        rows.append((one.hostname, one.conductor_group or "-", one.release, state, str(locked)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def forget(db: Database, conf: cfg.ConfigOpts) -> None:
    """Remove the entries of conductors that are gone for good; what they had locked is taken over, or given back.

    :raises IngotError: there is none of that name, or it is online.
    """
    if not conf.conductors:
        raise errors.Invalid("Name the conductors that never come back: ingot-conductor forget NAME.")
    for hostname in conf.conductors:
        freed = conductors.forget(db, hostname, conf.conductor.heartbeat_timeout)
        print(f"{hostname}: forgotten; {freed} nodes were locked by it, and others go on with them")


COMMANDS = {"drain": drain, "undrain": undrain, "list": show, "forget": forget}


def _list_chosen(conf: cfg.ConfigOpts) -> list[str]:
    return list(conf.conductors) or workers.names(conf)


def _list_busy(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> list[str]:
    """Return which of these conductors have not finished."""
    return [
        f"{one.hostname} ({locked} nodes locked)"
        for one, state, locked in drains.list_all(db, conf.conductor.heartbeat_timeout)
        if one.hostname in chosen and state == drains.DRAINING
    ]


def _list_away(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> list[str]:
    """Return which of these conductors are on no ring."""
    timeout = conf.conductor.heartbeat_timeout
    members = {member.hostname for member in conductors.ring_members(db, timeout)}
    states = {one.hostname: state for one, state, _locked in drains.list_all(db, timeout)}
    return [f"{hostname} ({states[hostname]})" for hostname in chosen if hostname not in members]


def _wait(seconds: int, find_left: Callable[[], list[str]], failure: str) -> None:
    """Wait until no conductor is left.

    :param failure: what is said after that time, of ``wait`` seconds and ``left`` conductors.
    :raises Conflict: some are left.
    """
    until = time.monotonic() + seconds
    while left := find_left():
        if time.monotonic() > until:
            raise errors.Conflict(reason=failure.format(wait=seconds, left="; ".join(left)))
        time.sleep(_PAUSE)
