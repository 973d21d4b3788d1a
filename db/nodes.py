"""Queries on one node: reading it, the API's compare-and-set, the conductor's lock and its fenced writes.

The events of a write travel in the outbox, a column of the row that is written. The statement that changes the node
also appends to its outbox. So an event costs no statement and no transaction of its own, exists if and only if the
change does, and no caller can forget it. ``ingot.db.events`` takes it from there.

The statements of transitions are built once, and get their values when they are executed: building one costs more than
executing it.
"""

import datetime
import functools
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from ingot.common import clock, errors
from ingot.db import models, node_refusals, outbox, rows
from ingot.db.engine import Database, mark_events, retry_transaction
from ingot.db.models.base import AnyColumn

NODES = models.table(models.Node)
_CHASSIS = models.table(models.Chassis)
_ALLOCATIONS = models.table(models.Allocation)
_TRAITS = models.table(models.NodeTrait)

COMPUTED: Mapping[str, AnyColumn] = {
    "chassis_uuid": sa.select(_CHASSIS.c.uuid).where(_CHASSIS.c.id == NODES.c.chassis_id).scalar_subquery(),
    "allocation_uuid": sa.select(_ALLOCATIONS.c.uuid).where(_ALLOCATIONS.c.node_id == NODES.c.id).scalar_subquery(),
    "traits": sa.select(sa.type_coerce(sa.func.aggregate_strings(_TRAITS.c.trait, ","), models.Words()))
    .where(_TRAITS.c.node_id == NODES.c.id)
    .scalar_subquery(),
}
"""What :class:`ShownNode` has beside the columns of the table."""

_COLUMNS = {**NODES.c, **{name: column.label(name) for name, column in COMPUTED.items()}}

# A config drive may be megabytes and only one step needs it; the outbox is for the collector of events.
USUAL = [column for column in NODES.c if column.name not in ("configdrive", "outbox", "outbox_at")]

ExtraWrite = Callable[[sa.Connection], None]
"""Writes what belongs to a node in other tables, in the transaction that writes to the node."""


class ShownNode(models.Node):
    """A node, with what is shown of its chassis, its allocation and its traits; the API completes its conductor."""

    chassis_uuid: str | None
    allocation_uuid: str | None
    traits: list[str]
    conductor: str | None


class OfNode(models.Row):
    """A row that belongs to a node, read with what is shown of the node."""

    node_uuid: str
    node_owner: str | None
    node_lessee: str | None


Rows = Iterable[Mapping[str, object]]

_NEW = {name: sa.bindparam(f"new_{name}", type_=NODES.c[name].type) for name in ("outbox", "outbox_at")}
APPENDED: Mapping[str, AnyColumn] = {
    "outbox": sa.func.coalesce(NODES.c.outbox, sa.literal_column("''")).concat(_NEW["outbox"]),
    "outbox_at": sa.func.coalesce(NODES.c.outbox_at, _NEW["outbox_at"]),
}

"""What an UPDATE of nodes writes besides to have events; its parameters: :func:`as_appended`."""


def as_appended(events: Iterable[outbox.Event]) -> dict[str, object]:
    """Return the parameters of :data:`APPENDED`; none if there are no events."""
    return {f"new_{name}": value for name, value in outbox.build_columns(events).items()}


_NAMES = frozenset(NODES.c.keys())


class Computed(NamedTuple):
    """A value that the database computes in the statement that writes it.

    :param expression: a constant, so that the statement is built once; its parameters have names that no column has.
    :param parameters: their values.
    """

    expression: AnyColumn
    parameters: Mapping[str, object] = {}


@functools.lru_cache(maxsize=64)
def _complete(statement: sa.Update, *computed: tuple[str, AnyColumn]) -> sa.Update:
    """Return an UPDATE that also writes expressions."""
    return statement.values(dict(computed))


class Update:
    """A write to the row of a node, built once.

    :param condition: which row; its values are parameters, with names that no column has.
    """

    def __init__(self, condition: sa.ColumnElement[bool]) -> None:
        self._quiet = sa.update(NODES).where(condition).values(revision=NODES.c.revision + 1)
        self._telling = self._quiet.values(**APPENDED)

    def execute(
        self,
        connection: sa.Connection,
        values: Mapping[str, object],
        events: Iterable[outbox.Event],
        known: Mapping[str, object],
    ) -> bool:
        """Write, and return whether there was a row that meets the condition.

        :param values: columns; a value may be :class:`Computed`.
        :param events: what the write is for readers of events.
        :param known: the parameters of the condition.
        """
        if unknown := values.keys() - _NAMES:  # they would be left out without a word
            raise TypeError(f"nodes have no columns {sorted(unknown)}")
        given = as_appended(events)
        if given:
            mark_events(connection)
        statement = self._telling if given else self._quiet
        computed = {name: value for name, value in values.items() if isinstance(value, Computed)}
        if computed:
            statement = _complete(statement, *((name, value.expression) for name, value in computed.items()))
            for value in computed.values():
                given |= value.parameters
        given |= {name: value for name, value in values.items() if name not in computed}
        return connection.execute(statement, {**given, **known}).rowcount == 1


