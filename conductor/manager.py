"""A conductor: wires its parts together, starts and stops them.

The story of a node's work: the API accepts it and sends a wake-up (``endpoint``), which is queued and reconciled
(``dispatcher``) by the flow's engine (``steps.engine``). What wake-ups miss the sweeper finds (``periodic``).
"""

import functools
import threading
import time
from collections.abc import Callable

from oslo_config import cfg
from oslo_log import log

from ingot.common import systemd, telemetry, tracing
from ingot.conductor.allocations import Allocator
from ingot.conductor.boot_retries import BootRetrier
from ingot.conductor.console_keeper import ConsoleKeeper
from ingot.conductor.console_server import ConsoleServer
from ingot.conductor.dispatcher import Dispatcher
from ingot.conductor.endpoint import Endpoint
from ingot.conductor.gauges import Gauges
from ingot.conductor.inspection.hooks import loading
from ingot.conductor.membership import Membership
from ingot.conductor.periodic import Fleet, Sweeper, Timer, TimerPool
from ingot.conductor.power import PowerSynchronizer
from ingot.conductor.sensors import SensorReader
from ingot.conductor.task import task_manager
from ingot.db import models, nodes
from ingot.db.engine import Database
from ingot.drivers.interfaces.periodic import PeriodicMethod
from ingot.drivers.loading import factory
from ingot.rpcapi import versions

LOG = log.getLogger(__name__)

_RETENTION_INTERVAL = 3600

_COME_BACK = "its conductor stops; come back"
"""What those learn who read serial consoles."""

_PART = "conductor"
"""What the health of a process calls its conductor."""

_TURNS_WITHIN_S = 90
"""Seconds by which a part may be late before a conductor is unready. A database that hangs keeps it for 30."""


