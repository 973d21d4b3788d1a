"""Periodic work: what a conductor sweeps, what periodic methods of interfaces are given, the timers that call both."""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable
from concurrent import futures
from typing import NamedTuple

import futurist
from futurist import periodics
from oslo_log import log

from ingot.common import clock, context, errors, interfaces, metrics
from ingot.common.json_types import Json
from ingot.conductor.allocations import Allocator
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.membership import Membership
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.db import audit, events, inbox, left_behind, maintenance, models, node_history, node_lists, nodes, turns
from ingot.drivers.interfaces.base import BaseInterface

LOG = log.getLogger(__name__)

_WATCH_INTERVAL = 1
"""Seconds between two looks at which other conductors are online."""

_SWEEP_LIMIT = 10_000
"""Nodes with work that a sweep sees, those of all conductors of the group: with fewer, one that has died with much work
would keep the others from theirs."""

_COLUMNS = (
    *("uuid", "name", "driver", "conductor_group", "power_state", "provision_state", "reservation"),
    *maintenance.FLAG,
)


class Sweeper:
    """The level-triggered side of a conductor: it finds work whether or not a wake-up for it was received."""

    def __init__(self, services: Services, membership: Membership, queues: NodeQueues, allocator: Allocator) -> None:
        self._services = services
        self._membership = membership
        self._queues = queues
        self._allocator = allocator
        self._turn = threading.Lock()  # who is online is read and judged by one thread at a time

    def sweep(self) -> None:
        """Find the nodes of this conductor with work, whatever the reason.

        It may be a lost wake-up, a wait that is over, or a lock whose holder is dead. Its cost grows with the work
        there is, not with the fleet.
        """
        with self._turn:
            self._sweep()

    def _sweep(self) -> None:
        services = self._services
        locked = node_lists.list_locked(services.db)
        # The hosts after the locks: a conductor that has joined in between is not dead.
        self._membership.judge({node.reservation for node in locked if node.reservation})
        due = node_lists.list_to_check(
            services.db, clock.now(), _SWEEP_LIMIT, services.group, services.hardware.drivers
        )
        for node in locked:
            self._check_lock(node)
        for node in due:
            if self._membership.owns(node):
                self._queues.notify(node.uuid, "sweep")
        self._allocator.sweep()
        self._queues.end_idle_threads()

    def watch(self) -> None:
        """Sweep at once when another conductor has gone: its process may have died, which its witness tells.

        It returns when this conductor stops, and costs nothing while there is no other.
        """
        has_lost = False
        while self._membership.wait_for_others(at_most=0 if has_lost else None):
            try:
                with self._turn:
                    has_lost = self._membership.find_others() or has_lost
                    if has_lost:
                        self._sweep()
                        has_lost = False
            except errors.ServiceUnavailable as exc:
                LOG.debug("Other conductors are not watched now: %s", exc.message)
            except Exception:  # the edge of a thread
                LOG.exception("Watching other conductors failed unexpectedly")
            time.sleep(_WATCH_INTERVAL)

    def _check_lock(self, node: models.Node) -> None:
        """Take over the work of a lock that no living thread holds."""
        is_dead = node.reservation in self._membership.dead_hosts
        # One of this conductor's own, from a moment when the database was away and it could not be released.
        is_forgotten = node.reservation == self._services.host and not self._queues.is_busy(node.uuid)
        if is_forgotten or (is_dead and self._membership.owns(node)):
            self._queues.notify(node.uuid, "sweep")
        elif is_dead and self._membership.owner(node) is None:
            LOG.warning("Node %s was locked by dead conductor %s; no conductor owns it", node.uuid, node.reservation)
            nodes.release_stale(self._services.db, str(node.reservation), node.uuid)

    def collect_events(self) -> None:
        """Keep outboxes short while no client reads the feed of events; its readers collect more often."""
        events.collect(self._services.db, self._services.heartbeat_timeout)

    def prune(self) -> None:
        """Delete old history and events, and machines that have left the inbox to itself."""
        options = self._services.conf.conductor
        inbox.prune(self._services.db, self._services.conf.auto_discovery.retention_days)
        db, least = self._services.db, options.node_history_minimum_days
        node_history.prune(db, options.node_history_max_entries, minimum_days=least)
        if options.node_history_maximum_days:
            node_history.prune_by_age(db, max(options.node_history_maximum_days, least))
        events.prune(self._services.db, options.events_max_entries)
        trail = self._services.conf.audit
        audit.prune(self._services.db, trail.max_entries, trail.max_age)