def get(
    db: Database, ident: str, columns: Iterable[str] | None = None, kept: frozenset[str] = frozenset()
) -> ShownNode:
    """Return a node by uuid or name.

    :param columns: names of the columns to read; by default those of the table, without configdrive and outbox.
    :param kept: those of them that are read as they are kept; see :func:`ingot.db.models.as_kept`.
    :raises NotFound: there is no such node.
    """
    statement = _select_one(None if columns is None else frozenset(columns), kept, uuidutils.is_uuid_like(ident))
    node = db.read_first(ShownNode, statement, ident=ident)
    if node is None:
        raise errors.NotFound(noun="Node", ident=ident)
    return node


@functools.lru_cache(maxsize=64)
def _select_one(columns: frozenset[str] | None, kept: frozenset[str], by_uuid: bool) -> sa.Select[Any]:
    """Return the statement that reads a node; to build it takes longer than to run it."""
    names = [column.name for column in USUAL] if columns is None else sorted(columns)
    selected = (models.as_kept(_COLUMNS[name]).label(name) if name in kept else _COLUMNS[name] for name in names)
    return sa.select(*selected).where((NODES.c.uuid if by_uuid else NODES.c.name) == sa.bindparam("ident"))


def traits_by_node(db: Database, node_ids: Collection[int]) -> dict[int, list[str]]:
    """Return the sorted traits of nodes by the node's id; nodes without traits are absent. One statement."""
    statement = sa.select(_TRAITS.c.node_id, _TRAITS.c.trait).where(_TRAITS.c.node_id.in_(node_ids))
    return db.read_groups(statement.order_by(_TRAITS.c.trait))


IS_UNCHANGED = sa.and_(
    NODES.c.id == sa.bindparam("read_id"),
    NODES.c.revision == sa.bindparam("read_revision"),
    NODES.c.reservation.is_(None),
)
"""The condition that a node is still as it was read, and not locked; its parameters: :func:`as_read`."""

IF_UNCHANGED = Update(IS_UNCHANGED)


def as_read(node: models.Node) -> dict[str, object]:
    """Return the parameters of :data:`IS_UNCHANGED`.

    :param node: needs id and revision.
    """
    return {"read_id": node.id, "read_revision": node.revision}


def compare_and_set(db: Database, node: models.Node, values: Mapping[str, object], history: Rows = ()) -> None:
    """Write what a request changes, if the node is still as it was read and not locked.

    :param node: as read before; needs id, uuid, revision.
    :param history: new rows of its history, without node_id and uuid.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    :raises NotFound: it was deleted meanwhile.
    """
    entries = list(history)
    also = [lambda connection: add_history(connection, node.id, entries)] if entries else ()
    if not _update(db, IF_UNCHANGED, values, node.uuid, as_read(node), vars(node), also):
        raise refused_write_error(db, node.uuid)


_OF_UUID = NODES.c.uuid == sa.bindparam("own_uuid")
ALWAYS = Update(_OF_UUID)
_IF_AS_READ = Update(sa.and_(_OF_UUID, NODES.c.revision == sa.bindparam("read_revision")))
_IF_IN_FLOW = Update(sa.and_(_OF_UUID, NODES.c.flow == sa.bindparam("own_flow")))


def set_always(db: Database, uuid: str, values: Mapping[str, object], revision: int | None = None) -> None:
    """Write columns that no task writes, whether the node is locked or not.

    :param revision: write only if the node is still as it was read.
    :raises NotFound: there is no such node.
    :raises ChangedMeanwhile: it is not as it was read.
    """
    update, known = (ALWAYS, {}) if revision is None else (_IF_AS_READ, {"read_revision": revision})
    if not _update(db, update, values, uuid, {"own_uuid": uuid, **known}):
        raise errors.ChangedMeanwhile(node=get(db, uuid, ("uuid",)).uuid)


def request_abort(db: Database, uuid: str, flow: str) -> bool:
    """Request the abort of a flow, whether the node is locked or not; False if the flow is not the node's any more."""
    values = {"abort_requested": True, "due_at": clock.now()}
    return _update(db, _IF_IN_FLOW, values, uuid, {"own_uuid": uuid, "own_flow": flow})


