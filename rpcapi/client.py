"""The conductors' client: finds the owner of a node on the hash ring, wakes it up, asks it.

Members of a ring are the online conductors of a conductor group that have the node's driver enabled, a hardware type
or a classic driver; the key is the node's uuid. Rings are built from rows of the database and are cheap to keep:
rebuilding happens only when the membership differs from what it was.
"""

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log
from tooz import hashring

from ingot.common import context, errors
from ingot.db import conductors, models
from ingot.db.engine import Database
from ingot.rpcapi import transport, versions

LOG = log.getLogger(__name__)


class Rings:
    """The rings of all (conductor group, driver) pairs.

    :param members: returns the members that are online now; called at most every ``reset_interval`` seconds.
    :param clock: monotonic seconds.
    :param reset_interval: seconds for which an answer of ``members`` is used.
    :param partition_exponent: 2**n points per member; more spread better and build slower.
    """

    def __init__(
        self,
        members: Callable[[], Iterable[conductors.RingMember]],
        clock: Callable[[], float],
        reset_interval: float,
        partition_exponent: int,
    ) -> None:
        self._members = members
        self._clock = clock
        self._reset_interval = reset_interval
        self._partitions = 2**partition_exponent
        self._lock = threading.Lock()
        self._known: frozenset[conductors.RingMember] | None = None
        self._rings: dict[tuple[str, str], hashring.HashRing] = {}
        self._read_at = float("-inf")

    def owner(self, node_uuid: str, group: str, driver: str) -> str:
        """The hostname of the conductor that owns a node.

        :raises NoConductor: no online conductor of the group has the driver enabled.
        """
        ring = self._current().get((group, driver))
        if ring is None:  # perhaps somebody joined since the last look
            ring = self._current(forced=True).get((group, driver))
        if ring is None:
            raise errors.NoConductor(driver=driver, group=group)
        return next(iter(ring.get_nodes(node_uuid.encode(), replicas=1)))

    def forget(self) -> None:
        """Look at the membership again at the next question."""
        with self._lock:
            self._read_at = float("-inf")

    def _current(self, forced: bool = False) -> dict[tuple[str, str], hashring.HashRing]:
        with self._lock:
            if forced or self._clock() - self._read_at >= self._reset_interval:
                members = frozenset(self._members())
                if members != self._known:
                    self._rings = self._build(members)
                    self._known = members
                self._read_at = self._clock()
            return self._rings

    def _build(self, members: frozenset[conductors.RingMember]) -> dict[tuple[str, str], hashring.HashRing]:
        hosts: dict[tuple[str, str], set[str]] = {}
        for member in members:
            hosts.setdefault((member.conductor_group, member.driver), set()).add(member.hostname)
        return {key: hashring.HashRing(sorted(names), partitions=self._partitions) for key, names in hosts.items()}


def hosts_serving(db: Database, timeout: float, method: str) -> list[str]:
    """The sorted hostnames of online conductors that serve a method.

    :param timeout: seconds of silence after which a conductor counts as dead.
    """
    needed = versions.version_tuple(versions.METHODS[method].since)
    online = conductors.list_versions(db, timeout)
    return sorted(one.hostname for one in online if versions.version_tuple(one.rpc_version) >= needed)


def choose_host(key: str, hostnames: Sequence[str]) -> str | None:
    """The one of some hosts that a piece of work is for; None if there are none."""
    return hostnames[zlib.crc32(key.encode()) % len(hostnames)] if hostnames else None


