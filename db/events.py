"""Events in the one order in which every reader sees them, whichever process it asks.

A change is committed when its writer's transaction ends, and numbers that writers draw for themselves would become
visible out of order: a reader at number 7 would never learn of a 6 that is committed later. So writers draw none. They
leave their events in the outbox of the row they write (``ingot.db.nodes``), and :func:`collect` moves what is
committed into ``events`` under the numbers that come next. Any process may collect at any time. Two that do it at once
would use the same numbers; the primary key lets one of them through, and the other, rolled back, finds the work done
when it looks again. Hence the ids are 1, 2, 3 ... without gaps, a committed id is never preceded by one that is still
to come, and an event is in its outbox or in its place, never in both or neither, whichever process dies when.

Events of one node are in the order in which they were written.

What it costs: a change, nothing but bytes in its own UPDATE. A look that finds nothing, one SELECT on an index beside
one of the few conductors. A look that finds something, six statements, however many nodes have changed.
"""

import datetime
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import sqlalchemy as sa
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc

from ingot.common import clock
from ingot.db import models, nodes
from ingot.db.engine import Database, Deadlock, retry_transaction

LOG = logging.getLogger(__name__)

_EVENTS = models.table(models.Event)
_NODES = nodes.NODES
_CONDUCTORS = models.table(models.Conductor)

KINDS = ("provision", "power", "step", "maintenance", "conductor")

_EMPTIED = {"outbox": None, "outbox_at": None, "updated_at": _NODES.c.updated_at}  # for clients nothing has changed

_BATCH = 200  # outboxes a transaction: its locks are held for a few milliseconds

retry_numbering = oslo_db_api.wrap_db_retry(
    max_retries=10,
    retry_interval=0.01,
    inc_retry_interval=True,
    max_retry_interval=0.2,
    jitter=True,
    exception_checker=lambda exc: isinstance(exc, Deadlock) or _place_taken(exc),
)
"""For functions that give numbers to events: somebody else was faster, so the whole transaction is tried again."""


def _place_taken(exc: BaseException) -> bool:
    return isinstance(exc, db_exc.DBDuplicateEntry) and "events" in str(exc.inner_exception)


def collect(db: Database, silent_after: float) -> int:
    """Gives all events that are committed by now their places.

    :param silent_after: seconds without a sign of life after which a conductor counts as silent ([conductor]
        heartbeat_timeout).
    :returns: how many there were.
    """
    collected = _of_conductors(db, silent_after)
    while ids := _waiting(db):
        collected += _move(db, ids)
        if len(ids) < _BATCH:
            break
    return collected


def _waiting(db: Database) -> list[int]:
    waiting = sa.select(_NODES.c.id).where(_NODES.c.outbox_at.is_not(None)).order_by(_NODES.c.outbox_at).limit(_BATCH)
    with db.single() as connection:
        return list(connection.execute(waiting).scalars())


@retry_numbering
def _move(db: Database, ids: list[int]) -> int:
    with db.transaction() as connection:
        rows = _locked(connection, ids)
        moved = append(connection, [event for row in rows for event in _events(row)])
        if rows:
            emptied = sa.update(_NODES).where(_NODES.c.id.in_([row.id for row in rows]))
            connection.execute(emptied.values(_EMPTIED))
    return moved


def move_last(connection: sa.Connection, node_id: int, last: nodes.Event) -> None:
    """Gives the events of a node that is about to be deleted their places, and one more after them.

    :param connection: in the transaction that deletes the node; :data:`retry_numbering` must be around it.
    """
    rows = _locked(connection, [node_id], waiting_only=False)
    events = [event for row in rows for event in (*_events(row), _event(row, {"at": clock.now().isoformat(), **last}))]
    append(connection, events)


def _locked(connection: sa.Connection, ids: list[int], waiting_only: bool = True) -> list[models.Node]:
    """The rows with their outboxes, which nobody writes to until the transaction ends.

    What keeps writers away is a write that changes nothing, for every server knows those. It finds the rows by primary
    key, as writers do: through the index on outbox_at the order of locks would be the reverse of theirs.
    """
    own = _NODES.c.id.in_(ids)
    connection.execute(
        sa.update(_NODES).where(own).values(outbox_at=_NODES.c.outbox_at, updated_at=_NODES.c.updated_at)
    )
    columns = models.columns(_NODES, ("id", "uuid", "name", "outbox", "outbox_at"))
    rows = models.Node.all_of(connection.execute(sa.select(*columns).where(own).order_by(_NODES.c.id)))
    waiting = [row for row in rows if row.outbox_at is not None] if waiting_only else rows
    return sorted(waiting, key=lambda row: row.outbox_at or clock.now())