@retry_transaction
def _update(
    db: Database,
    update: Update,
    values: Mapping[str, object],
    uuid: str,
    known: Mapping[str, object],
    before: Mapping[str, object] | None = None,
    extra_writes: Collection[ExtraWrite] = (),
) -> bool:
    try:
        with db.transaction() if extra_writes else db.single() as connection:
            written = update.execute(connection, values, outbox.build_events(values, before), known)
            for write in extra_writes if written else ():
                write(connection)
        return written
    except db_exc.DBDuplicateEntry as exc:
        raise node_refusals.duplicate_error(exc, values, uuid) from exc
    except db_exc.DBReferenceError as exc:
        raise rows.owner_gone_error("node", "its chassis") from exc


_OF_LOCK = frozenset(("uuid", "reservation", "lock_purpose", "locked_at"))


def refused_write_error(db: Database, uuid: str) -> errors.IngotError:
    """Return the error for a write that found nothing to write to: the node is locked, was changed, or is gone.

    :raises NotFound: it is gone.
    """
    node = get(db, uuid, _OF_LOCK)
    return errors.ChangedMeanwhile(node=node.uuid) if node.reservation is None else node_refusals.locked_error(node)


@retry_transaction
def lock(
    db: Database, ident: str, host: str, purpose: str, steal_from: Collection[str] = (), if_due: bool = False
) -> models.Node:
    """Lock a node and read it: two statements.

    :param purpose: what for, in an operator's words; a 409 repeats it.
    :param steal_from: lock it even if these hosts hold the lock, which the caller knows to be dead or to be itself in
        an earlier life. Their writes are fenced from then on, because ``lock_epoch`` grows.
    :param if_due: lock an unlocked node only if its next check is due, so that a needless check is in no one's way.
    :raises NodeLocked: another conductor holds the lock; or it is free, and the node is not due.
    :raises NotFound: there is no such node.
    """
    now = clock.now()
    values = {"reservation": host, "lock_purpose": purpose, "locked_at": now}
    with db.single() as connection:
        own = {"ident": ident}
        by_uuid = uuidutils.is_uuid_like(ident)
        limit = {"now": now} if if_due else {}
        statement = _TAKE_LOCK[by_uuid, if_due]
        result = connection.execute(statement, {**values, **own, **limit, "steal_from": [*steal_from]})
        columns = None if result.rowcount == 1 else _OF_LOCK
        node = models.Node.first_of(connection.execute(_select_one(columns, frozenset(), by_uuid), own))
    if node is None:
        raise errors.NotFound(noun="Node", ident=ident)
    # The moment identifies this lock: it may have been stolen again before the second statement, and a task that works
    # with the epoch of another conductor would not be fenced.
    if columns or (node.reservation, node.locked_at) != (host, now):
        raise node_refusals.locked_error(node)
    return node


def _build_taking(own: sa.ColumnElement[bool], if_due: bool) -> sa.Update:
    unlocked = [NODES.c.reservation.is_(None), *([NODES.c.due_at <= sa.bindparam("now")] if if_due else [])]
    stolen = NODES.c.reservation.in_(sa.bindparam("steal_from", expanding=True))
    return (
        sa.update(NODES)
        .where(own, sa.or_(sa.and_(*unlocked), stolen))
        .values(
            lock_epoch=NODES.c.lock_epoch + 1, lock_attempts=NODES.c.lock_attempts + 1, updated_at=NODES.c.updated_at
        )
    )


_IDENTS = {by_uuid: NODES.c["uuid" if by_uuid else "name"] == sa.bindparam("ident") for by_uuid in (True, False)}
_TAKE_LOCK = {
    (by_uuid, if_due): _build_taking(own, if_due) for by_uuid, own in _IDENTS.items() for if_due in (True, False)
}

_LOCKED = sa.and_(
    NODES.c.id == sa.bindparam("held_id"),
    NODES.c.lock_epoch == sa.bindparam("held_epoch"),
    NODES.c.reservation == sa.bindparam("held_by"),
)
_IF_LOCKED = Update(_LOCKED)
_FIND_LOCKED = sa.select(NODES.c.id).where(_LOCKED)


def _as_locked(node: models.Node) -> dict[str, object]:
    """Return the fence: parameters for a node that is still locked as :func:`lock` returned it."""
    return {"held_id": node.id, "held_epoch": node.lock_epoch, "held_by": node.reservation}


def holds_lock(db: Database, node: models.Node) -> bool:
    """Return whether a node is still locked as :func:`lock` returned it."""
    with db.single() as connection:
        return connection.execute(_FIND_LOCKED, _as_locked(node)).first() is not None


FREE: Mapping[str, None] = {"reservation": None, "lock_purpose": None, "locked_at": None}

UNLOCKED: Mapping[str, int | None] = {**FREE, "lock_attempts": 0}
"""The values that give a lock back; part of a task's last write."""


