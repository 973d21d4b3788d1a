"""The conductors' client: finds the owner of a node on the hash ring, wakes it up, asks it.

Members of a ring are the online conductors of a conductor group that have the node's driver enabled, a hardware type
or a classic driver; the key is the node's uuid. Rings are built from rows of the database and are cheap to keep:
rebuilding happens only when the membership differs from what it was.
"""

import concurrent.futures as futures
import contextlib
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_log import log
from tooz import hashring

from ingot.common import context, errors, metrics, tracing
from ingot.common.json_types import Json
from ingot.db import conductors, models
from ingot.db.engine import Database
from ingot.rpcapi import transport, versions

LOG = log.getLogger(__name__)

_RingsByKey = dict[tuple[str, str], hashring.HashRing]  # by conductor group and driver

STALEST_S = 60
"""Seconds beyond the interval for which rings are used while a new read of the members is under way."""


_MOST_KNOWN = 100_000
"""Nodes whose owner is kept for one ring: 20 MiB."""


class Rings:
    """The rings of all (conductor group, driver) pairs.

    One thread at a time reads the members, and no lock is held meanwhile: with a database that is slow or frozen the
    others go on with the last rings, at most ``reset_interval + STALEST_S`` seconds after these were read. After that,
    and before anything was read, they wait for the read that is under way and get its outcome, be it an error.

    :param members: returns the members that are online now.
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
        self._last: tuple[frozenset[conductors.RingMember], _RingsByKey] = (frozenset(), {})
        self._read_at = float("-inf")
        self._reading: futures.Future[_RingsByKey] | None = None
        self._known: weakref.WeakKeyDictionary[hashring.HashRing, dict[str, str]] = weakref.WeakKeyDictionary()
        self._generation = 0  # a read that began in an earlier one is forgotten

    def owner(self, node_uuid: str, group: str, driver: str) -> str:
        """Return the hostname of the conductor that owns a node.

        :raises NoConductor: no online conductor of the group has the driver enabled.
        """
        ring = self._find((group, driver))
        if ring is None:
            raise errors.NoConductor(driver=driver, group=group)
        return _find_owner(ring, node_uuid)

    def owners(self, nodes: Iterable[models.Node]) -> dict[str, str | None]:
        """Return the hostnames of the conductors that own nodes, by the node's uuid; None for what has no owner.

        Each ring is looked for once: one that is not there is read again, and many nodes may have none.
        """
        rings: dict[tuple[str, str], hashring.HashRing | None] = {}
        found: dict[str, str | None] = {}
        for node in nodes:
            key = (node.conductor_group, node.driver)
            ring = rings[key] if key in rings else rings.setdefault(key, self._find(key))
            found[node.uuid] = None if ring is None else self._recall_owner(ring, node.uuid)
        return found

    def _recall_owner(self, ring: hashring.HashRing, node_uuid: str) -> str:
        """Return the owner of a node; lists of all nodes are asked for again and again, and rings rarely change."""
        known = self._known.setdefault(ring, {})
        owner = known.get(node_uuid)
        if owner is None:
            if len(known) >= _MOST_KNOWN:  # nodes that were deleted are among them
                known.clear()
            owner = known[node_uuid] = _find_owner(ring, node_uuid)
        return owner

    def _find(self, key: tuple[str, str]) -> hashring.HashRing | None:
        # Perhaps a conductor joined since the last read.
        return self._current().get(key) or self._current(forced=True).get(key)

    def groups_of(self, host: str) -> set[str]:
        """Return the conductor groups in which a host owns nodes."""

        def list_groups(rings: _RingsByKey) -> set[str]:
            return {group for (group, _driver), ring in rings.items() if host in ring.nodes}

        return list_groups(self._current()) or list_groups(self._current(forced=True))

    def forget(self) -> None:
        """Read the members anew at the next question, whichever read is under way."""
        with self._lock:
            self._generation += 1
            self._read_at, self._reading = float("-inf"), None

    def _current(self, forced: bool = False) -> _RingsByKey:
        with self._lock:
            moment = self._clock()
            age = moment - self._read_at
            reading = self._reading
            is_own = forced or (reading is None and age >= self._reset_interval)
            if not is_own and age < self._reset_interval + STALEST_S:
                return self._last[1]
            if is_own or reading is None:  # the latter only for type checkers
                reading = self._reading = futures.Future()
            generation = self._generation
        if is_own:
            self._read(reading, moment, generation)
        return reading.result()

    def _read(self, reading: "futures.Future[_RingsByKey]", moment: float, generation: int) -> None:
        try:
            members = frozenset(self._members())
            known, rings = self._last
            rings = rings if members == known else self._build(members)
        except BaseException as exc:
            self._end(reading)
            if isinstance(exc, Exception):
                reading.set_exception(exc)  # the one that waits for it first is this thread
                return
            reading.set_exception(errors.ServiceUnavailable(what="The hash ring", reason="its read was interrupted"))
            raise
        with self._lock:
            if self._generation == generation and moment >= self._read_at:  # forced reads overlap
                self._last, self._read_at = (members, rings), moment
        self._end(reading)
        reading.set_result(rings)

    def _end(self, reading: "futures.Future[_RingsByKey]") -> None:
        with self._lock:
            if self._reading is reading:
                self._reading = None

    def _build(self, members: frozenset[conductors.RingMember]) -> _RingsByKey:
        hosts: dict[tuple[str, str], set[str]] = {}
        for member in members:
            hosts.setdefault((member.conductor_group, member.driver), set()).add(member.hostname)
        return {key: hashring.HashRing(sorted(names), partitions=self._partitions) for key, names in hosts.items()}


def _find_owner(ring: hashring.HashRing, node_uuid: str) -> str:
    if len(ring.nodes) == 1:
        return str(next(iter(ring.nodes)))
    return str(next(iter(ring.get_nodes(node_uuid.encode(), replicas=1))))


def hosts_serving(db: Database, timeout: float, method: str) -> list[str]:
    """Return the sorted hostnames of online conductors that serve a method.

    :param timeout: seconds without heartbeat after which a conductor counts as dead.
    """
    online = conductors.list_versions(db, timeout)
    return sorted(one.hostname for one in online if versions.has_method(one.rpc_version, method))


def choose_host(key: str, hostnames: Sequence[str]) -> str | None:
    """Return the one of some hosts that a piece of work is for that belongs to no node; None if there are none.

    It is a hint, so that they do not all do the same at once. The database sees to it that it is done only once.
    """
    return hostnames[zlib.crc32(key.encode()) % len(hostnames)] if hostnames else None


_SLOT_S = 0.1
"""Seconds that a call waits for one of those before it to end."""

_PROBE_S = 5.0
"""Seconds after which one call finds out whether a conductor that did not answer does so again."""


class Patience:
    """Keeps a process from having all its threads wait for conductors that do not answer.

    :param most: how many calls may wait at a time.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slots = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._silent: dict[str, float] = {}  # by host, when one call may try again

    @contextlib.contextmanager
    def wait_for(self, host: str) -> Iterator[None]:
        """Let a call wait for a conductor.

        :raises ConductorAway: the conductor is known to be silent, too many calls wait already, or there was no answer.
        """
        with self._lock:
            now = self._clock()
            if self._silent.get(host, now) > now:
                raise errors.ConductorAway(what=f"Conductor {host}", reason="it has not answered lately")
            if host in self._silent:
                self._silent[host] = now + _PROBE_S  # this is the one call
        if not self._slots.acquire(timeout=_SLOT_S):
            raise errors.ConductorAway(what=f"Conductor {host}", reason="too many requests wait for conductors")
        try:
            yield
        except errors.ConductorAway:
            with self._lock:
                if host not in self._silent:
                    LOG.warning("Conductor %s does not answer; it is asked once in %.0f s", host, _PROBE_S)
                self._silent[host] = self._clock() + _PROBE_S
            raise
        finally:
            self._slots.release()
        if self._silent.pop(host, None) is not None:
            LOG.info("Conductor %s answers again", host)