class Fleet:
    """The nodes of this conductor that use an interface, for one run; see ``ingot.drivers.interfaces.periodic.Fleet``.

    :param owns: whether a node is this conductor's.
    """

    def __init__(
        self, services: Services, queues: NodeQueues, owns: Callable[[models.Node], bool], interface: BaseInterface
    ) -> None:
        self.conf = services.conf
        self.context = context.current()
        self._services = services
        self._queues = queues
        self._owns = owns
        self._interface = interface

    def nodes(self, *more: str) -> list[models.Node]:
        hardware, interface = self._services.hardware, self._interface
        columns = (*_COLUMNS, interfaces.FIELD[interface.interface_type], *more)
        drivers = hardware.drivers_using(interface)
        candidates = node_lists.list_of_drivers(self._services.db, self._services.group, drivers, columns)
        mine = [node for node in candidates if hardware.has_interface(node, interface) and self._owns(node)]
        return [node for node in mine if not maintenance.pauses_sync(node)]

    def list_unknown(self, uuids: Collection[str]) -> set[str]:
        return set(uuids) - {node.uuid for node in node_lists.list_ring_keys(self._services.db, uuids)}

    def list_left(self, kind: str) -> list[models.LeftBehind]:
        return left_behind.list_left(self._services.db, kind)

    def forget_left(self, left: models.LeftBehind) -> None:
        left_behind.forget(self._services.db, left)

    def list_notes(self, kind: str) -> list[Json]:
        return left_behind.list_notes(self._services.db, kind)

    def alone(self, what: str, patience: float) -> contextlib.AbstractContextManager[None]:
        return turns.take(self._services.db, what, patience)

    def acquire_shared(self, node: models.Node) -> contextlib.AbstractContextManager[Task]:
        return task_manager.acquire(self._services, self.context, node.uuid, self._interface.name, shared=True)

    def change(self, node: models.Node, purpose: str, work: Callable[[Task], None]) -> None:
        def run() -> None:
            with task_manager.acquire(self._services, self.context, node.uuid, purpose) as task:
                work(task)

        def log_end(future: "futures.Future[None]") -> None:
            error = future.exception()
            if isinstance(error, errors.IngotError):
                LOG.warning("Node %s: %s was not done: %s", node.uuid, purpose, error.message)
            elif error is not None:
                LOG.error("Node %s: %s failed unexpectedly", node.uuid, purpose, exc_info=error)

        self._queues.submit(node.uuid, run).add_done_callback(log_end)


class Timer(NamedTuple):
    """What is called when.

    :param name: for logs.
    :param spacing: seconds from the end of one call to the beginning of the next.
    """

    name: str
    work: Callable[[], object]
    spacing: float
    immediately: bool = False


class TimerPool:
    """Calls timers in threads of its own until it is stopped.

    :param threads: how many calls there may be at a time; a timer never overlaps with itself.
    """

    def __init__(self, timers: Iterable[Timer], threads: int = 1) -> None:
        timers = list(timers)
        self.names = ", ".join(timer.name for timer in timers)
        self._changed = threading.Condition()
        self._running = 0
        self._stopped = False
        self._turned_at = time.monotonic()
        self._spacing = max((timer.spacing for timer in timers), default=0.0)
        self._worker = periodics.PeriodicWorker(
            [(self._guard(timer), (), {}) for timer in timers],
            executor_factory=lambda: futurist.ThreadPoolExecutor(max_workers=threads),
        )
        threading.Thread(target=self._worker.start, kwargs={"allow_empty": True}, name="timers", daemon=True).start()

    def next_at(self) -> float:
        """Return when the next call is to begin at the latest, by the monotonic clock."""
        return self._turned_at + self._spacing

    def stop(self) -> None:
        """Begin no call anymore."""
        with self._changed:
            self._stopped = True
        self._worker.stop()

    def wait(self, timeout: float) -> None:
        """Wait for the calls that run, at most ``timeout`` seconds; those that have not ended then are logged."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._running, timeout):
                LOG.warning("Periodic work did not end in time: %s", self.names)

    def _guard(self, timer: Timer) -> Callable[[], None]:
        failures = metrics.TIMER_FAILURES.labels(timer.name)
        metrics.TIMER_ENDED.labels(timer.name).set_to_current_time()  # one that never ends well is missed, too

        @periodics.periodic(spacing=timer.spacing, run_immediately=timer.immediately)
        def call() -> None:
            with self._changed:
                if self._stopped:
                    return
                self._running += 1
            context.admin().update_store()
            try:
                with metrics.TIMER_SECONDS.labels(timer.name).time():
                    timer.work()
                metrics.TIMER_ENDED.labels(timer.name).set_to_current_time()
            except errors.IngotError as exc:  # what it asks is away or refuses; the message says it all
                failures.inc()
                LOG.warning("%s was put off: %s", timer.name, exc.message)
            except BaseException:  # the edge of a timer, and perhaps code of a plug-in's
                failures.inc()
                LOG.exception("%s failed unexpectedly", timer.name)
            finally:
                self._turned_at = time.monotonic()
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

        call.__name__ = timer.name
        return call
