"""Events in the one order in which every reader sees them, whichever process it asks.

A change is committed when its writer's transaction ends, and numbers that writers draw for themselves would become
visible out of order: a reader at number 7 would never learn of a 6 that is committed later. So writers draw none. They
leave their events in the outbox of the row they write (``ingot.db.nodes``), and :func:`collect` moves what is
committed into ``events`` under the numbers that come next, also what deleted nodes have left, and what waits of those
that are no nodes, or belong to one (``ingot.db.outbox``). Any process may collect
at any time. Two that do it at once would use the same numbers; the primary key lets one of them through, and the other,
rolled back, finds the work done when it tries again. Hence the ids are 1, 2, 3 ... without gaps, and a committed id is
never preceded by one that is still to come. An event is in its outbox or in its place, never in both or neither,
whichever process dies when.

Events of one node are in the order in which they were written.

What it costs: a change, nothing but bytes in its own UPDATE. To find out that there is nothing to collect or to read,
one SELECT of indexes (:func:`has_later`). A collection that finds nothing, one SELECT on an index, one of the few
conductors and two of empty tables. One that finds something, five more, however many nodes have changed, and five more
for deleted ones, and for those that are no nodes.
"""

import datetime
from collections.abc import Callable, Iterable, Mapping
from typing import ParamSpec, TypeVar

import sqlalchemy as sa
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc

from ingot.common import clock
from ingot.db import models, nodes, outbox
from ingot.db.engine import Database, Deadlock

Row = Mapping[str, object]
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Left = TypeVar("_Left", models.RemovedNode, models.WaitingEvent)

_EVENTS = models.table(models.Event)
_NODES = nodes.NODES
_CONDUCTORS = models.table(models.Conductor)
_REMOVED = models.table(models.RemovedNode)

_WAITING = models.table(models.WaitingEvent)

KINDS = ("provision", "power", "step", "maintenance", "boot", "lock", "node", "conductor", "inbox", "plan")

_EMPTIED = {"outbox": None, "outbox_at": None, "updated_at": _NODES.c.updated_at}  # for clients nothing has changed

_GAP = 10_000_000  # numbers, far more than there are events in the time between two backups

_BATCH = 200  # outboxes a transaction: its locks are held for a few milliseconds

_retry = oslo_db_api.wrap_db_retry(
    max_retries=10,
    retry_interval=0.01,
    inc_retry_interval=True,
    max_retry_interval=0.2,
    jitter=True,
    exception_checker=lambda exc: (
        isinstance(exc, Deadlock) or (isinstance(exc, db_exc.DBDuplicateEntry) and "events" in str(exc.inner_exception))
    ),
)