_MOST_QUESTIONS = 16
"""Threads that ask several conductors at once; they begin when they are needed."""

_SENT, _LOST = map(metrics.WAKEUPS.labels, ("sent", "lost"))


class ConductorClient:
    """What the API (and a conductor that asks another one) uses.

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
        self._patience = Patience(max(1, conf.api.api_threads // 4))
        self._question_patience = Patience(_MOST_QUESTIONS)  # of its own: users' requests find their slots free
        self._questions = futures.ThreadPoolExecutor(_MOST_QUESTIONS, thread_name_prefix="questions")
        for method in versions.METHODS.keys() - versions.WAKEUPS.keys():
            metrics.RPC_CALLS.labels(method, "unanswered")  # so that the first one can be seen
        self.lost_wakeups = 0

    def bus_trouble(self) -> str | None:
        """Return why the last wake-up could not be sent; None: it was."""
        return self._bus.trouble

    @property
    def stays_inside(self) -> bool:
        """Whether conductors are in this process only, so that all that they write is written here."""
        return self._bus.stays_inside

    def owner(self, node: models.Node) -> str | None:
        """Return the hostname of the conductor that owns a node; None if no online one of its group has its driver."""
        try:
            return self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return None

    def owners(self, nodes: Iterable[models.Node]) -> dict[str, str | None]:
        """Return the owners of many nodes; see :meth:`Rings.owners`.

        :param nodes: need uuid, driver and conductor_group.
        """
        return self._rings.owners(nodes)

    def groups_of(self, host: str) -> set[str]:
        """Return the conductor groups in which a conductor owns nodes."""
        return self._rings.groups_of(host)

    def _required_owner(self, node: models.Node) -> str:
        """Return the owner as :meth:`owner` does, for requests that cannot do without.

        :raises ConductorAway: there was one until lately.
        :raises NoConductor: there is none.
        """
        if (host := self.owner(node)) is None:
            conductors.raise_if_lately_online(self._db, node.driver, node.conductor_group)
            raise errors.NoConductor(driver=node.driver, group=node.conductor_group)
        return host

    def notify(self, ctx: context.RequestContext, node: models.Node, why: str) -> None:
        """Wake up the owner of a node: it has work now. Nothing is lost if the wake-up is, the sweep finds the work.

        :param why: what happened, for the log: ``deploy``, ``heartbeat``, ``abort`` ...
        """
        try:
            host = self._required_owner(node)
            self._bus.cast(host, "advance", self._version("advance"), ctx, {"node_uuid": node.uuid, "why": why})
            _SENT.inc()
        except (errors.ServiceUnavailable, errors.NoConductor) as exc:
            self.lost_wakeups += 1
            _LOST.inc()
            LOG.warning("Wake-up for node %s (%s) not sent, the sweep will find it: %s", node.uuid, why, exc)

    def notify_of_allocation(self, ctx: context.RequestContext, allocation_uuid: str) -> None:
        """Wake up a conductor: an allocation waits for a node. Nothing is lost if the wake-up is."""
        method = "process_allocation"
        try:
            version = self._version(method)
            host = choose_host(allocation_uuid, hosts_serving(self._db, self._timeout, method))
            if host is not None:
                self._bus.cast(host, method, version, ctx, {"allocation_uuid": allocation_uuid})
                _SENT.inc()
        except errors.ServiceUnavailable as exc:
            self.lost_wakeups += 1
            _LOST.inc()
            LOG.warning("Wake-up for allocation %s not sent, a sweep will find it: %s", allocation_uuid, exc)

    def call(self, ctx: context.RequestContext, node: models.Node, method: str, **args: Any) -> Any:
        """Call a method of the owner of a node and return its result.

        :param method: one of :data:`versions.METHODS` that is no wake-up.
        :raises ConductorAway: the owner did not answer; its death may not have been noticed yet.
        :raises NoConductor: no online conductor of the node's group has its driver enabled.
        :raises IngotError: whatever the method raised.
        """
        return self.call_host(ctx, self._required_owner(node), method, node_uuid=node.uuid, **args)

    def call_host(self, ctx: context.RequestContext, host: str, method: str, **args: Any) -> Any:
        """Call a method of a conductor by its hostname; errors as in :meth:`call`."""
        return self._call(ctx, host, method, self._version(method), args, self._patience)

    def _call(
        self, ctx: context.RequestContext, host: str, method: str, version: str, args: Json, patience: Patience
    ) -> Any:
        outcome = "unanswered"
        try:
            with (
                metrics.RPC_CALL_SECONDS.labels(method).time(),
                patience.wait_for(host),
                tracing.span(f"call {method}", kind="CLIENT", server_address=host),
            ):
                ctx.traceparent = tracing.current()
                envelope = self._bus.call(host, method, version, ctx, args)
            outcome = "refused" if "error" in envelope else "answered"
        finally:
            metrics.RPC_CALLS.labels(method, outcome).inc()
        return transport.unpack(envelope)

    def ask_all(
        self, ctx: context.RequestContext, hosts: Mapping[str, str], method: str, within: float
    ) -> dict[str, Any]:
        """Ask several conductors at once, each that knows the method, and return their answers by hostname.

        What an IngotError stands for has no answer: the conductor is too old, away, or slower than the time allows.

        :param hosts: RPC version by hostname.
        :param method: one of :data:`versions.QUESTIONS` that is about no node.
        :param within: seconds for all of them together.
        """
        pinned = versions.pinned_release(self._conf)
        found: dict[str, Any] = {}
        asked = {}
        for host, known in hosts.items():
            version = min(filter(None, (known, pinned and pinned.rpc)), key=versions.version_tuple)
            if versions.has_method(version, method):
                asked[host] = self._questions.submit(self._ask, ctx.to_dict(), host, method)
            else:
                reason = f"it needs RPC {versions.METHODS[method]}, this conductor is asked with {version}"
                found[host] = errors.ServiceUnavailable(what=f"RPC method {method}", reason=reason)
        futures.wait(asked.values(), within)
        for host, answer in asked.items():
            late = errors.ConductorAway(what=f"Conductor {host}", reason=f"no answer within {within:g} s")
            answer.cancel()
            found[host] = answer.result() if answer.done() and not answer.cancelled() else late
        return found

    def _ask(self, ctx: Json, host: str, method: str) -> Any:
        """Ask one conductor, on a thread of its own; an error is an answer, too."""
        try:
            asked = context.RequestContext.from_dict(ctx)
            return self._call(asked, host, method, versions.METHODS[method], {}, self._question_patience)
        except errors.IngotError as exc:
            return exc

    def _version(self, method: str) -> str:
        """Return the highest version that every online conductor serves, or the pinned release's.

        :raises ServiceUnavailable: conductors that are too old for the method are online.
        """
        pinned = versions.pinned_release(self._conf)
        if pinned is None and time.monotonic() - self._cap_read_at > self._conf.hash_ring_reset_interval:
            online = [one.rpc_version for one in conductors.list_versions(self._db, self._timeout)]
            self._cap = min([*online, versions.RPC_VERSION], key=versions.version_tuple)
            self._cap_read_at = time.monotonic()
        highest = pinned.rpc if pinned else self._cap
        if not versions.has_method(highest, method):
            reason = f"it needs RPC {versions.METHODS[method]}, conductors with {highest} are online"
            raise errors.ServiceUnavailable(what=f"RPC method {method}", reason=reason)
        return highest
