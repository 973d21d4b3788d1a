"""A conductor: wires its parts together, starts and stops them, and answers each bell by looking at the node."""

import functools
import os
import threading
import time
from collections.abc import Callable

from futurist import periodics
from oslo_config import cfg
from oslo_log import log

from ingot.common import clock, context, errors, hash_ring
from ingot.conductor import allocations, namesake, power, power_sync, task_manager, timers
from ingot.conductor.endpoint import Endpoint
from ingot.conductor.fleet import Fleet
from ingot.conductor.flows import FLOWS
from ingot.conductor.node_queue import Alarms, NodeQueues
from ingot.conductor.steps import engine
from ingot.conductor.timers import Timer
from ingot.db import conductors, events, node_lists, nodes, records, retention
from ingot.db.engine import Database
from ingot.drivers import factory
from ingot.rpcapi import methods, releases

LOG = log.getLogger(__name__)

_SWEEP_LIMIT = 10_000
"""Due nodes that a sweep sees, those of all conductors of the group: with fewer, one that has died with much work would
keep the others from theirs."""

_RETENTION_INTERVAL = 3600


class Conductor:
    """Owns nodes by the hash ring and does what the database says should happen to them.

    :param hardware: what is enabled; by default what the configuration names, of all installed packages.
    :ivar on_namesake: called when another process has taken this conductor's name: this one must stop.
    :raises ConfigurationError: something that is enabled cannot be loaded.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, hardware: factory.Hardware | None = None) -> None:
        releases.pinned(conf)
        self.conf = conf
        self.services = task_manager.Services(conf, db, hardware or factory.Hardware(conf))
        self.queues = NodeQueues(self._look, conf.conductor.workers_pool_size, self.services.silences.is_silent)
        self.services.ring = self._ring
        self._allocator = allocations.Allocator(db, conf.host, self.queues.submit, self.queues.is_busy, self._timeout)
        self.endpoint = Endpoint(self.services, self.queues, self._allocator)
        self._alarms = Alarms(self.queues.ring)
        self._synchroniser = power_sync.Synchroniser(self.services)
        self._rings = hash_ring.Rings(
            lambda: [hash_ring.Member(*row) for row in conductors.ring_members(db, self._timeout)],
            time.monotonic,
            conf.hash_ring_reset_interval,
            conf.hash_partition_exponent,
        )
        self.on_namesake: Callable[[], None] = lambda: None
        self._dead: frozenset[str] = frozenset()
        self._judges_from = float("-inf")
        self._drained = self._stopping = False
        self._leaving_or_back = threading.Lock()
        self._periodics: list[periodics.PeriodicWorker] = []

    @property
    def _timeout(self) -> float:
        return float(self.conf.conductor.heartbeat_timeout)

    @property
    def _group(self) -> str:
        return str(self.conf.conductor.conductor_group.lower())

    def claim_name(self) -> None:
        """To be called before RPC is served under the name.

        :raises ConfigurationError: another conductor has this one's.
        """
        namesake.refuse(self.services.db, self.conf)

    def start(self) -> None:
        """Registers and begins to work. RPC is served by whoever owns the transport, before this is called."""
        db, host, hardware = self.services.db, self.services.host, self.services.hardware
        self._warn_of_differences(hardware.enabled())
        self._warn_of_namesakes()
        lease = self.services.lease
        moment = lease.now()
        self._entry = self._registered()
        lease.renew(moment)
        self._follow_drain()
        stale = nodes.release_stale(db, host)
        if stale:
            LOG.warning("%d nodes were locked by an earlier life of %s; their work goes on now", stale, host)
        self._alarms.start()
        # A sign of life must not wait for anything else, so it has a worker of its own.
        self._every(self._keepalive, self.conf.conductor.heartbeat_interval)
        self._every(self.sweep, self.conf.conductor.sweep_interval, immediately=True)
        self._every(self._sync_power, self.conf.conductor.sync_power_state_interval)
        self._every(self._collect_events, self.conf.conductor.sweep_interval)
        self._every(self._prune, _RETENTION_INTERVAL)
        self._periodics.append(timers.start(self._of_interfaces(), self.conf.conductor.periodic_max_workers))
        LOG.info("Conductor %s started with %s", host, ", ".join(sorted(hardware.drivers)))

    def _registered(self) -> conductors.Entry:
        """Enters this conductor, with what it has enabled."""
        hardware = self.services.hardware
        about = {
            "conductor_group": self._group,
            "process": namesake.process(os.getpid()),
            "release": releases.current(),
            "rpc_version": methods.RPC_VERSION,
            "classic_drivers": sorted(hardware.classic_drivers),
        }
        return conductors.register(self.services.db, self.services.host, about, hardware.enabled())

    def leave(self) -> None:
        """The beginning of an orderly stop: others own the nodes at once, and nothing is begun here any more. Questions
        are answered as long as RPC is served: who looked at the ring before goes on asking here for a while."""
        with self._leaving_or_back:
            self._stopping = True
            self.services.leaving.set()
        for worker in self._periodics[1:]:
            worker.stop()
        self._tell(conductors.withdraw)
        self._alarms.stop()

    def stop(self) -> bool:
        """Ends in order: steps that run get time to end. Until then this conductor counts as alive, or its locks would
        be taken from steps that are in the middle of something.

        :returns: whether all of them ended in time. The others recover what did not, as after a kill.
        """
        self.leave()
        ended = self.queues.stop(self.conf.conductor.graceful_shutdown_timeout)
        if not ended:
            LOG.warning("Some steps did not end in time; another conductor takes over their nodes")
        keepalive = self._periodics[0]
        keepalive.stop()
        keepalive.wait(self.conf.conductor.heartbeat_interval)
        self._tell(conductors.unregister)
        self._synchroniser.stop()
        return ended

    def _tell(self, what: Callable[[Database, conductors.Entry], None]) -> None:
        try:
            what(self.services.db, self._entry)
        except errors.ServiceUnavailable as exc:
            LOG.warning("The others find out by themselves that this conductor stops: %s", exc.message)

    def sweep(self) -> None:
        """Finds the nodes of this conductor that are due, whatever the reason: a bell that was not heard, a wait that
        is over, a lock whose holder is dead. Its cost grows with the work there is, not with the fleet."""
        db, host = self.services.db, self.services.host
        reserved = nodes.reserved(db)
        online = conductors.online_hosts(db, self._timeout) | {host}  # after the locks: who joined since is not dead
        self._dead = frozenset(node.reservation for node in reserved) - online if self._can_judge() else frozenset()
        due = nodes.due(db, clock.now(), _SWEEP_LIMIT, self._group, self.services.hardware.drivers)
        for node in reserved:
            if self._forgotten(node) or (node.reservation in self._dead and self._owns(node)):
                self.queues.ring(node.uuid, "sweep")
            elif node.reservation in self._dead and self._owner(node) is None:
                LOG.warning(
                    "Node %s was locked by dead conductor %s; no conductor owns it", node.uuid, node.reservation
                )
                nodes.release_stale(db, node.reservation, node.uuid)
        for node in due:
            if self._owns(node):
                self.queues.ring(node.uuid, "sweep")
        self._allocator.sweep()

    def _can_judge(self) -> bool:
        """Whether others that gave no sign of life are dead. After a time without database (or asleep) nobody's sign
        of life is fresh, and everybody gets the time to give one."""
        now = self.services.lease.now()
        return now >= self._judges_from and self.services.lease.covers(now)

    def _forgotten(self, node: records.Record) -> bool:
        """Whether a lock of this conductor's is held by none of its threads: the database was away at the release."""
        return node.reservation == self.services.host and not self.queues.is_busy(node.uuid)

    def _ring(self, node: records.Record, why: str) -> None:
        """Looks at a node that a task has made due, if it is this conductor's; its owner's sweep finds it otherwise."""
        if self._owns(node):
            self.queues.ring(node.uuid, why)

    def _owns(self, node: records.Record) -> bool:
        return self._serves(node) and self._owner(node) == self.services.host

    def _serves(self, node: records.Record) -> bool:
        """Whether a node may be this conductor's, who else there may be."""
        return node.conductor_group == self._group and node.driver in self.services.hardware.drivers

    def _owner(self, node: records.Record) -> str | None:
        try:
            return self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return None

    def _look(self, uuid: str, why: str) -> None:
        """Answers a bell: does what the node's row says is to be done."""
        if self.services.leaving.is_set():
            # The node stays due, for its next owner. If it is locked in this name, no thread knows: here is its queue.
            nodes.release_stale(self.services.db, self.services.host, uuid)
            return
        LOG.debug("Looking at node %s: %s", uuid, why)
        again: float | None = None  # stays so when the lock is lost on the way
        dead = self._still_dead()
        try:
            with task_manager.acquire(self.services, context.admin(), uuid, why, steal_from=dead, due=True) as task:
                again = self._advance(task)
        except errors.NodeLocked as exc:
            LOG.debug("%s", exc)  # its holder does the work, or the sweep finds out that it is dead; or there is none
            return
        except errors.NotFound:
            LOG.info("Node %s was deleted before anybody looked at it (%s)", uuid, why)
            return
        if again is not None and again < self.conf.conductor.sweep_interval:
            self._alarms.set(uuid, again)

    def _still_dead(self) -> frozenset[str]:
        """Whose locks may be taken: a conductor that the last sweep found dead may have come back since."""
        return self._dead - conductors.online_hosts(self.services.db, self._timeout) if self._dead else self._dead

    def _advance(self, task: task_manager.Task) -> float | None:
        if not self._serves(task.node):
            LOG.info("Node %s is another conductor's by now; it stays due for that one", task.node.uuid)
            return None
        if task.node.power_request:
            return power.advance(task)
        if task.node.flow is not None:
            return engine.advance(task, FLOWS)
        if task.node.due_at is not None:
            task.set(due_at=None, abort_requested=False)  # an abort that came after the end aborts nothing
        return None

    # Periodic work

    def _every(self, work: Callable[[], None], interval: float, immediately: bool = False) -> None:
        if interval:
            self._periodics.append(timers.start([Timer(work.__name__, work, interval, immediately)]))

    def _of_interfaces(self) -> list[Timer]:
        """The periodic methods of every enabled interface, each once, whichever drivers use it (specification 004)."""
        return [
            Timer(
                one.name,
                functools.partial(one.run, Fleet(self.services, self.queues, self._owns, one.interface)),
                one.spacing,
            )
            for one in self.services.hardware.periodics
        ]

    def _keepalive(self) -> None:
        db, host, lease = self.services.db, self.services.host, self.services.lease
        moment = lease.now()
        if not conductors.touch(db, self._entry):
            if namesake.registered(db, self.conf) is not None:
                LOG.critical("Another conductor has taken the name %s: this one stops", host)
                self.on_namesake()
                return
            LOG.warning("The entry of conductor %s is gone, as after a restored backup: it is made again", host)
            self._entry = self._registered()
        if silent := lease.renew(moment):
            LOG.warning("No sign of life for %.0f s; the others get time to give theirs", silent)
            self._judges_from = moment + self._timeout
        self._follow_drain()

    def _follow_drain(self) -> None:
        """Leaves the rings when an operator has drained this conductor, and comes back when that is over. Meanwhile it
        is alive: it finishes what runs and answers whoever asks."""
        drained = conductors.is_drained(self.services.db, self._entry)
        if drained == self._drained:
            return
        with self._leaving_or_back:
            if self._stopping:
                return
            if drained:
                self.services.leaving.set()
                conductors.confirm_drain(self.services.db, self._entry)
            else:
                self._entry = self._registered()
                self.services.leaving.clear()
            self._drained = drained
        self._rings.forget()
        LOG.warning("Conductor %s %s", self.services.host, "is drained: others own its nodes" if drained else "is back")

    def _sync_power(self) -> None:
        candidates = node_lists.for_power_sync(self.services.db, self._group, self.services.hardware.drivers)
        self._synchroniser.read(node.uuid for node in candidates if self._owns(node))

    def _collect_events(self) -> None:
        """Keeps outboxes short while nobody listens; who listens collects more often."""
        events.collect(self.services.db, self._timeout)

    def _prune(self) -> None:
        retention.prune(self.services.db, self.conf.conductor.node_history_max_entries)
        events.prune(self.services.db, self.conf.conductor.events_max_entries)

    def _warn_of_differences(self, enabled: list[conductors.EnabledInterface]) -> None:
        """Says so when another conductor has other interfaces for a hardware type (specification 004). That is no
        error: it cannot be avoided while conductors are upgraded one by one."""
        mine: dict[str, set[str]] = {}
        for entry in enabled:
            mine.setdefault(entry.hardware_type, set()).update(_told(entry))
        theirs: dict[tuple[str, str], set[str]] = {}
        for row in conductors.enabled_interfaces(self.services.db, self._timeout, list(mine)):
            if row.hostname != self.services.host:
                theirs.setdefault((row.hostname, row.hardware_type), set()).update(_told(row))
        for (hostname, hardware_type), told in theirs.items():
            different = sorted(told ^ mine[hardware_type])
            if different:
                LOG.warning(
                    "Conductor %s has other interfaces enabled for %s: %s. Nodes may work on one and not on the other.",
                    hostname,
                    hardware_type,
                    ", ".join(different),
                )

    def _warn_of_namesakes(self) -> None:
        """Says so when what is a hardware type here is a classic driver on another conductor, or the reverse."""
        db, hardware = self.services.db, self.services.hardware
        rows = conductors.enabled_interfaces(db, self._timeout, list(hardware.classic_drivers))
        theirs = {(row.hostname, row.hardware_type) for row in rows}
        classic = conductors.classic_drivers(db, self._timeout)
        theirs |= {(hostname, name) for hostname, _group, name in classic if name in hardware.hardware_types}
        for hostname, name in sorted(pair for pair in theirs if pair[0] != self.services.host):
            LOG.warning(
                "Driver %s is a hardware type on one of the conductors %s and %s and a classic driver on the other: "
                "rename one, or its nodes will not keep their interfaces.",
                name,
                hostname,
                self.services.host,
            )


def _told(entry: conductors.EnabledInterface | records.Record) -> set[str]:
    """What of an enabled interface another conductor should have too."""
    pair = f"{entry.interface_type} {entry.interface_name}"
    return {pair, f"{pair} as default"} if entry.default else {pair}