class ConductorClient:
    """What the API (and a conductor that talks to another one) uses.

    Nodes are given as records with uuid, conductor_group and driver: that is what the ring needs.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, bus: transport.Transport) -> None:
        self._conf = conf
        self._db = db
        self._bus = bus
        self._timeout = conf.conductor.heartbeat_timeout
        self._cap = versions.RPC_VERSION
        self._cap_read_at = float("-inf")
        self._rings = Rings(
            lambda: conductors.ring_members(db, self._timeout),
            time.monotonic,
            conf.hash_ring_reset_interval,
            conf.hash_partition_exponent,
        )
        self.lost_wakeups = 0

    def owner(self, node: models.Node) -> str | None:
        """The hostname of the conductor that owns a node; None if no online one of its group has its driver enabled."""
        try:
            return self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return None

    def _required_owner(self, node: models.Node) -> str:
        """As :meth:`owner`, for who cannot do without.

        :raises ServiceUnavailable: there was one until lately.
        :raises NoConductor: there is none.
        """
        if (host := self.owner(node)) is None:
            conductors.raise_if_lately_online(self._db, node.driver, node.conductor_group)
            raise errors.NoConductor(driver=node.driver, group=node.conductor_group)
        return host

    def notify(self, ctx: context.RequestContext, node: models.Node, why: str) -> None:
        """Rings the owner's bell: look at this node now. Nothing is lost if it is not heard, the sweep comes by.

        :param why: what happened, for the log: ``deploy``, ``heartbeat``, ``abort`` ...
        """
        try:
            host = self._required_owner(node)
            self._bus.cast(host, "advance", self._version("advance"), ctx, {"node_uuid": node.uuid, "why": why})
        except (errors.ServiceUnavailable, errors.NoConductor) as exc:
            self.lost_wakeups += 1
            LOG.warning("Bell for node %s (%s) not rung, the sweep will find it: %s", node.uuid, why, exc)

    def notify_of_allocation(self, ctx: context.RequestContext, allocation_uuid: str) -> None:
        """Rings a conductor's bell: an allocation waits for a node. Nothing is lost if it is not heard."""
        method = "process_allocation"
        try:
            version = self._version(method)
            host = choose_host(allocation_uuid, hosts_serving(self._db, self._timeout, method))
            if host is not None:
                self._bus.cast(host, method, version, ctx, {"allocation_uuid": allocation_uuid})
        except errors.ServiceUnavailable as exc:
            self.lost_wakeups += 1
            LOG.warning("Bell for allocation %s not rung, a sweep will find it: %s", allocation_uuid, exc)

    def call(self, ctx: context.RequestContext, node: models.Node, method: str, **args: Any) -> Any:
        """Asks the owner of a node and waits for the answer.

        :param method: one of :data:`versions.METHODS` that answers.
        :raises ServiceUnavailable: the owner did not answer; its death may not have been noticed yet.
        :raises NoConductor: no online conductor of the node's group has its driver enabled.
        :raises IngotError: whatever the method raised.
        """
        return self.call_host(ctx, self._required_owner(node), method, node_uuid=node.uuid, **args)

    def call_host(self, ctx: context.RequestContext, host: str, method: str, **args: Any) -> Any:
        """Asks a conductor by its hostname and waits for the answer; errors as in :meth:`call`."""
        return transport.unpack(self._bus.call(host, method, self._version(method), ctx, args))

    def _version(self, method: str) -> str:
        """The highest version that every conductor serves that may be asked.

        :raises ServiceUnavailable: conductors that are too old for the method are online.
        """
        since, capped = versions.METHODS[method].since, self._highest_version()
        if versions.version_tuple(since) > versions.version_tuple(capped):
            raise errors.ServiceUnavailable(
                what=f"RPC method {method}", reason=f"it needs RPC {since}, conductors with {capped} are online"
            )
        return capped

    def _highest_version(self) -> str:
        """The highest version that every online conductor serves, or the pinned release's."""
        if (pinned := versions.pinned_release(self._conf)) is not None:
            return pinned.rpc
        if time.monotonic() - self._cap_read_at > self._conf.hash_ring_reset_interval:
            online = [one.rpc_version for one in conductors.list_versions(self._db, self._timeout)]
            self._cap = min([*online, versions.RPC_VERSION], key=versions.version_tuple)
            self._cap_read_at = time.monotonic()
        return self._cap
