"""Queries on nodes: reading, the API's compare-and-set, the conductor's lock and its fenced writes, what is due.

What of a write is worth an event travels in the outbox, a column of the row that is written. The statement that changes
the node also appends to its outbox, so an event costs no statement and no transaction of its own, is there if and only
if the change is, and cannot be forgotten by whoever writes. ``ingot.db.events`` takes it from there.
"""

import datetime
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from ingot.common import clock, errors
from ingot.db import models, records, rows, types
from ingot.db.engine import Database, retried

NODES = models.table(models.Node)
_STEP_RUNS = models.table(models.StepRun)
_HISTORY = models.table(models.NodeHistory)

# What a database says of a unique value that is taken: the constraint's name, or SQLite the column's.
_TAKEN = re.compile(r"(?:uniq_nodes_|\bnodes\.)(instance_uuid|name|uuid)\b")

# A config drive may be megabytes and only one step wants it; the outbox is for whoever collects events.
_USUAL = [column for column in NODES.c if column.name not in ("configdrive", "outbox", "outbox_at")]


Beside = Callable[[sa.Connection], None]
"""Writes what belongs to a node in other tables, in the transaction that writes to the node."""

Told = dict[str, Any]
"""An event: its ``kind``, and what it tells."""


class _Watched(NamedTuple):
    """Columns of a node whose change is an event.

    :param by: the columns of which one must change.
    :param also: what the event tells besides, if it is in the same write.
    """

    kind: str
    by: tuple[str, ...]
    also: tuple[str, ...] = ()


_WATCHED = (
    _Watched("power", ("power_state", "target_power_state"), ("last_error",)),
    _Watched("maintenance", ("maintenance", "maintenance_reason", "maintenance_holds"), ("fault",)),
    _Watched("provision", ("provision_state",), ("target_provision_state", "last_error")),
)

_OF_A_STEP = ("run_id", "flow", "step_index", "attempt", "interface", "step", "state", "conductor", "error")


