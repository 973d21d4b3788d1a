"""Tasks: the only way to work on a node. ``with acquire(...) as task`` takes the lock, composes the driver, gives back.

Every write of a task is fenced: it carries the lock's epoch, so a conductor that was paused, declared dead and replaced
writes nothing anymore. Changes are collected by :meth:`Task.set` and written once, at the next transition.
"""

import contextlib
import datetime
import functools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypedDict

from oslo_config import cfg
from oslo_log import log

from ingot.common import clock, context, errors, metrics
from ingot.common.json_types import Json
from ingot.common.steps import PlannedStep
from ingot.db import (
    facts,
    inventory,
    maintenance,
    models,
    node_lists,
    node_refusals,
    nodes,
    outbox,
    ports,
    turns,
    volumes,
)
from ingot.db.engine import Database
from ingot.drivers.interfaces.circuit_breakers import CircuitBreakers
from ingot.drivers.interfaces.consoles import Consoles
from ingot.drivers.interfaces.task import BareDriver
from ingot.drivers.loading import factory
from ingot.notifications import notifier, nova
from ingot.rpcapi import versions

LOG = log.getLogger(__name__)

MOST_LOST_ATTEMPTS = 5
"""What takes its conductor down with it must not take down one after the other for ever."""

_DATABASE_PATIENCE_S = 120.0

_LOCKS, _REFUSED_LOCKS, _LOST_LOCKS = map(metrics.LOCKS.labels, ("taken", "refused", "lost"))

Rows = Sequence[Mapping[str, object]]


class HistoryEntry(TypedDict):
    """A row of a node's history, without node and uuid."""

    created_at: datetime.datetime
    conductor: str
    severity: str
    event_type: str
    event: str
    user: str | None
    project: str | None
    request_id: str | None
    state: str | None
    target_provision_state: str | None
    duration_seconds: float | None


def make_storable(text: str) -> str:
    """Return a message of a machine or a driver without what databases refuse: NUL and halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


_boot_time = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
"""Return seconds that go on while the process is frozen, and while the machine sleeps."""


class Lease:
    """For how long this conductor may be sure that no other one has declared it dead: each heartbeat that the database
    has taken renews it, and it ends well before other conductors may take over."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = _boot_time) -> None:
        interval, timeout = conf.conductor.heartbeat_interval, conf.conductor.heartbeat_timeout
        self._seconds = max(timeout - 2 * interval, 2 * interval)
        self.now = clock
        self._span: tuple[float, float] | None = None
        """When it began and when it was renewed last; None before the first heartbeat. Published as one, as other
        threads read it at any time."""

    def renew(self, moment: float) -> float:
        """Renew the lease after a heartbeat.

        :param moment: the time before the heartbeat was written.
        :returns: for how many seconds there was none, if that was too long and the lease begins anew; else 0.
        """
        began, renewed = self._span or (moment, moment)
        gap = moment - renewed
        is_broken = gap > self._seconds
        self._span = (moment if is_broken else began, moment)
        return gap if is_broken else 0.0

    def read_silence(self) -> float | None:
        """Return the seconds since the last heartbeat; None before the first."""
        span = self._span
        return None if span is None else self.now() - span[1]

    def covers(self, moment: float) -> bool:
        """Return whether the lease has lasted without a break from a moment until now."""
        span = self._span
        return span is not None and span[0] <= moment and self.now() - span[1] <= self._seconds


class InspectionHook(Protocol):
    """See :class:`ingot.conductor.inspection.hooks.base.InspectionHook`."""

    def run(self, draft: Any) -> None: ...