def release_stale(db: Database, host: str, uuid: str | None = None) -> int:
    """Give back the locks of a conductor that is dead, or that starts again under its name.

    :param uuid: only this node's lock.
    :returns: how many there were.
    """
    stale = sa.update(NODES).where(NODES.c.reservation == host)
    if uuid is not None:
        stale = stale.where(NODES.c.uuid == uuid)
    stale = stale.values(**FREE, **APPENDED, lock_epoch=NODES.c.lock_epoch + 1)
    return db.write(stale, has_events=True, **as_appended([outbox.build_lock_event()]))


@retry_transaction
def write_locked(
    db: Database,
    node: models.Node,
    values: Mapping[str, object],
    step_runs: Rows = (),
    history: Rows = (),
    events: Iterable[outbox.Event] = (),
    extra_writes: Collection[ExtraWrite] = (),
) -> None:
    """Write the row of a task's node with step runs, history and events, all or nothing.

    It is one statement, unless something is written to other tables.

    :param node: as the lock returned it; its id, lock_epoch and reservation are the fence.
    :param step_runs: new rows, without node_id.
    :param history: new rows, without node_id and uuid.
    :param events: the events of this write.
    :param extra_writes: write what belongs to the node in other tables.
    :raises LockLost: the lock was taken over; nothing was written.
    """
    runs, entries = [{"node_id": node.id, **row} for row in step_runs], list(history)
    with db.transaction() if runs or entries or extra_writes else db.single() as connection:
        if not _IF_LOCKED.execute(connection, values, events, _as_locked(node)):
            raise node_refusals.lock_lost_error(node)
        if runs:
            connection.execute(_ADD_RUNS, runs)
        if entries:
            add_history(connection, node.id, entries)
        for write in extra_writes:
            write(connection)


_ADD_RUNS, _ADD_HISTORY = sa.insert(models.table(models.StepRun)), sa.insert(models.table(models.NodeHistory))


def add_history(connection: sa.Connection, node_id: int, entries: Rows) -> None:
    """Add rows to the history of a node, without node_id and uuid."""
    new = [{"node_id": node_id, "uuid": uuidutils.generate_uuid(), **entry} for entry in entries]
    connection.execute(_ADD_HISTORY, new)


LAST_HEARD = Computed(NODES.c.agent_last_heartbeat)
"""A value for step_heard: the last heartbeat there is when the statement runs, whatever was read before."""

STEP_HEARD = Computed(NODES.c.step_heard)

Heard = datetime.datetime | Computed | None

_KNOWN, _NOW, _NEXT = (sa.bindparam(name, type_=models.moment()) for name in ("check_known", "check_now", "check_next"))
_IS_ABORTED = NODES.c.abort_requested.is_(True)
_LAST = NODES.c.agent_last_heartbeat
_IS_HEARD = {
    in_row: sa.and_(_LAST.is_not(None), _LAST.is_distinct_from(NODES.c.step_heard if in_row else _KNOWN))
    for in_row in (True, False)
}
_NOW_IF_ABORTED = sa.case((_IS_ABORTED, _NOW), else_=_NEXT)
_NOW_IF_HEARD = {
    (in_row, is_abort_known): sa.case(
        (is_heard if is_abort_known else sa.or_(is_heard, _IS_ABORTED), _NOW), else_=_NEXT
    )
    for in_row, is_heard in _IS_HEARD.items()
    for is_abort_known in (True, False)
}


def next_check_at_in_wait(node: models.Node, heard: Heard, deadline: datetime.datetime | None) -> Computed:
    """Return a value for due_at: a deadline (None: never), or now if the wait is over already.

    It is over if there is another heartbeat than the last one that is known, or if an abort is requested. The database
    decides, in the statement that begins the wait: what arrived while the lock was held is not overlooked, even if its
    wake-up was lost. Heartbeats are compared with each other and not with a clock: each host has its own.

    :param node: as the lock returned it; the abort that it shows already is known to the caller.
    :param heard: the last heartbeat that is known; :data:`STEP_HEARD` for the one that the node's row has.
    """
    in_row = heard is STEP_HEARD
    known = {} if in_row else {"check_known": heard}
    expression = _NOW_IF_HEARD[in_row, bool(node.abort_requested)]
    return Computed(expression, {"check_now": clock.now(), "check_next": deadline, **known})


def next_check_at_unless_aborted(
    node: models.Node, moment: datetime.datetime | None
) -> Computed | datetime.datetime | None:
    """Return a value for due_at: a moment (None: never), or now if an abort was requested while the lock was held.

    :param node: as the lock returned it; the abort that it shows already is known.
    """
    if node.abort_requested:
        return moment
    return Computed(_NOW_IF_ABORTED, {"check_now": clock.now(), "check_next": moment})
