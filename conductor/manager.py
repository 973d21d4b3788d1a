"""A conductor: wires its parts together, starts and stops them, and answers each bell by looking at the node."""

import threading
import time
from collections.abc import Callable
from typing import Any

import futurist
from futurist import periodics
from oslo_config import cfg
from oslo_log import log

from ingot.common import clock, context, errors, hash_ring
from ingot.conductor import power, task_manager
from ingot.conductor.endpoint import Endpoint
from ingot.conductor.flows import FLOWS
from ingot.conductor.node_queue import Alarms, NodeQueues
from ingot.conductor.steps import engine
from ingot.db import conductors, nodes, records, retention
from ingot.db.engine import Database
from ingot.drivers import factory
from ingot.rpcapi import methods, releases

LOG = log.getLogger(__name__)

_SWEEP_LIMIT = 1000
_RETENTION_INTERVAL = 3600


class Conductor:
    """Owns nodes by the hash ring and does what the database says should happen to them.

    :raises ConfigurationError: something that is enabled cannot be loaded.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database) -> None:
        self.conf = conf
        self.services = task_manager.Services(conf, db, factory.Hardware(conf))
        self.queues = NodeQueues(self._look, conf.conductor.workers_pool_size)
        self.endpoint = Endpoint(self.services, self.queues)
        self._alarms = Alarms(self.queues.ring)
        self._synchroniser = power.Synchroniser(self.services)
        self._rings = hash_ring.Rings(
            lambda: [hash_ring.Member(*row) for row in conductors.ring_members(db, self._timeout)],
            time.monotonic,
            conf.hash_ring_reset_interval,
            conf.hash_partition_exponent,
        )
        self._dead: frozenset[str] = frozenset()
        self._periodics: list[periodics.PeriodicWorker] = []

    @property
    def _timeout(self) -> float:
        return float(self.conf.conductor.heartbeat_timeout)

    def start(self) -> None:
        """Registers and begins to work. RPC is served by whoever owns the transport, before this is called."""
        db, host = self.services.db, self.services.host
        releases.pinned(self.conf)
        enabled = self.services.hardware.enabled()
        self._warn_of_differences(enabled)
        self._id = conductors.register(
            db,
            host,
            {
                "conductor_group": self.conf.conductor.conductor_group.lower(),
                "release": releases.current(),
                "rpc_version": methods.RPC_VERSION,
            },
            enabled,
        )
        stale = nodes.release_stale(db, host)
        if stale:
            LOG.warning("%d nodes were locked by an earlier life of %s; their work goes on now", stale, host)
        self._alarms.start()
        # A sign of life must not wait for anything else, so it has a worker of its own.
        self._every(self._keepalive, self.conf.conductor.heartbeat_interval)
        self._every(self.sweep, self.conf.conductor.sweep_interval, immediately=True)
        self._every(self._sync_power, self.conf.conductor.sync_power_state_interval)
        self._every(self._prune, _RETENTION_INTERVAL)
        LOG.info("Conductor %s started with %s", host, ", ".join(sorted(self.services.hardware.hardware_types)))

    def stop(self) -> None:
        """Ends in order: offline at once, so that others take over; what runs gets time to reach a safe point."""
        for worker in self._periodics:
            worker.stop()
        conductors.unregister(self.services.db, self._id)
        self._alarms.stop()
        if not self.queues.stop(self.conf.conductor.graceful_shutdown_timeout):
            LOG.warning("Some work did not reach a safe point in time; another conductor will go on with it")
        self._synchroniser.stop()

    def sweep(self) -> None:
        """Finds the nodes of this conductor that are due, whatever the reason: a bell that was not heard, a wait that
        is over, a lock whose holder is dead. Its cost grows with the work there is, not with the fleet."""
        db, host = self.services.db, self.services.host
        online = conductors.online_hosts(db, self._timeout) | {host}
        reserved = nodes.reserved(db)
        self._dead = frozenset(node.reservation for node in reserved) - online
        due = nodes.due(db, clock.now(), _SWEEP_LIMIT)
        stale = [node for node in reserved if node.reservation in self._dead or self._forgotten(node)]
        waiting = [node for node in due if node.reservation is None]
        for node in {node.uuid: node for node in (*stale, *waiting)}.values():
            if self._owns(node):
                self.queues.ring(node.uuid, "sweep")

    def _forgotten(self, node: records.Record) -> bool:
        """Whether a lock of this conductor's is held by none of its threads: the database was away at the release."""
        return node.reservation == self.services.host and not self.queues.is_busy(node.uuid)

    def _owns(self, node: records.Record) -> bool:
        try:
            owner = self._rings.owner(node.uuid, node.conductor_group, node.driver)
        except errors.NoConductor:
            return False
        return owner == self.services.host

    def _look(self, uuid: str, why: str) -> None:
        """Answers a bell: does what the node's row says is to be done."""
        LOG.debug("Looking at node %s: %s", uuid, why)
        try:
            with task_manager.acquire(self.services, context.admin(), uuid, why, steal_from=self._dead) as task:
                again = self._advance(task)
        except errors.NodeLocked as exc:
            LOG.debug("%s", exc)  # its holder does the work, or the sweep finds out that it is dead
            return
        except errors.NotFound:
            LOG.info("Node %s was deleted before anybody looked at it (%s)", uuid, why)
            return
        if again is not None and again < self.conf.conductor.sweep_interval:
            self._alarms.set(uuid, again)

    def _advance(self, task: task_manager.Task) -> float | None:
        if task.node.power_request:
            return power.advance(task)
        if task.node.flow is not None:
            return engine.advance(task, FLOWS)
        if task.node.due_at is not None:
            task.set(due_at=None)
        return None

    # Periodic work

    def _every(self, work: Callable[[], Any], interval: float, immediately: bool = False) -> None:
        if not interval:
            return

        @periodics.periodic(spacing=interval, run_immediately=immediately)
        def guarded() -> None:
            try:
                work()
            except errors.ServiceUnavailable as exc:
                LOG.warning("%s was put off: %s", work.__name__, exc.message)
            except Exception:  # the edge of a timer: the next round tries again
                LOG.exception("%s failed unexpectedly", work.__name__)

        worker = periodics.PeriodicWorker(
            [(guarded, (), {})], executor_factory=lambda: futurist.ThreadPoolExecutor(max_workers=1)
        )
        threading.Thread(target=worker.start, name=work.__name__, daemon=True).start()
        self._periodics.append(worker)

    def _keepalive(self) -> None:
        conductors.touch(self.services.db, self._id)

    def _sync_power(self) -> None:
        mine = [node for node in nodes.for_power_sync(self.services.db) if self._owns(node)]
        self._synchroniser.start_round(mine)

    def _prune(self) -> None:
        retention.prune(self.services.db, self.conf.conductor.node_history_max_entries)

    def _warn_of_differences(self, enabled: list[conductors.EnabledInterface]) -> None:
        """Says so when another conductor has other interfaces for a hardware type (specification 004)."""
        mine: dict[str, set[tuple[str, str]]] = {}
        for entry in enabled:
            mine.setdefault(entry.hardware_type, set()).add((entry.interface_type, entry.interface_name))
        theirs: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for row in conductors.enabled_interfaces(self.services.db, self._timeout, list(mine)):
            if row.hostname != self.services.host:
                pair = (row.interface_type, row.interface_name)
                theirs.setdefault((row.hostname, row.hardware_type), set()).add(pair)
        for (hostname, hardware_type), pairs in theirs.items():
            different = sorted(f"{kind} {name}" for kind, name in pairs ^ mine[hardware_type])
            if different:
                LOG.warning(
                    "Conductor %s has other interfaces enabled for %s: %s. Nodes may work on one and not on the other.",
                    hostname,
                    hardware_type,
                    ", ".join(different),
                )