def events_of(values: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> list[Told]:
    """The events of writing columns of a node.

    :param values: the columns that are written.
    :param before: what they held, as far as that is known; a column that keeps its value has not changed.
    """
    known = before or {}
    return [
        {"kind": watched.kind, **{name: values[name] for name in (*watched.by, *watched.also) if name in values}}
        for watched in _WATCHED
        if any(name in values and (name not in known or known[name] != values[name]) for name in watched.by)
    ]


def event_of_step(attempt: Mapping[str, Any]) -> Told:
    """The event of an attempt of a step that begins (state ``running``) or has ended.

    :param attempt: a row of the journal, or the beginning of one.
    """
    return {"kind": "step", **{name: attempt.get(name) for name in _OF_A_STEP}}


def posted(told: Iterable[Told], new: bool = False) -> dict[str, Any]:
    """The columns to write with a change so that its events are in the outbox; none if there are no events.

    :param new: the row is new and has nothing in its outbox that must stay there.
    """
    moment = clock.now()
    lines = "".join(orjson.dumps({"at": moment, **event}).decode() + "\n" for event in told)
    if not lines or new:
        return {"outbox": lines, "outbox_at": moment} if lines else {}
    return {
        "outbox": sa.func.coalesce(NODES.c.outbox, "").concat(lines),
        "outbox_at": sa.func.coalesce(NODES.c.outbox_at, moment),
    }


def by_ident(ident: str) -> sa.ColumnElement[bool]:
    """The condition that a uuid or a name stands for."""
    return NODES.c.uuid == ident if uuidutils.is_uuid_like(ident) else NODES.c.name == ident


def of_owned(table: sa.Table, *names: str) -> dict[str, sa.ColumnElement[Any]]:
    """For a table whose rows belong to nodes: columns of the node, as ``node_<name>``."""
    own = NODES.c.id == table.c.node_id
    return {f"node_{name}": sa.select(NODES.c[name]).where(own).scalar_subquery() for name in names}


def get(db: Database, ident: str, columns: Collection[str] | None = None) -> records.Record:
    """A node by uuid or name.

    :param columns: names of the columns to read; all but configdrive and outbox by default.
    :raises NotFound: there is no such node.
    """
    selected = _USUAL if columns is None else records.columns(NODES, columns)
    with db.single() as connection:
        node = records.one(connection.execute(sa.select(*selected).where(by_ident(ident))))
    if node is None:
        raise errors.NotFound(noun="Node", ident=ident)
    return node


def compare_and_set(
    db: Database, node: records.Record, values: Mapping[str, Any], beside: Collection[Beside] = ()
) -> None:
    """Writes what a request asks for, if the node is still as it was read and nobody works on it.

    :param node: as read before; needs id, uuid, revision.
    :param beside: write what belongs to the node in other tables.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    :raises NotFound: it was deleted meanwhile.
    """
    unchanged = sa.and_(NODES.c.id == node.id, NODES.c.revision == node.revision, NODES.c.reservation.is_(None))
    if not _update(db, unchanged, values, node.uuid, vars(node), beside):
        raise why_refused(db, node.uuid)


def set_always(db: Database, uuid: str, values: Mapping[str, Any], revision: int | None = None) -> None:
    """Writes columns that no task writes, whoever holds the lock: a request to abort.

    :param revision: write only if the node is still as it was read.
    :raises NotFound: there is no such node.
    :raises ChangedMeanwhile: it is not as it was read.
    """
    own = NODES.c.uuid == uuid
    if not _update(db, own if revision is None else sa.and_(own, NODES.c.revision == revision), values, uuid):
        raise errors.ChangedMeanwhile(node=get(db, uuid, ("uuid",)).uuid)


def ask_to_abort(db: Database, uuid: str, flow: str) -> bool:
    """Asks for the abort of a flow, whoever holds the lock; whether it is still the node's."""
    values = {"abort_requested": True, "due_at": clock.now()}
    return _update(db, sa.and_(NODES.c.uuid == uuid, NODES.c.flow == flow), values, uuid)


@retried
def _update(
    db: Database,
    condition: sa.ColumnElement[bool],
    values: Mapping[str, Any],
    uuid: str,
    before: Mapping[str, Any] | None = None,
    beside: Collection[Beside] = (),
) -> bool:
    told = posted(events_of(values, before))
    statement = sa.update(NODES).where(condition).values(**values, **told, revision=NODES.c.revision + 1)
    try:
        with db.transaction() if beside else db.single() as connection:
            written = connection.execute(statement).rowcount == 1
            for write in beside if written else ():
                write(connection)
        return written
    except db_exc.DBDuplicateEntry as exc:
        raise duplicate(exc, values, uuid) from exc
    except db_exc.DBReferenceError as exc:
        raise rows.owner_gone("node", "its chassis") from exc


def duplicate(exc: db_exc.DBDuplicateEntry, values: Mapping[str, Any], uuid: str) -> errors.IngotError:
    """The error for a unique value that another node has."""
    # Only the database's own words: those of SQLAlchemy repeat the statement, which names all columns.
    told = _TAKEN.search(str(exc.inner_exception.orig))
    column = told.group(1) if told else "uuid"
    if column == "instance_uuid":
        return errors.Conflict(
            reason=f"Instance {values.get('instance_uuid')} is already associated with a node, it cannot be associated "
            f"with this other node {uuid}"
        )
    if column == "name":
        return errors.Duplicate(noun="node", field="name", value=values.get("name"))
    return errors.Duplicate(noun="node", field="UUID", value=uuid)


def why_refused(db: Database, uuid: str) -> errors.IngotError:
    """Why a write found nothing to write to: the node is locked, was changed, or is gone.

    :raises NotFound: it is gone.
    """
    node = get(db, uuid, ("uuid", "reservation", "lock_purpose", "locked_at"))
    if node.reservation is None:
        return errors.ChangedMeanwhile(node=node.uuid)
    return locked(node)


def locked(node: records.Record) -> errors.NodeLocked:
    """The error that tells who holds a node's lock, since when and for what."""
    if node.reservation is None:
        return errors.NodeLocked(f"Node {node.uuid} was locked until just now; please retry.")
    return errors.NodeLocked(
        node=node.uuid, host=node.reservation, purpose=node.lock_purpose, since=clock.iso(node.locked_at)
    )


@retried
def lock(
    db: Database, ident: str, host: str, purpose: str, steal_from: Collection[str] = (), due: bool = False
) -> records.Record:
    """Takes a node's lock and reads the node: two statements.

    :param purpose: what for, in an operator's words; a 409 repeats it.
    :param steal_from: take the lock even from these hosts, which the caller knows to be dead or to be itself in an
        earlier life. Their writes are fenced from then on, because ``lock_epoch`` grows.
    :param due: a lock that nobody holds is taken only if the node is due: who comes by for nothing is in nobody's way.
    :raises NodeLocked: somebody else holds the lock; or nobody, and the node is not due.
    :raises NotFound: there is no such node.
    """
    nobody = [NODES.c.reservation.is_(None), *([NODES.c.due_at <= clock.now()] if due else [])]
    free = sa.or_(sa.and_(*nobody), NODES.c.reservation.in_(steal_from))
    taken = {
        "reservation": host,
        "lock_epoch": NODES.c.lock_epoch + 1,
        "lock_purpose": purpose,
        "locked_at": clock.now(),
        "updated_at": NODES.c.updated_at,
    }
    with db.single() as connection:
        result = connection.execute(sa.update(NODES).where(by_ident(ident), free).values(taken))
        node = records.one(connection.execute(sa.select(*_USUAL).where(by_ident(ident))))
    if node is None:
        raise errors.NotFound(noun="Node", ident=ident)
    # The moment identifies this lock: it may have been stolen again before the second statement, and a task that works
    # with somebody else's epoch would not be fenced.
    if result.rowcount != 1 or (node.reservation, node.locked_at) != (host, taken["locked_at"]):
        raise locked(node)
    return node


def _still_locked(node: records.Record) -> sa.ColumnElement[bool]:
    own, epoch = NODES.c.id == node.id, NODES.c.lock_epoch == node.lock_epoch
    return sa.and_(own, epoch, NODES.c.reservation == node.reservation)


def holds(db: Database, node: records.Record) -> bool:
    """Whether a node is still locked as :func:`lock` returned it."""
    with db.single() as connection:
        return connection.execute(sa.select(NODES.c.id).where(_still_locked(node))).first() is not None


def lost(node: records.Record) -> errors.LockLost:
    """The error for a lock, as :func:`lock` returned it, that is somebody else's now."""
    return errors.LockLost(node=node.uuid, epoch=node.lock_epoch, host=node.reservation)


UNLOCKED: Mapping[str, Any] = {"reservation": None, "lock_purpose": None, "locked_at": None}
"""The values that give a lock back; part of a task's last write."""


@retried
def write_locked(
    db: Database,
    node: records.Record,
    values: Mapping[str, Any],
    step_runs: Iterable[Mapping[str, Any]] = (),
    history: Iterable[Mapping[str, Any]] = (),
    told: Iterable[Told] = (),
    beside: Collection[Beside] = (),
) -> None:
    """A task's write: the node's row, and with it what is added to journal, history and events, all or nothing.

    :param node: as the lock returned it; its id, lock_epoch and reservation are the fence.
    :param step_runs: rows for the journal, without node_id.
    :param history: rows for the history, without node_id and uuid.
    :param told: the events of this write.
    :param beside: write what belongs to the node in other tables.
    :raises LockLost: the lock was taken over; nothing was written.
    """
    statement = (
        sa.update(NODES).where(_still_locked(node)).values(**values, **posted(told), revision=NODES.c.revision + 1)
    )
    new_runs = [{"node_id": node.id, **row} for row in step_runs]
    entries = list(history)
    beside = [*([to_history(node, entries)] if entries else []), *beside]
    with db.transaction() if new_runs or beside else db.single() as connection:
        if connection.execute(statement).rowcount != 1:
            raise lost(node)
        if new_runs:
            connection.execute(sa.insert(_STEP_RUNS), new_runs)
        for write in beside:
            write(connection)


def to_history(node: records.Record, entries: Iterable[Mapping[str, Any]]) -> Beside:
    """What adds rows to a node's history.

    :param entries: the rows, without node_id and uuid.
    """
    new = [{"node_id": node.id, "uuid": uuidutils.generate_uuid(), **entry} for entry in entries]

    def write(connection: sa.Connection) -> None:
        connection.execute(sa.insert(_HISTORY), new)

    return write


LAST_HEARD: sa.ColumnElement[datetime.datetime | None] = NODES.c.agent_last_heartbeat
"""A value for step_heard: the last sign of life there is when the statement runs, whoever has read what before."""

STEP_HEARD: sa.ColumnElement[datetime.datetime | None] = NODES.c.step_heard

Heard = datetime.datetime | sa.ColumnElement[datetime.datetime | None] | None


def due_unless_called(node: records.Record, heard: Heard, deadline: datetime.datetime | None) -> Any:
    """A value for due_at: a deadline (None: never); now if the agent gave another sign of life than the last one that
    is known, or if somebody asked for an abort.

    Decided by the database, in the statement that begins the wait: what arrived while the lock was held is not
    overlooked, even if its bell was lost. Signs of life are told apart and not compared with a clock: API and
    conductors run on hosts of which each has its own.

    :param node: as the lock returned it; the abort that it shows already is known to whoever waits.
    :param heard: the last sign of life that is known; :data:`STEP_HEARD` for the one that the node's row has.
    """
    called = sa.and_(LAST_HEARD.is_not(None), LAST_HEARD.is_distinct_from(heard))
    if not node.abort_requested:
        called = sa.or_(called, NODES.c.abort_requested.is_(True))
    return sa.case((called, clock.now()), else_=sa.literal(deadline, types.moment()))


def due_unless_aborted(node: records.Record, due: datetime.datetime | None) -> Any:
    """A value for due_at: a moment (None: never), or now if somebody asked for an abort while the lock was held.

    :param node: as the lock returned it; the abort that it shows already is known.
    """
    if node.abort_requested:
        return due
    return sa.case((NODES.c.abort_requested.is_(True), clock.now()), else_=sa.literal(due, types.moment()))


def configdrive(db: Database, node: records.Record) -> str | None:
    """The config drive of the node's deployment: base64 of gzip."""
    with db.single() as connection:
        return connection.execute(sa.select(NODES.c.configdrive).where(NODES.c.id == node.id)).scalar_one()


def due(
    db: Database, moment: datetime.datetime, limit: int, group: str, drivers: Collection[str]
) -> list[records.Record]:
    """Unlocked nodes that a conductor of a group with these hardware types must look at, longest overdue first: uuid,
    driver, conductor_group, due_at. Nodes that nobody can work on must not crowd out the others.

    The index on due_at holds only nodes with work, so the cost grows with the work and not with the fleet.
    """
    names = ("uuid", "driver", "conductor_group", "due_at")
    waiting = (
        NODES.c.due_at <= moment,
        NODES.c.reservation.is_(None),
        NODES.c.conductor_group == group,
        NODES.c.driver.in_(list(drivers)),
    )
    statement = sa.select(*records.columns(NODES, names)).where(*waiting).order_by(NODES.c.due_at).limit(limit)
    with db.single() as connection:
        return records.many(connection.execute(statement))


def children(db: Database, parent: str) -> list[records.Record]:
    """The child nodes of a node, in order of creation, with what accepting work for them needs.

    :param parent: its uuid.
    """
    names = ("id", "uuid", "name", "revision", "driver", "conductor_group", "provision_state", "reservation", "flow")
    more = ("maintenance", "maintenance_reason", "owner", "lessee", "request", "driver_internal_info")
    columns = records.columns(NODES, (*names, *more))
    with db.single() as connection:
        found = connection.execute(sa.select(*columns).where(NODES.c.parent_node == parent).order_by(NODES.c.id))
        return records.many(found)


def reserved(db: Database) -> list[records.Record]:
    """All nodes that are locked now: uuid, driver, conductor_group, reservation, due_at."""
    names = ("uuid", "driver", "conductor_group", "reservation", "due_at")
    # As "is not null", for which SQLite would read the whole table.
    statement = sa.select(*records.columns(NODES, names)).where(NODES.c.reservation > "")
    with db.single() as connection:
        return records.many(connection.execute(statement))


@retried
def release_stale(db: Database, host: str, uuid: str | None = None) -> int:
    """Gives back the locks of a conductor that is dead, or that starts again under its name.

    :param uuid: only this node's lock.
    :returns: how many there were.
    """
    stale = sa.update(NODES).where(NODES.c.reservation == host)
    if uuid is not None:
        stale = stale.where(NODES.c.uuid == uuid)
    with db.single() as connection:
        return connection.execute(stale.values(**UNLOCKED, lock_epoch=NODES.c.lock_epoch + 1)).rowcount


def unlocked(db: Database, uuids: Collection[str]) -> list[records.Record]:
    """Those of the nodes that nobody works on now, with all that a task needs of them."""
    statement = sa.select(*_USUAL).where(NODES.c.uuid.in_(uuids), NODES.c.reservation.is_(None))
    with db.single() as connection:
        return records.many(connection.execute(statement))
