"""How many nodes there are in which state, and which conductors are online: for Prometheus."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from oslo_config import cfg
from oslo_log import log

from ingot.common import clock, errors, metrics
from ingot.db import conductors, models
from ingot.db.engine import Database
from ingot.db.nodes import NODES

LOG = log.getLogger(__name__)

SHOWN = ("uuid", "name", "provision_state", "provision_updated_at")

_PATIENCE_S = 2.0
"""Seconds that Prometheus waits for a new count; then it gets the last one."""


def is_overdue(limits: Mapping[str, int]) -> sa.ColumnElement[bool]:
    """Return the condition that a node is in its provision state for longer than a limit.

    :param limits: seconds by provision state; states that are not named have none.
    """
    since = NODES.c.provision_updated_at
    late = [sa.and_(NODES.c.provision_state == state, since < clock.after(-limits[state])) for state in sorted(limits)]
    return sa.or_(sa.false(), *late)


class Group(NamedTuple):
    """Nodes that are alike.

    :param nodes: how many they are.
    :param locked: how many of them are locked.
    :param overdue: how many of them are in their state for too long.
    """

    provision_state: str
    maintenance: bool
    fault: str | None
    nodes: int
    locked: int
    overdue: int


def count_nodes(db: Database, limits: Mapping[str, int]) -> list[Group]:
    """Return all nodes in groups, with one statement.

    :param limits: as :func:`is_overdue` has them.
    """
    groups = NODES.c.provision_state, NODES.c.maintenance, NODES.c.fault
    overdue = sa.func.sum(sa.case((is_overdue(limits), 1), else_=0))
    counts = sa.func.count(), sa.func.count(NODES.c.reservation), overdue
    with db.single() as connection:
        found = connection.execute(sa.select(*groups, *counts).group_by(*groups))
        return [Group(state, bool(held), fault, *map(int, counted)) for state, held, fault, *counted in found]


def list_overdue(db: Database, limits: Mapping[str, int], most: int) -> list[models.Node]:
    """Return what :data:`SHOWN` names of nodes that are overdue, those first that have been in their state for longest.

    :param limits: as :func:`is_overdue` has them.
    """
    columns = models.columns(NODES, SHOWN)
    late = sa.select(*columns).where(is_overdue(limits)).order_by(NODES.c.provision_updated_at, NODES.c.id).limit(most)
    return db.read_all(models.Node, late)


class Census:
    """Counts nodes while Prometheus asks, at most once in ``[metrics] node_count_interval`` seconds.

    A database that is slow or away does not keep Prometheus: it gets the last count, and when that was made.
    """

    def __init__(self, db: Database, conf: cfg.ConfigOpts) -> None:
        self._db = db
        self._limits: Mapping[str, int] = conf.metrics.state_time_limits
        self._interval: int = conf.metrics.node_count_interval
        self._timeout: float = conf.conductor.heartbeat_timeout
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._began_at = float("-inf")
        self._last: list[metrics.Metric] = []

    def serve(self) -> None:
        """Have Prometheus find the counts."""
        metrics.ask("nodes", self._collect)

    def _collect(self) -> list[metrics.Metric]:
        with self._lock:
            now = time.monotonic()
            is_first = self._began_at == float("-inf")
            if (is_first or self._done.is_set()) and now - self._began_at >= self._interval:
                self._began_at = now
                self._done.clear()
                self._start()
        self._done.wait(_PATIENCE_S)
        return self._last

    def _start(self) -> None:
        try:
            threading.Thread(target=self._count, name="node count", daemon=True).start()
        except RuntimeError:  # this process may have no thread more: the next request tries again
            self._done.set()
            raise

    def _count(self) -> None:
        try:
            rows = count_nodes(self._db, self._limits)
            online = conductors.list_all(self._db, self._timeout)
            self._last = [*_build_families(rows), metrics.CONDUCTORS_ONLINE(_judge(online))]
        except errors.ServiceUnavailable as exc:
            LOG.debug("Nodes are not counted now: %s", exc.message)
        except Exception:  # the edge of a thread
            LOG.exception("Counting nodes failed unexpectedly")
        finally:
            self._done.set()


def _judge(registered: Iterable[conductors.Conductor]) -> Iterable[tuple[tuple[str], float]]:
    """Yield 1 or 0 for each conductor; those that stopped in order are not missing."""
    return (((one.hostname,), float(one.alive)) for one in registered if one.online)


def _build_families(rows: Iterable[Group]) -> Iterable[metrics.Metric]:
    nodes: Counter[tuple[str, str]] = Counter()
    faulty: Counter[tuple[str]] = Counter()
    overdue: Counter[tuple[str]] = Counter()
    locked = 0
    for row in rows:
        nodes[row.provision_state, str(row.maintenance).lower()] += row.nodes
        overdue[(row.provision_state,)] += row.overdue
        locked += row.locked
        if row.fault:
            faulty[(row.fault,)] += row.nodes
    return (
        metrics.NODES(nodes.items()),
        metrics.NODES_FAULTY(faulty.items()),
        metrics.NODES_OVERDUE(overdue.items()),
        metrics.NODES_LOCKED([((), locked)]),
        metrics.NODES_READ([((), time.time())]),
    )