def retry_numbering(query: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Decorate a function that gives numbers to events: where another process was faster, it is tried again."""
    retrying: Callable[_Args, _Result] = _retry(query)
    return retrying


def collect(db: Database, silent_after: float) -> int:
    """Give all events that are committed by now their places.

    :param silent_after: seconds without heartbeat after which a conductor counts as silent ([conductor]
        heartbeat_timeout).
    :returns: how many there were.
    """
    return collect_of_conductors(db, silent_after) + collect_outboxes(db)


def has_later(db: Database, after: int) -> bool:
    """Return whether there are events after one, or some that wait for their numbers. One statement.

    :param after: the id of that one.
    """
    with db.single() as connection:
        return bool(connection.execute(_HAS_LATER, {"known": after}).scalar())


_HAS_LATER = sa.select(
    sa.or_(
        sa.exists(sa.select(_NODES.c.id).where(_NODES.c.outbox_at.is_not(None))),
        sa.exists(sa.select(_REMOVED.c.id)),
        sa.exists(sa.select(_WAITING.c.id)),
        sa.exists(sa.select(_EVENTS.c.id).where(_EVENTS.c.id > sa.bindparam("known"))),
    )
)


def collect_outboxes(db: Database) -> int:
    """Give the events that wait in outboxes their places; return how many there were."""
    collected = 0
    while moved := _move_waiting(db):
        collected += moved
    waiting = sa.select(_NODES.c.id).where(_NODES.c.outbox_at.is_not(None)).order_by(_NODES.c.outbox_at).limit(_BATCH)
    while True:
        ids = db.read_column(waiting)
        # A node that is created anew after these were read comes after its end.
        while removed := _move_removed(db):
            collected += removed
        collected += _move(db, ids) if ids else 0
        if len(ids) < _BATCH:
            return collected


@retry_numbering
def _move(db: Database, ids: list[int]) -> int:
    with db.transaction() as connection:
        rows = _lock_rows(connection, ids)
        moved = append(connection, [event for row in rows for event in _events(row)])
        if rows:
            emptied = sa.update(_NODES).where(_NODES.c.id.in_([row.id for row in rows]))
            connection.execute(emptied.values(_EMPTIED))
    return moved


def _move_removed(db: Database) -> int:
    """Give the events of some deleted nodes their places."""
    return _move_rows(db, models.RemovedNode, _events)


def _move_waiting(db: Database) -> int:
    """Give some events of what is no node, or belongs to one, their places."""
    return _move_rows(
        db,
        models.WaitingEvent,
        lambda row: [{name: value for name, value in vars(row).items() if name != "id"}],
    )


@retry_numbering
def _move_rows(db: Database, model: type[_Left], read: Callable[[_Left], list[Row]]) -> int:
    """Give the events of some rows, which exist for nothing else, their places.

    :param read: returns those of a row.
    """
    table = models.table(model)
    if not db.read_column(sa.select(table.c.id).limit(1)):
        return 0
    with db.transaction() as connection:
        # Not before: SQLite gives the ids of rows that another process has moved to the next ones.
        rows = model.all_of(connection.execute(sa.select(table).order_by(table.c.id).limit(_BATCH)))
        moved = sa.delete(table).where(table.c.id.in_([row.id for row in rows]))
        if connection.execute(moved).rowcount != len(rows):
            raise Deadlock(what="The database", reason="another process collects the same events")
        return append(connection, [event for row in rows for event in read(row)])


def _lock_rows(connection: sa.Connection, ids: list[int]) -> list[models.Node]:
    """Return the rows that wait, with their outboxes, which no other transaction writes to until this one ends.

    What keeps writers away is a write that changes nothing, which every server knows. It finds the rows by primary key,
    as writers do: through the index on outbox_at the order of locks would be the reverse of theirs.
    """
    own = _NODES.c.id.in_(ids)
    connection.execute(
        sa.update(_NODES).where(own).values(outbox_at=_NODES.c.outbox_at, updated_at=_NODES.c.updated_at)
    )
    columns = models.columns(_NODES, ("id", "uuid", "name", "owner", "lessee", "outbox", "outbox_at"))
    rows = models.Node.all_of(connection.execute(sa.select(*columns).where(own).order_by(_NODES.c.id)))
    waiting = [row for row in rows if row.outbox_at is not None]
    return sorted(waiting, key=lambda row: row.outbox_at or clock.now())


def _events(row: models.Node | models.RemovedNode) -> list[Row]:
    """Return the events of a row, each with the name and the projects that the node had when it was written.

    From the present ones back: what changes them says what they were.
    """
    about = {"name": row.name, "owner": row.owner, "lessee": row.lessee}
    found = []
    for data in reversed(outbox.read(row.outbox)):
        was = data.pop(outbox.WAS, None)
        found.append(_event_row(row.uuid, data, about, was))
        about |= was or {}
    return found[::-1]


def _event_row(
    uuid: str, data: outbox.Event, about: Mapping[str, str | None], was: Mapping[str, str | None] | None
) -> Row:
    return {
        "kind": data.pop("kind"),
        "created_at": datetime.datetime.fromisoformat(data.pop("at")),
        "node_uuid": uuid,
        **{f"node_{name}": value for name, value in about.items()},
        "node_was": was,
        "data": data,
    }


def append(connection: sa.Connection, events: Iterable[Row]) -> int:
    """Add events under the numbers that come next, in a transaction around which is :data:`retry_numbering`.

    :param events: rows without id.
    :returns: how many.
    """
    new = list(events)
    if new:
        last = connection.execute(sa.select(sa.func.max(_EVENTS.c.id))).scalar() or 0
        connection.execute(sa.insert(_EVENTS), [{"id": last + n, **event} for n, event in enumerate(new, 1)])
    return len(new)


def collect_of_conductors(db: Database, silent_after: float) -> int:
    """Add events of conductors that came, stopped or fell silent since the last collection.

    No write tells of a silence, so these events come from comparing the present with what was announced last.

    :param silent_after: as of :func:`collect`.
    :returns: how many there were.
    """
    columns = models.columns(_CONDUCTORS, ("id", "hostname", "conductor_group", "online", "heartbeat_at", "announced"))
    known = db.read_all(models.Conductor, sa.select(*columns).order_by(_CONDUCTORS.c.id))
    limit = clock.after(-silent_after)
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
            return 0  # another process did
        return append(connection, [{"kind": "conductor", "created_at": clock.now(), "data": data}])


@retry_numbering
def renumber(db: Database) -> None:
    """Leave a gap after the numbers of a restored backup, and keep its last event only.

    Clients have read later events, of what is not in the backup. Their numbers must not be given to others, even if the
    backup has none.
    """
    with db.transaction() as connection:
        last = connection.execute(sa.select(sa.func.max(_EVENTS.c.id))).scalar()
        if last is None:  # of no kind that clients are shown
            mark = {"id": _GAP, "kind": "restored", "created_at": clock.now(), "data": {}}
            connection.execute(sa.insert(_EVENTS).values(mark))
        else:
            connection.execute(sa.delete(_EVENTS).where(_EVENTS.c.id < last))
            connection.execute(sa.update(_EVENTS).where(_EVENTS.c.id == last).values(id=last + _GAP))


def read_page(db: Database, after: int, limit: int) -> list[models.Event]:
    """Return the events that follow one, in order.

    :param after: the id of that one; 0 for all that are kept.
    """
    statement = sa.select(_EVENTS).where(_EVENTS.c.id > after).order_by(_EVENTS.c.id).limit(limit)
    found = db.read_all(models.Event, statement)
    for event in found:
        event.data = outbox.shorten(event.data)  # those of releases that kept long ones
    return found


def bounds(db: Database) -> tuple[int, int]:
    """Return the ids of the oldest and the latest event that are kept; (1, 0) when there is none."""
    ends = [sa.select(end(_EVENTS.c.id)).scalar_subquery() for end in (sa.func.min, sa.func.max)]
    with db.single() as connection:
        oldest, latest = connection.execute(sa.select(*ends)).one()
    return (1, 0) if oldest is None else (oldest, latest)


def prune(db: Database, keep: int, batch: int = 1000) -> int:
    """Delete all but the newest events; the numbers go on.

    :param keep: how many are kept, at least 1.
    :returns: how many were deleted.
    """
    oldest, latest = bounds(db)
    deleted = 0
    for first in range(oldest, latest - max(keep, 1) + 1, batch):
        upto = min(first + batch, latest - max(keep, 1) + 1)
        deleted += db.write(sa.delete(_EVENTS).where(_EVENTS.c.id < upto))
    return deleted
