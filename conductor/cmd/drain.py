"""What ``ingot-conductor`` does besides running: has conductors hand over their nodes, and lists them.

A conductor that is drained stays online to finish what runs and begins nothing. That is kept in the database, so it
lasts until it is undrained, however often the conductor is started.
"""

import time
from collections.abc import Sequence

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
        "wait", min=0, default=0, help="For drain: seconds to wait until they have finished all work; then it fails."
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
        _wait(db, conf, chosen)


def undrain(db: Database, conf: cfg.ConfigOpts) -> None:
    """Let conductors come back to the rings.

    :raises NotFound: there is none of that name.
    """
    for hostname in _list_chosen(conf):
        conductors.undrain(db, hostname)
        print(f"{hostname}: takes nodes again within {conf.conductor.heartbeat_interval} s, if it runs")


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


def _wait(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> None:
    until = time.monotonic() + conf.wait
    while busy := [
        f"{one.hostname} ({locked} nodes locked)"
        for one, state, locked in drains.list_all(db, conf.conductor.heartbeat_timeout)
        if one.hostname in chosen and state == drains.DRAINING
    ]:
        if time.monotonic() > until:
            raise errors.Conflict(reason=f"Not finished after {conf.wait} s: {'; '.join(busy)}. They stay drained.")
        time.sleep(_PAUSE)
    print("They have finished all work.")
