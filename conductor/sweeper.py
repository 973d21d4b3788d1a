"""Periodic work on all nodes and records of a conductor: what wake-ups have missed, what dead conductors hold, power
states, old rows."""

from oslo_log import log

from ingot.common import clock
from ingot.conductor.allocations import Allocator
from ingot.conductor.dispatcher import NodeQueues
from ingot.conductor.membership import Membership
from ingot.conductor.power_sync import PowerSynchronizer
from ingot.conductor.task.task_manager import Services
from ingot.db import conductors, events, models, node_history, node_lists, nodes

LOG = log.getLogger(__name__)

_SWEEP_LIMIT = 10_000
"""Nodes with work that a sweep sees, those of all conductors of the group: with fewer, one that has died with much work
would keep the others from theirs."""


class Sweeper:
    """The level-triggered side of a conductor: it finds work whether or not a wake-up for it was received."""

    def __init__(
        self,
        services: Services,
        membership: Membership,
        queues: NodeQueues,
        allocator: Allocator,
        synchronizer: PowerSynchronizer,
    ) -> None:
        self._services = services
        self._membership = membership
        self._queues = queues
        self._allocator = allocator
        self._synchronizer = synchronizer

    def sweep(self) -> None:
        """Find the nodes of this conductor with work, whatever the reason: a lost wake-up, a wait that is over, a lock
        whose holder is dead. Its cost grows with the work there is, not with the fleet."""
        services = self._services
        locked = node_lists.list_locked(services.db)
        # The hosts after the locks: a conductor that has joined in between is not dead.
        online = conductors.online_hosts(services.db, services.heartbeat_timeout) | {services.host}
        hosts = {node.reservation for node in locked if node.reservation}
        services.dead_hosts = frozenset(hosts - online) if self._membership.can_judge() else frozenset()
        due = node_lists.list_to_check(
            services.db, clock.now(), _SWEEP_LIMIT, services.group, services.hardware.drivers
        )
        for node in locked:
            self._check_lock(node)
        for node in due:
            if self._membership.owns(node):
                self._queues.notify(node.uuid, "sweep")
        self._allocator.sweep()

    def _check_lock(self, node: models.Node) -> None:
        """Take over the work of a lock that no living thread holds."""
        is_dead = node.reservation in self._services.dead_hosts
        if self._is_forgotten(node) or (is_dead and self._membership.owns(node)):
            self._queues.notify(node.uuid, "sweep")
        elif is_dead and self._membership.owner(node) is None:
            LOG.warning("Node %s was locked by dead conductor %s; no conductor owns it", node.uuid, node.reservation)
            nodes.release_stale(self._services.db, str(node.reservation), node.uuid)

    def _is_forgotten(self, node: models.Node) -> bool:
        """Return whether a lock of this conductor is held by none of its threads: the database was away when it was to
        be released."""
        return node.reservation == self._services.host and not self._queues.is_busy(node.uuid)

    def sync_power(self) -> None:
        """Read the power states of this conductor's machines."""
        services = self._services
        candidates = node_lists.list_for_power_sync(services.db, services.group, services.hardware.drivers)
        self._synchronizer.read(node.uuid for node in candidates if self._membership.owns(node))
        # By what exists and is owned: a candidate of one round may be locked in the next, and goes on failing.
        if failing := self._synchronizer.failing:
            known = node_lists.list_ring_keys(services.db, failing)
            self._synchronizer.forget(failing - {node.uuid for node in known if self._membership.owns(node)})

    def collect_events(self) -> None:
        """Keep outboxes short while no client reads the feed of events; its readers collect more often."""
        events.collect(self._services.db, self._services.heartbeat_timeout)

    def prune(self) -> None:
        """Delete old history and events."""
        options = self._services.conf.conductor
        node_history.prune(self._services.db, options.node_history_max_entries)
        events.prune(self._services.db, options.events_max_entries)
