"""The conductor's client: finds the owner of a node on the hash ring, rings it, asks it."""

import time
from typing import Any

from oslo_config import cfg
from oslo_log import log

from ingot.common import context, errors, hash_ring
from ingot.db import conductors, records
from ingot.db.engine import Database
from ingot.rpcapi import methods, releases, sharing, transport, wire

LOG = log.getLogger(__name__)


class ConductorClient:
    """What the API (and a conductor that talks to another one) uses.

    Nodes are given as records with uuid, conductor_group and driver: that is what the ring needs.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, bus: transport.Transport) -> None:
        self._conf = conf
        self._db = db
        self._bus = bus
        self._timeout = conf.conductor.heartbeat_timeout
        self._cap = methods.RPC_VERSION
        self._cap_read_at = float("-inf")
        self._rings = hash_ring.Rings(
            lambda: [hash_ring.Member(*row) for row in conductors.ring_members(db, self._timeout)],
            time.monotonic,
            conf.hash_ring_reset_interval,
            conf.hash_partition_exponent,
        )
        self.lost_bells = 0

    def owner(self, node: records.Record) -> str | None:
        """The hostname of the conductor that owns a node; None if no online one of its group has its driver enabled."""
        try:
            return self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return None

    def _required_owner(self, node: records.Record) -> str:
        """As :meth:`owner`, for who cannot do without.

        :raises ServiceUnavailable: there was one until lately.
        :raises NoConductor: there is none.
        """
        if (host := self.owner(node)) is None:
            conductors.raise_if_silent(self._db, node.driver, node.conductor_group)
            raise errors.NoConductor(driver=node.driver, group=node.conductor_group)
        return host

    def advance(self, ctx: context.RequestContext, node: records.Record, why: str) -> None:
        """Rings the owner's bell: look at this node now. Nothing is lost if it is not heard, the sweep comes by.

        :param why: what happened, for the log: ``deploy``, ``heartbeat``, ``abort`` ...
        """
        try:
            host = self._required_owner(node)
            self._bus.cast(host, "advance", self._version("advance"), ctx, {"node_uuid": node.uuid, "why": why})
        except (errors.ServiceUnavailable, errors.NoConductor) as exc:
            self.lost_bells += 1
            LOG.warning("Bell for node %s (%s) not rung, the sweep will find it: %s", node.uuid, why, exc)

    def allocate(self, ctx: context.RequestContext, allocation_uuid: str) -> None:
        """Rings a conductor's bell: an allocation waits for a node. Nothing is lost if it is not heard."""
        method = "process_allocation"
        try:
            version = self._version(method)
            host = sharing.chosen(allocation_uuid, sharing.hosts(self._db, self._timeout, method))
            if host is not None:
                self._bus.cast(host, method, version, ctx, {"allocation_uuid": allocation_uuid})
        except errors.ServiceUnavailable as exc:
            self.lost_bells += 1
            LOG.warning("Bell for allocation %s not rung, a sweep will find it: %s", allocation_uuid, exc)

    def call(self, ctx: context.RequestContext, node: records.Record, method: str, **args: Any) -> Any:
        """Asks the owner of a node and waits for the answer.

        :param method: one of :data:`methods.METHODS` that answers.
        :raises ServiceUnavailable: the owner did not answer; its death may not have been noticed yet.
        :raises NoConductor: no online conductor of the node's group has its driver enabled.
        :raises IngotError: whatever the method raised.
        """
        return self.call_host(ctx, self._required_owner(node), method, node_uuid=node.uuid, **args)

    def call_host(self, ctx: context.RequestContext, host: str, method: str, **args: Any) -> Any:
        """Asks a conductor by its hostname and waits for the answer; errors as in :meth:`call`."""
        return wire.unpack(self._bus.call(host, method, self._version(method), ctx, args))

    def _version(self, method: str) -> str:
        """The highest version that every conductor serves that may be asked.

        :raises ServiceUnavailable: conductors that are too old for the method are online.
        """
        since, capped = methods.METHODS[method].since, self._capped()
        if methods.version_tuple(since) > methods.version_tuple(capped):
            raise errors.ServiceUnavailable(
                what=f"RPC method {method}", reason=f"it needs RPC {since}, conductors with {capped} are online"
            )
        return capped

    def _capped(self) -> str:
        """The highest version that every online conductor serves, or the pinned release's."""
        if (pinned := releases.pinned(self._conf)) is not None:
            return pinned.rpc
        if time.monotonic() - self._cap_read_at > self._conf.hash_ring_reset_interval:
            online = [one.rpc_version for one in conductors.versions(self._db, self._timeout)]
            self._cap = min([*online, methods.RPC_VERSION], key=methods.version_tuple)
            self._cap_read_at = time.monotonic()
        return self._cap