def _events(row: models.Node) -> list[dict[str, Any]]:
    return [_event(row, orjson.loads(line)) for line in (row.outbox or "").splitlines()]


def _event(row: models.Node, told: nodes.Event) -> dict[str, Any]:
    rest = dict(told)
    moment = datetime.datetime.fromisoformat(rest.pop("at"))
    about = {"kind": rest.pop("kind"), "created_at": moment, "node_uuid": row.uuid, "node_name": row.name}
    return {**about, "data": rest}


def append(connection: sa.Connection, events: Iterable[Mapping[str, Any]]) -> int:
    """Adds events under the numbers that come next, in a transaction around which is :data:`retry_numbering`.

    :param events: rows without id.
    :returns: how many.
    """
    new = list(events)
    if new:
        last = connection.execute(sa.select(sa.func.max(_EVENTS.c.id))).scalar() or 0
        connection.execute(sa.insert(_EVENTS), [{"id": last + n, **event} for n, event in enumerate(new, 1)])
    return len(new)


def _of_conductors(db: Database, silent_after: float) -> int:
    """Announces conductors that came, stopped or fell silent since somebody looked.

    A silence is nobody's write, so these events come from comparing the present with what was announced last.
    """
    columns = models.columns(_CONDUCTORS, ("id", "hostname", "conductor_group", "online", "heartbeat_at", "announced"))
    with db.single() as connection:
        known = models.Conductor.all_of(connection.execute(sa.select(*columns).order_by(_CONDUCTORS.c.id)))
    limit = clock.now() - datetime.timedelta(seconds=silent_after)
    now = {row.id: "stopped" if not row.online else "online" if row.heartbeat_at > limit else "silent" for row in known}
    return sum(_announce(db, row, now[row.id]) for row in known if row.announced != now[row.id])


@retry_numbering
def _announce(db: Database, conductor: models.Conductor, state: str) -> int:
    same = _CONDUCTORS.c.announced.is_not_distinct_from(conductor.announced)
    announced = sa.update(_CONDUCTORS).where(_CONDUCTORS.c.id == conductor.id, same)
    data = {"conductor": conductor.hostname, "conductor_group": conductor.conductor_group, "state": state}
    with db.transaction() as connection:
        values = {"announced": state, "updated_at": _CONDUCTORS.c.updated_at}
        if connection.execute(announced.values(values)).rowcount != 1:
            return 0  # somebody else did
        return append(connection, [{"kind": "conductor", "created_at": clock.now(), "data": data}])


def read_page(db: Database, after: int, limit: int) -> list[models.Event]:
    """The events that follow one, in order.

    :param after: the id of that one; 0 for all that are kept.
    """
    statement = sa.select(_EVENTS).where(_EVENTS.c.id > after).order_by(_EVENTS.c.id).limit(limit)
    with db.single() as connection:
        return models.Event.all_of(connection.execute(statement))


def bounds(db: Database) -> tuple[int, int]:
    """The ids of the oldest and the latest event that are kept; (1, 0) when there is none."""
    ends = [sa.select(end(_EVENTS.c.id)).scalar_subquery() for end in (sa.func.min, sa.func.max)]
    with db.single() as connection:
        oldest, latest = connection.execute(sa.select(*ends)).one()
    return (1, 0) if oldest is None else (oldest, latest)


@retry_transaction
def prune(db: Database, keep: int, batch: int = 1000) -> int:
    """Deletes all but the newest events; the numbers go on.

    :param keep: how many are kept, at least 1.
    :returns: how many were deleted.
    """
    oldest, latest = bounds(db)
    deleted = 0
    for first in range(oldest, latest - max(keep, 1) + 1, batch):
        upto = min(first + batch, latest - max(keep, 1) + 1)
        with db.single() as connection:
            deleted += connection.execute(sa.delete(_EVENTS).where(_EVENTS.c.id < upto)).rowcount
    return deleted