class Services:
    """What all tasks of a conductor share.

    :ivar host: name of this conductor, in locks and step runs.
    :ivar heartbeat_timeout: seconds without a heartbeat after which a conductor counts as dead.
    :ivar uses_deploy_steps: see :func:`ingot.rpcapi.versions.uses_deploy_steps`.
    :ivar notify: wakes up for a node (a record with uuid, driver and conductor_group) for a reason. It is a hint: work
        in the database is found without it.
    :ivar lease: how long this conductor may rely on its locks being its own.
    :ivar leaving: set while this conductor begins nothing: it is being stopped, or was drained. What runs is finished,
        and handed over before the next step.
    :ivar log_slots: one for each agent that may be asked for its logs at a time: a few of the workers at most wait for
        agents that hang.
    :ivar notifier: tells other services what happens to nodes.
    :ivar nova: tells Nova of power states.
    :ivar circuit_breakers: which BMCs do not answer.
    :ivar consoles: the serial consoles that are open.
    :ivar inspection_hooks: what is made of the inventories of machines, in this order.
    """

    def __init__(self, conf: cfg.ConfigOpts, db: Database, hardware: factory.Hardware) -> None:
        self.conf = conf
        self.db = db
        self.hardware = hardware
        self.host: str = conf.host
        self.group: str = conf.conductor.conductor_group.lower()
        self.heartbeat_timeout = float(conf.conductor.heartbeat_timeout)
        self.uses_deploy_steps = versions.uses_deploy_steps(conf)
        self.lease = Lease(conf)
        self.notify: Callable[[models.Node, str], None] = lambda _node, _why: None
        first, longest = conf.conductor.sync_power_state_interval, conf.conductor.silent_bmc_longest_pause
        self.circuit_breakers = CircuitBreakers(first, longest)
        self.leaving = threading.Event()
        self.notifier = notifier.Notifier(conf, notifier.CONDUCTOR)
        self.nova = nova.PowerUpdates(conf, functools.partial(node_lists.read_power_states, db))
        self.consoles = Consoles(conf)
        self.inspection_hooks: Iterable[InspectionHook] = ()
        self.log_slots = threading.BoundedSemaphore(max(1, conf.conductor.workers_pool_size // 4))

    def serves(self, node: models.Node) -> bool:
        """Return whether a node may be this conductor's, whichever others there are."""
        return node.conductor_group == self.group and node.driver in self.hardware.drivers


class Task:
    """One piece of work on one node; see ``ingot.drivers.interfaces.task.Task`` for what interfaces see of it."""

    def __init__(
        self, services: Services, ctx: context.RequestContext, node: models.Node, locked_at: float | None = None
    ) -> None:
        """:param locked_at: by the clock of the lease; None: without a lock, the task is shared."""
        self.services = services
        self.conf = services.conf
        self.db = services.db
        self.context = ctx
        self.node = node
        self.shared = locked_at is None
        self.circuit_breakers = services.circuit_breakers
        self.consoles = services.consoles
        self._driver, self.missing = services.hardware.compose(node)
        self._sure_at = 0.0 if locked_at is None else locked_at
        self.step: PlannedStep | None = None
        self.memory: Json = {}
        self.is_first_call = False
        self.released = self.shared
        self.is_aborted = False  # the flow whose end is written
        self._dirty: dict[str, object] = {}
        self._new_events: list[outbox.Event] = []
        self._extra_writes: list[nodes.ExtraWrite] = []
        self._written = node.as_dict()

    @property
    def driver(self) -> BareDriver:
        self.confirm_lock()
        return self._driver

    @property
    def lost_conductors(self) -> int:
        """How many conductors in a row were lost while they held the node's lock, since something went well with it."""
        return max(self.node.lock_attempts - 1, 0)

    def confirm_chance(self) -> None:
        """Confirm that what is to be done may be tried once more: it may be what takes conductors down.

        :raises StepFailed: it has been tried too often.
        """
        if self.lost_conductors >= MOST_LOST_ATTEMPTS:
            raise errors.StepFailed(
                f"{self.lost_conductors} conductors in a row were lost while they worked on the node. Look for the "
                "cause in their logs"
            )

    def confirm_lock(self) -> None:
        if self.released or self.services.lease.covers(self._sure_at):
            return
        moment = self.services.lease.now()
        if not self._holds_lock():
            raise node_refusals.lock_lost_error(self.node)
        self._sure_at = moment

    def _holds_lock(self) -> bool:
        """Return whether the lock is still held.

        While the database is away no conductor gets another's lock, so there is time to wait for it.
        """
        until = time.monotonic() + _DATABASE_PATIENCE_S
        while True:
            try:
                return nodes.holds_lock(self.db, self.node)
            except errors.ServiceUnavailable:
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    @functools.cached_property
    def ports(self) -> list[models.Port]:
        return ports.PORTS.list_of_node(self.db, self.node.id)

    @functools.cached_property
    def portgroups(self) -> list[models.Portgroup]:
        return ports.list_portgroups_of_node(self.db, self.node.id)

    @functools.cached_property
    def traits(self) -> list[str]:
        return nodes.traits_by_node(self.db, [self.node.id]).get(self.node.id, [])

    @functools.cached_property
    def volume_connectors(self) -> list[models.VolumeConnector]:
        return [*volumes.CONNECTORS.list_of_node(self.db, self.node.id)]

    @functools.cached_property
    def volume_targets(self) -> list[models.VolumeTarget]:
        return [*volumes.TARGETS.list_of_node(self.db, self.node.id)]

    def keep_inventory(self, found: Json, plugin_data: Json) -> None:
        self.confirm_lock()
        inventory.save(self.db, self.node.id, found, plugin_data)

    def inventory(self) -> models.NodeInventory | None:
        found = inventory.find(self.db, self.node.id)
        before = self.node.request.get("inventory_before")
        return None if found is None or clock.iso(found.inspected_at) == before else found

    def configdrive(self) -> str | None:
        return nodes.get(self.db, self.node.uuid, ("configdrive",)).configdrive

    def keep_port_notes(self, key: str, notes: Mapping[str, str]) -> None:
        self.add_extra_write(ports.build_notes(self.node.id, key, notes))
        self.write()
        places: list[models.Port | models.Portgroup] = [*self.ports, *self.portgroups]
        for one in places:
            one.internal_info = ports.change_note(one.internal_info, key, notes.get(one.uuid))

    def alone(self, what: str, patience: float) -> contextlib.AbstractContextManager[None]:
        return turns.take(self.db, what, patience)

    def remove_volume_targets(self) -> None:
        if self.volume_targets:
            self.add_extra_write(volumes.build_removal_of_targets(self.node.id))
            self.write()
            LOG.info("Node %s: %d volume targets of the instance deleted", self.node.uuid, len(self.volume_targets))
            self.volume_targets.clear()

    def keep_volume_properties(self, properties: Mapping[str, Json]) -> None:
        self.add_extra_write(volumes.build_properties(self.node.id, properties))
        self.write()
        for target in self.volume_targets:
            target.properties = properties.get(target.uuid, target.properties)

    def keep_bios_settings(self, read: Iterable[Mapping[str, object]]) -> None:
        self.add_extra_write(facts.BIOS.build_write(self.node.id, read))

    def keep_firmware_components(self, read: Iterable[Mapping[str, object]]) -> None:
        self.add_extra_write(facts.FIRMWARE.build_write(self.node.id, read))

    def set(self, **columns: object) -> None:
        for name, value in columns.items():
            setattr(self.node, name, value)
        self._dirty |= columns

    def add_event(self, event: outbox.Event) -> None:
        """Add an event to the next write, besides those that follow from the columns and the step runs."""
        self._new_events.append(event)

    def add_extra_write(self, write: nodes.ExtraWrite) -> None:
        """Add something of the node's, in other tables, to the next write: all or nothing."""
        self._extra_writes.append(write)

    def begin_fault(self, fault: str, reason: str) -> None:
        """Put the node into maintenance with the next write."""
        hold = maintenance.fault_hold(fault, reason, self.services.host)
        self._hold(lambda node: maintenance.add_hold(node, hold))

    def end_fault(self, fault: str) -> None:
        """Take the node out of the maintenance for a fault, and to nothing else, with the next write."""
        if maintenance.has_fault(self.node, fault):
            LOG.info("Node %s: its maintenance for the %s ends", self.node.uuid, fault)
            self._hold(lambda node: maintenance.end_holds(node, lambda hold: hold["fault"] == fault))

    def _hold(self, change: maintenance.Change) -> None:
        # Users write holds without the lock: what they are is seen where they are written.
        self.add_extra_write(maintenance.change_holds(self.node.uuid, change))
        vars(self.node).update(change(self.node))

    def save(self) -> None:
        self.write()

    def discard(self) -> None:
        """Take back what :meth:`set` has collected and was not written."""
        vars(self.node).clear()
        vars(self.node).update(self._written)
        self._dirty, self._new_events, self._extra_writes = {}, [], []

    def write(self, step_runs: Rows = (), history: Rows = ()) -> None:
        """Write what :meth:`set` has collected, with step runs and history: see :func:`nodes.write_locked`.

        :raises LockLost: the lock was taken over; nothing was written.
        """
        if self.shared:
            raise RuntimeError(f"a shared task must not write {sorted(self._dirty)}")
        if self._dirty or step_runs or history or self._extra_writes:
            self._write({}, step_runs, history)

    def release(self, step_runs: Rows = (), history: Rows = ()) -> None:
        """Write what was collected, and release the lock, in one statement: the last write of the task."""
        self._write(nodes.UNLOCKED, step_runs, history)
        self.released = True

    def _write(self, more: Mapping[str, object], step_runs: Rows, history: Rows) -> None:
        events = [
            *map(outbox.build_step_event, step_runs),
            *outbox.build_events(self._dirty, self._written),
            *self._new_events,
        ]
        if more and not events and self._was_lock_seen():
            events = [outbox.build_lock_event()]
        values = {**self._dirty, **more}
        nodes.write_locked(self.db, self.node, values, step_runs, history, events, self._extra_writes)
        before, self._written = self._written, self.node.as_dict()
        self._dirty, self._new_events, self._extra_writes = {}, [], []
        self.services.notifier.tell_transitions(self.context, before, self._written, self.read_traits, self.is_aborted)
        self.services.nova.tell_changes(before, self._written, self.context.global_id)

    def _was_lock_seen(self) -> bool:
        """Return whether clients may show the lock: one that ends without another event has one of its own then."""
        locked_at = self.node.locked_at
        return locked_at is not None and locked_at < clock.after(-outbox.SEEN_LOCK_S)

    def describe(self) -> Mapping[str, object]:
        """Return the node as notifications show it."""
        return {**vars(self.node), **self.read_traits()}

    def read_traits(self) -> Mapping[str, object]:
        """Return the traits, for a notification, which goes without them where the database has gone away."""
        try:
            return {"traits": self.traits}
        except errors.ServiceUnavailable as exc:
            LOG.warning("Node %s: a notification does not have its traits: %s", self.node.uuid, exc.message)
            return {}

    def build_history_entry(
        self, event_type: str, severity: str, message: str, seconds: float | None = None
    ) -> HistoryEntry:
        """Return an entry of the node's history for :meth:`write` or :meth:`release`.

        The requester is in the accepted request (``asked_by``); what a conductor does on its own account has the user
        of its task.

        :param event_type: ``provisioning``, ``step``, ``power`` or ``logs``.
        :param severity: ``INFO`` or ``ERROR``.
        :param seconds: how long what ended now has taken, where that is known.
        """
        ctx = self.context
        asked_by = self.node.request.get("asked_by") or {
            "user": ctx.user_id,
            "project": ctx.project_id,
            # What no user has requested has an id, too, which is in no log of the API.
            "request_id": ctx.request_id if ctx.user_id else None,
        }
        return {
            "created_at": clock.now(),
            "conductor": self.services.host,
            "severity": severity,
            "event_type": event_type,
            "event": message,
            "user": asked_by.get("user"),
            "project": asked_by.get("project"),
            "request_id": asked_by.get("request_id"),
            "state": self.node.provision_state,
            "target_provision_state": self.node.target_provision_state,
            "duration_seconds": seconds,
        }


@contextlib.contextmanager
def acquire(
    services: Services,
    ctx: context.RequestContext,
    ident: str,
    purpose: str,
    shared: bool = False,
    steal_from: Collection[str] = (),
    if_due: bool = False,
) -> Iterator[Task]:
    """Return a task on a node.

    Within one conductor all exclusive tasks of a node stand in its queue (``dispatcher``). A lock with this conductor's
    own name is therefore left over from an earlier life, or from a moment when the database was away, and is taken.

    :param purpose: what for, in an operator's words.
    :param shared: without a lock; the task must not write.
    :param steal_from: hosts known to be dead, whose locks are taken over.
    :param if_due: only if there is something to do: see :func:`nodes.lock`.
    :raises NodeLocked: another conductor works on the node, or there is nothing to do.
    :raises NotFound: there is no such node.
    """
    if shared:
        yield Task(services, ctx, nodes.get(services.db, ident))
        return
    locked_at = services.lease.now()
    try:
        node = nodes.lock(services.db, ident, services.host, purpose, (services.host, *steal_from), if_due)
    except errors.NodeLocked:
        _REFUSED_LOCKS.inc()
        raise
    task = Task(services, ctx, node, locked_at)
    _LOCKS.inc()
    try:
        try:
            with metrics.LOCKS_HELD.track_inprogress(), metrics.LOCK_SECONDS.time():
                yield task
        except BaseException:
            task.discard()  # half a transition must not be written with the release
            raise
        finally:
            if not task.released:
                task.release()
    except errors.LockLost as exc:
        _LOST_LOCKS.inc()
        LOG.warning("%s What this task was doing goes on elsewhere.", exc)
