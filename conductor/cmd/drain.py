"""What ``ingot-conductor`` does besides running: has conductors hand over their nodes, and lists them.

A conductor that is drained stays online to finish what runs and begins nothing. That is kept in the database, so it
lasts until it is undrained, however often the conductor is started.
"""

import time
from collections import Counter
from collections.abc import Sequence

from oslo_config import cfg

from ingot.common import errors
from ingot.conductor.cmd import workers
from ingot.db import conductors, node_lists
from ingot.db.engine import Database
from ingot.rpcapi import versions

_PAUSE = 0.5
_SINCE = "1.1"
"""RPC version of the first release whose conductors can be drained."""

OPTIONS: Sequence[cfg.Opt] = (
    cfg.StrOpt(
        "command",
        positional=True,
        required=False,
        default="run",
        choices=["run", "drain", "undrain", "list"],
        help="run (default): be a conductor. drain, undrain: have conductors hand over all their nodes, and to take "
        "nodes again. list: show all conductors.",
    ),
    cfg.MultiStrOpt(
        "conductors",
        positional=True,
        default=[],
        help="For drain and undrain: names of conductors; without, those that this configuration runs.",
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
    _refuse_old(db, conf, chosen)
    if not conf.force:
        _refuse_orphans(db, conf, chosen)
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
    locks = _count_locks(db)
    rows = [("NAME", "GROUP", "RELEASE", "STATE", "LOCKED NODES")]
    for one in _list_all(db, conf):
        group, locked = one.conductor_group or "-", locks[one.hostname]
        rows.append((one.hostname, group, one.release, _state(one, locked), str(locked)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


COMMANDS = {"drain": drain, "undrain": undrain, "list": show}


def _list_chosen(conf: cfg.ConfigOpts) -> list[str]:
    return list(conf.conductors) or workers.names(conf)


def _list_all(db: Database, conf: cfg.ConfigOpts) -> list[conductors.Conductor]:
    return conductors.list_all(db, conf.conductor.heartbeat_timeout)


def _count_locks(db: Database) -> Counter[str]:
    return Counter(str(node.reservation) for node in node_lists.list_locked(db))


def _state(conductor: conductors.Conductor, locked: int) -> str:
    if conductor.drain is None:
        return "online" if conductor.alive else "offline"
    if not conductor.alive:
        return "drained, offline"
    return "drained" if conductor.drain == conductors.DRAIN_FOLLOWED and not locked else "draining"


def _refuse_old(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> None:
    for one in _list_all(db, conf):
        old = versions.version_tuple(one.rpc_version) < versions.version_tuple(_SINCE)
        if one.hostname in chosen and one.alive and old:
            raise errors.Conflict(
                reason=f"Conductor {one.hostname} runs release {one.release}, which cannot be drained; stop it instead."
            )


def _refuse_orphans(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> None:
    """Refuse to leave nodes without a conductor that serves them."""
    members = conductors.ring_members(db, conf.conductor.heartbeat_timeout)
    lost = {(group, driver) for host, group, driver in members if host in chosen}
    lost -= {(group, driver) for host, group, driver in members if host not in chosen}
    orphans = Counter((node.conductor_group, node.driver) for node in node_lists.list_ring_keys(db))
    left = [
        f"{orphans[pair]} nodes of driver {pair[1]} in conductor group '{pair[0]}'"
        for pair in sorted(lost)
        if orphans[pair]
    ]
    if left:
        raise errors.Conflict(
            reason=f"No other conductor would serve {'; '.join(left)}. Start one, or drain with --force."
        )


def _wait(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> None:
    until = time.monotonic() + conf.wait
    while busy := _list_busy(db, conf, chosen):
        if time.monotonic() > until:
            working = "; ".join(f"{hostname} ({locked} nodes locked)" for hostname, locked in busy.items())
            raise errors.Conflict(reason=f"Not finished after {conf.wait} s: {working}. They stay drained.")
        time.sleep(_PAUSE)
    print("They have finished all work.")


def _list_busy(db: Database, conf: cfg.ConfigOpts, chosen: Sequence[str]) -> dict[str, int]:
    """Return those that are online and have not finished, each with how many nodes it has locked."""
    locks = _count_locks(db)
    return {
        one.hostname: locks[one.hostname]
        for one in _list_all(db, conf)
        if one.hostname in chosen and _state(one, locks[one.hostname]) == "draining"
    }