class Conductor:
    """Owns nodes by the hash ring and does what the database says should happen to them.

    :param hardware: what is enabled; by default what the configuration names, of all installed packages.
    :raises ConfigurationError: something that is enabled cannot be loaded.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, hardware: factory.Hardware | None = None) -> None:
        versions.pinned_release(conf)
        self.conf = conf
        tracing.start(conf, "ingot-conductor")
        self.services = services = task_manager.Services(conf, db, hardware or factory.Hardware(conf))
        services.notify = self._notify_if_owned
        services.inspection_hooks = loading.Hooks(conf)
        self.membership = Membership(services)
        self.dispatcher = Dispatcher(services, self.membership)
        self.queues = self.dispatcher.queues
        self.allocator = Allocator(db, conf.host, self.queues.submit, self.queues.is_busy, services.heartbeat_timeout)
        self._console_server = ConsoleServer(conf, services.consoles)
        self.endpoint = Endpoint(services, self.queues, self.allocator, self._console_server)
        self.synchronizer = PowerSynchronizer(services, self.membership.owns)
        self.sweeper = Sweeper(services, self.membership, self.queues, self.allocator)
        self._sensors = SensorReader(services, self.membership.owns)
        self._gauges = Gauges(services, self.membership, self.queues, self.synchronizer)
        self._keepalive: TimerPool | None = None
        self._sweeps: TimerPool | None = None
        self._periodics: list[TimerPool] = []
        self._watch = threading.Thread(target=self.sweeper.watch, name="watch", daemon=True)

    def _notify_if_owned(self, node: models.Node, why: str) -> None:
        """Wake up for work that a task has accepted, if the node is this conductor's.

        Otherwise its owner's sweep finds it.
        """
        if self.membership.owns(node):
            self.queues.notify(node.uuid, why)

    def start(self) -> None:
        """Register, release what an earlier process has left locked, and begin to work.

        What serves RPC or the API is started by its owner when this has returned. A step that begins earlier would lose
        its lock with those that are left over.

        :raises Occupied: the port for consoles cannot be had, or another conductor has this one's name.
        """
        services, options = self.services, self.conf.conductor
        self._console_server.start()
        self.membership.join()
        stale = nodes.release_stale(services.db, services.host)
        if stale:
            LOG.warning("%d nodes were locked by an earlier process of %s; their work continues", stale, services.host)
        self._gauges.serve()
        self._sensors.start()
        telemetry.add_check(_PART, lambda: "; ".join(self.list_lacks()) or None)
        self.dispatcher.delayed_wakeups.start()
        # A heartbeat must not wait for anything else, so it has a worker of its own.
        self._keepalive = TimerPool([Timer("keepalive", self.membership.keepalive, options.heartbeat_interval)])
        self._sweeps = self._every(self.sweeper.sweep, options.sweep_interval, immediately=True)
        self._watch.start()
        if self.conf.pxe.boot_retry_timeout:
            retrier = BootRetrier(services, self.queues, self.membership.owns)
            self._every(retrier.retry_boots, self.conf.pxe.boot_retry_check_interval)
        self._every(self.synchronizer.sync_power, options.sync_power_state_interval)
        keeper = ConsoleKeeper(services, self.membership.owns)
        self._every(keeper.keep_consoles, options.sweep_interval, immediately=True)
        self._every(self.sweeper.collect_events, options.sweep_interval)
        self._every(self.sweeper.prune, _RETENTION_INTERVAL)
        # The periodic methods of interfaces, each once, whichever drivers use it (specification 004).
        timers = [
            Timer(one.name, functools.partial(self._run_periodic, one), one.spacing)
            for one in services.hardware.periodics
        ]
        self._periodics.append(TimerPool(timers, options.periodic_max_workers))
        LOG.info("Conductor %s started with %s", services.host, ", ".join(sorted(services.hardware.drivers)))

    def _run_periodic(self, method: PeriodicMethod) -> None:
        method.run(Fleet(self.services, self.queues, self.membership.owns, method.interface))

    def _every(self, work: Callable[[], None], interval: float, immediately: bool = False) -> TimerPool | None:
        if not interval:
            return None
        pool = TimerPool([Timer(work.__name__, work, interval, immediately)])
        self._periodics.append(pool)
        return pool

    def list_parts(self) -> systemd.Parts:
        """Return the parts that turn as long as this conductor lives, whether or not the database answers."""
        pools = {"heartbeat of the conductor": self._keepalive, "sweep": self._sweeps}
        return {name: pool.next_at for name, pool in pools.items() if pool}

    def list_lacks(self) -> list[str]:
        """Return what keeps this conductor from its work now, for probes; empty: it is ready."""
        services = self.services
        lacks = []
        if not self.membership.is_registered:
            lacks.append("it is not registered")
        elif not services.lease.covers(services.lease.now()):
            lacks.append("its heartbeat could not be written in time")
        if services.leaving.is_set():
            lacks.append("it is drained, or stops")
        stuck = systemd.list_stuck(self.list_parts(), _TURNS_WITHIN_S)
        return lacks + [f"{name}: {_TURNS_WITHIN_S} s late" for name in stuck]

    def leave(self) -> None:
        """Begin an orderly stop: others own the nodes at once, and nothing is begun here anymore.

        Questions are answered as long as RPC is served: APIs that have read the ring before go on asking here for a
        while.
        """
        self.membership.begin_leaving()
        for pool in self._periodics:
            pool.stop()
        self.membership.withdraw()
        self.services.consoles.stop_all(_COME_BACK)
        self.dispatcher.delayed_wakeups.stop()

    def stop(self) -> bool:
        """End in order: steps that run get time to end.

        Until then this conductor counts as alive, or its locks would be taken from steps that run.

        :returns: whether all of them ended in time. Other conductors recover the rest, as after a kill.
        """
        self.leave()
        until = time.monotonic() + self.conf.conductor.graceful_shutdown_timeout
        ended = self.queues.stop(self.conf.conductor.graceful_shutdown_timeout)
        if not ended:
            LOG.warning("Some steps did not end in time; another conductor takes over their nodes")
        self.services.consoles.stop_all(_COME_BACK)
        self._console_server.stop()
        self.synchronizer.stop()
        self._sensors.stop()
        for pool in self._periodics:
            pool.wait(until - time.monotonic())
        if self._watch.is_alive():
            self._watch.join(max(until - time.monotonic(), 0))
        if self._keepalive is not None:
            self._keepalive.stop()
            self._keepalive.wait(self.conf.conductor.heartbeat_interval)
        self.membership.unregister()
        self.services.notifier.close()
        self.services.nova.close()
        tracing.flush()
        telemetry.remove_check(_PART)
        return ended
