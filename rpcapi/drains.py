"""Draining conductors: how each stands, what would move if one left, and when that is refused.

The command ``ingot-conductor drain`` and the API say the same of it.
"""

import time
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from oslo_config import cfg

from ingot.common import errors
from ingot.db import conductors, node_lists
from ingot.db.engine import Database
from ingot.rpcapi import versions
from ingot.rpcapi.client import Rings

_SINCE = "1.1"
"""RPC version of the first release whose conductors can be drained."""

DRAINING = "draining"


class Standing(NamedTuple):
    """How a conductor stands.

    :param state: ``online``, ``offline``, ``draining``, ``drained``, or ``drained, offline``.
    :param locked: how many nodes it has locked.
    """

    conductor: conductors.Conductor
    state: str
    locked: int


def list_all(db: Database, timeout: float) -> list[Standing]:
    """Return all conductors that ever registered, by hostname.

    :param timeout: seconds without heartbeat after which a conductor counts as offline.
    """
    locks = Counter(str(node.reservation) for node in node_lists.list_locked(db))
    found = conductors.list_all(db, timeout)
    return [Standing(one, _describe(one, locks[one.hostname]), locks[one.hostname]) for one in found]


def _describe(conductor: conductors.Conductor, locked: int) -> str:
    if conductor.drain is None:
        return "online" if conductor.alive else "offline"
    if not conductor.alive:
        return "drained, offline"
    return "drained" if conductor.drain == conductors.DRAIN_FOLLOWED and not locked else DRAINING


def refuse_old(db: Database, timeout: float, chosen: Collection[str]) -> None:
    """Refuse to drain conductors of a release that knows nothing of it.

    :raises Conflict: one of them is.
    """
    for one in conductors.list_all(db, timeout):
        old = versions.version_tuple(one.rpc_version) < versions.version_tuple(_SINCE)
        if one.hostname in chosen and one.alive and old:
            raise errors.Conflict(
                reason=f"Conductor {one.hostname} runs release {one.release}, which cannot be drained; stop it instead."
            )


def refuse_orphans(db: Database, timeout: float, chosen: Collection[str], force: str) -> None:
    """Refuse to leave nodes without a conductor that serves them.

    :param force: how it is done nevertheless, for the message.
    :raises Conflict: some would be.
    """
    members = conductors.ring_members(db, timeout)
    lost = {(group, driver) for host, group, driver in members if host in chosen}
    lost -= {(group, driver) for host, group, driver in members if host not in chosen}
    orphans = Counter((node.conductor_group, node.driver) for node in node_lists.list_ring_keys(db))
    left = [
        f"{orphans[group, driver]} nodes of driver {driver} in conductor group '{group}'"
        for group, driver in sorted(lost)
        if orphans[group, driver]
    ]
    if left:
        raise errors.Conflict(reason=f"No other conductor would serve {'; '.join(left)}. Start one, or {force}.")


class Leaving(NamedTuple):
    """What happens to the nodes of a conductor that leaves the hash ring.

    :param nodes: how many it owns now.
    :param moves: how many of them each other conductor gets, by hostname.
    :param orphans: how many no conductor would serve.
    :param busy: how many it has locked: it finishes the steps that run.
    """

    nodes: int
    moves: dict[str, int]
    orphans: int
    busy: int


def preview(db: Database, conf: cfg.ConfigOpts, hostname: str) -> Leaving:
    """Return what would happen if a conductor left.

    :raises NotFound: none of that name ever registered.
    """
    timeout = conf.conductor.heartbeat_timeout
    conductors.get(db, hostname, timeout)
    members = conductors.ring_members(db, timeout)
    groups = {member.conductor_group for member in members if member.hostname == hostname}
    now = _build_rings(conf, members)
    then = _build_rings(conf, [member for member in members if member.hostname != hostname])
    known = node_lists.list_ring_keys(db, groups=groups)
    owners = now.owners(known)
    owned = [node for node in known if owners[node.uuid] == hostname]
    heirs = Counter(then.owners(owned).values())
    orphans = heirs.pop(None, 0)
    busy = sum(node.reservation == hostname for node in node_lists.list_locked(db))
    return Leaving(len(owned), {str(heir): count for heir, count in sorted(heirs.items(), key=str)}, orphans, busy)


def _build_rings(conf: cfg.ConfigOpts, members: Collection[conductors.RingMember]) -> Rings:
    """Return the rings of some members, for ever."""
    return Rings(lambda: members, time.monotonic, float("inf"), conf.hash_partition_exponent)
