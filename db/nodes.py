"""Queries on one node: reading it, the API's compare-and-set, the conductor's lock and its fenced writes.

The events of a write travel in the outbox, a column of the row that is written. The statement that changes the node
also appends to its outbox. So an event costs no statement and no transaction of its own, exists if and only if the
change does, and no caller can forget it. ``ingot.db.events`` takes it from there.
"""

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import orjson
import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.db import models, rows
from ingot.db.engine import Database, retry_transaction
from ingot.db.models.base import AnyColumn

NODES = models.table(models.Node)
_CHASSIS = models.table(models.Chassis)
_ALLOCATIONS = models.table(models.Allocation)
_TRAITS = models.table(models.NodeTrait)
_STEP_RUNS = models.table(models.StepRun)
_HISTORY = models.table(models.NodeHistory)

COMPUTED: Mapping[str, AnyColumn] = {
    "chassis_uuid": sa.select(_CHASSIS.c.uuid).where(_CHASSIS.c.id == NODES.c.chassis_id).scalar_subquery(),
    "allocation_uuid": sa.select(_ALLOCATIONS.c.uuid).where(_ALLOCATIONS.c.node_id == NODES.c.id).scalar_subquery(),
}
"""What :class:`ShownNode` has beside the columns of the table."""

_COLUMNS = {**NODES.c, **{name: column.label(name) for name, column in COMPUTED.items()}}

# A config drive may be megabytes and only one step needs it; the outbox is for the collector of events.
USUAL = [column for column in NODES.c if column.name not in ("configdrive", "outbox", "outbox_at")]

ExtraWrite = Callable[[sa.Connection], None]
"""Writes what belongs to a node in other tables, in the transaction that writes to the node."""

Event = Json
"""An event: its ``kind``, and its data."""


class ShownNode(models.Node):
    """A node, with what is shown of its chassis and allocation; traits and conductor are completed by the API."""

    chassis_uuid: str | None
    allocation_uuid: str | None
    traits: list[str]
    conductor: str | None


class OfNode(models.Row):
    """A row that belongs to a node, read with what is shown of the node."""

    node_uuid: str
    node_owner: str | None
    node_lessee: str | None


class _EventType(NamedTuple):
    """Columns of a node whose change is an event.

    :param columns: of which one must change.
    :param details: what the event shows besides, if it is in the same write.
    """

    kind: str
    columns: tuple[str, ...]
    details: tuple[str, ...] = ()


_EVENT_TYPES = (
    _EventType("power", ("power_state", "target_power_state"), ("last_error",)),
    _EventType("maintenance", ("maintenance", "maintenance_reason", "maintenance_holds"), ("fault",)),
    _EventType("provision", ("provision_state",), ("target_provision_state", "last_error")),
)

_LONGEST_TEXT = 2000  # characters of a text in an event

_OF_A_STEP = ("run_id", "flow", "step_index", "attempt", "interface", "step", "state", "conductor", "error")


def build_events(values: Mapping[str, object], before: Mapping[str, object] | None = None) -> list[Event]:
    """Return the events of writing columns of a node.

    :param values: the columns that are written.
    :param before: what they held, as far as that is known; a column that keeps its value has not changed.
    """
    known = before or {}
    return [
        {"kind": found.kind, **{name: values[name] for name in (*found.columns, *found.details) if name in values}}
        for found in _EVENT_TYPES
        if any(name in values and (name not in known or known[name] != values[name]) for name in found.columns)
    ]


def build_step_event(attempt: Mapping[str, object]) -> Event:
    """Return the event of an attempt of a step that begins (state ``running``) or has ended.

    :param attempt: a row of the step runs, or the beginning of one.
    """
    return {"kind": "step", **{name: attempt.get(name) for name in _OF_A_STEP}}


def shorten(value: Any) -> Any:
    """Return the data of an event with its long texts cut: many events stand in the memory of each API."""
    if isinstance(value, str):
        more = len(value) - _LONGEST_TEXT
        return value if more <= 0 else f"{value[:_LONGEST_TEXT]}... ({more} more characters)"
    if isinstance(value, Mapping):
        return {name: shorten(one) for name, one in value.items()}
    return [shorten(one) for one in value] if isinstance(value, list) else value


def outbox_columns(events: Iterable[Event], new: bool = False) -> dict[str, object]:
    """Return the columns to write with a change so that its events are in the outbox; none if there are no events.

    :param new: the row is new and has nothing in its outbox that must stay there.
    """
    moment = clock.now()
    lines = "".join(orjson.dumps({"at": moment, **shorten(event)}).decode() + "\n" for event in events)
    if not lines or new:
        return {"outbox": lines, "outbox_at": moment} if lines else {}
    return {
        "outbox": sa.func.coalesce(NODES.c.outbox, "").concat(lines),
        "outbox_at": sa.func.coalesce(NODES.c.outbox_at, moment),
    }


def ident_condition(ident: str) -> sa.ColumnElement[bool]:
    """Return the condition that a uuid or a name stands for."""
    return NODES.c.uuid == ident if uuidutils.is_uuid_like(ident) else NODES.c.name == ident


def get(db: Database, ident: str, columns: Collection[str] | None = None) -> ShownNode:
    """Return a node by uuid or name.

    :param columns: names of the columns to read; by default those of the table, without configdrive and outbox.
    :raises NotFound: there is no such node.
    """
    selected = USUAL if columns is None else [_COLUMNS[name] for name in columns]
    node = db.read_first(ShownNode, sa.select(*selected).where(ident_condition(ident)))
    if node is None:
        raise errors.NotFound(noun="Node", ident=ident)
    return node


def traits_by_node(db: Database, node_ids: Collection[int]) -> dict[int, list[str]]:
    """Return the sorted traits of nodes by the node's id; nodes without traits are absent. One statement."""
    statement = sa.select(_TRAITS.c.node_id, _TRAITS.c.trait).where(_TRAITS.c.node_id.in_(node_ids))
    return db.read_groups(statement.order_by(_TRAITS.c.trait))


def is_unchanged(node: models.Node) -> sa.ColumnElement[bool]:
    """Return the condition that a node is still as it was read, and not locked.

    :param node: needs id and revision.
    """
    return sa.and_(NODES.c.id == node.id, NODES.c.revision == node.revision, NODES.c.reservation.is_(None))


def compare_and_set(
    db: Database, node: models.Node, values: Mapping[str, object], extra_writes: Collection[ExtraWrite] = ()
) -> None:
    """Write what a request changes, if the node is still as it was read and not locked.

    :param node: as read before; needs id, uuid, revision.
    :param extra_writes: write what belongs to the node in other tables.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    :raises NotFound: it was deleted meanwhile.
    """
    if not _update(db, is_unchanged(node), values, node.uuid, vars(node), extra_writes):
        raise refused_write_error(db, node.uuid)


def set_always(db: Database, uuid: str, values: Mapping[str, object], revision: int | None = None) -> None:
    """Write columns that no task writes, whether the node is locked or not.

    :param revision: write only if the node is still as it was read.
    :raises NotFound: there is no such node.
    :raises ChangedMeanwhile: it is not as it was read.
    """
    own = NODES.c.uuid == uuid
    if not _update(db, own if revision is None else sa.and_(own, NODES.c.revision == revision), values, uuid):
        raise errors.ChangedMeanwhile(node=get(db, uuid, ("uuid",)).uuid)


def request_abort(db: Database, uuid: str, flow: str) -> bool:
    """Request the abort of a flow, whether the node is locked or not; False if the flow is not the node's any more."""
    values = {"abort_requested": True, "due_at": clock.now()}
    return _update(db, sa.and_(NODES.c.uuid == uuid, NODES.c.flow == flow), values, uuid)


@retry_transaction
def _update(
    db: Database,
    condition: sa.ColumnElement[bool],
    values: Mapping[str, object],
    uuid: str,
    before: Mapping[str, object] | None = None,
    extra_writes: Collection[ExtraWrite] = (),
) -> bool:
    outbox = outbox_columns(build_events(values, before))
    statement = sa.update(NODES).where(condition).values(**values, **outbox, revision=NODES.c.revision + 1)
    try:
        with db.transaction() if extra_writes else db.single() as connection:
            written = connection.execute(statement).rowcount == 1
            for write in extra_writes if written else ():
                write(connection)
        return written
    except db_exc.DBDuplicateEntry as exc:
        raise duplicate_error(exc, values, uuid) from exc
    except db_exc.DBReferenceError as exc:
        raise rows.owner_gone_error("node", "its chassis") from exc


def duplicate_error(exc: db_exc.DBDuplicateEntry, values: Mapping[str, object], uuid: str) -> errors.IngotError:
    """Return the error for a unique value that another node has."""
    column = rows.find_duplicate(exc, NODES)
    if column == "instance_uuid":
        return errors.Conflict(
            reason=f"Instance {values.get('instance_uuid')} is already associated with a node, it cannot be associated "
            f"with this other node {uuid}"
        )
    if column == "name":
        return errors.Duplicate(noun="node", field="name", value=values.get("name"))
    return errors.Duplicate(noun="node", field="UUID", value=uuid)


def refused_write_error(db: Database, uuid: str) -> errors.IngotError:
    """Return the error for a write that found nothing to write to: the node is locked, was changed, or is gone.

    :raises NotFound: it is gone.
    """
    node = get(db, uuid, ("uuid", "reservation", "lock_purpose", "locked_at"))
    return errors.ChangedMeanwhile(node=node.uuid) if node.reservation is None else locked_error(node)


def locked_error(node: models.Node) -> errors.NodeLocked:
    """Return the error that names the holder of a node's lock, since when and for what."""
    if node.reservation is None or node.locked_at is None:
        return errors.NodeLocked(f"Node {node.uuid} was locked until just now; please retry.")
    return errors.NodeLocked(
        node=node.uuid, host=node.reservation, purpose=node.lock_purpose, since=clock.iso(node.locked_at)
    )


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
    unlocked = [NODES.c.reservation.is_(None), *([NODES.c.due_at <= clock.now()] if if_due else [])]
    free = sa.or_(sa.and_(*unlocked), NODES.c.reservation.in_(steal_from))
    locked_at = clock.now()
    values = {
        "reservation": host,
        "lock_epoch": NODES.c.lock_epoch + 1,
        "lock_attempts": NODES.c.lock_attempts + 1,
        "lock_purpose": purpose,
        "locked_at": locked_at,
        "updated_at": NODES.c.updated_at,
    }
    with db.single() as connection:
        result = connection.execute(sa.update(NODES).where(ident_condition(ident), free).values(values))
        node = models.Node.first_of(connection.execute(sa.select(*USUAL).where(ident_condition(ident))))
    if node is None:
        raise errors.NotFound(noun="Node", ident=ident)
    # The moment identifies this lock: it may have been stolen again before the second statement, and a task that works
    # with the epoch of another conductor would not be fenced.
    if result.rowcount != 1 or (node.reservation, node.locked_at) != (host, locked_at):
        raise locked_error(node)
    return node


def _still_locked(node: models.Node) -> sa.ColumnElement[bool]:
    own, epoch = NODES.c.id == node.id, NODES.c.lock_epoch == node.lock_epoch
    return sa.and_(own, epoch, NODES.c.reservation == node.reservation)


def holds_lock(db: Database, node: models.Node) -> bool:
    """Return whether a node is still locked as :func:`lock` returned it."""
    return bool(db.read_column(sa.select(NODES.c.id).where(_still_locked(node))))


def lock_lost_error(node: models.Node) -> errors.LockLost:
    """Return the error for a lock, as :func:`lock` returned it, that another conductor holds now."""
    return errors.LockLost(node=node.uuid, epoch=node.lock_epoch, host=node.reservation)


def hold_row(connection: sa.Connection, node: models.Node) -> None:
    """Keep the node's row until the transaction ends, if it is still locked as :func:`lock` returned it.

    :raises LockLost: the lock was taken over.
    """
    held = sa.update(NODES).where(_still_locked(node)).values(revision=NODES.c.revision + 1)
    if connection.execute(held).rowcount != 1:
        raise lock_lost_error(node)


_FREE: Mapping[str, None] = {"reservation": None, "lock_purpose": None, "locked_at": None}

UNLOCKED: Mapping[str, int | None] = {**_FREE, "lock_attempts": 0}
"""The values that give a lock back; part of a task's last write."""


def release_stale(db: Database, host: str, uuid: str | None = None) -> int:
    """Give back the locks of a conductor that is dead, or that starts again under its name.

    :param uuid: only this node's lock.
    :returns: how many there were.
    """
    stale = sa.update(NODES).where(NODES.c.reservation == host)
    if uuid is not None:
        stale = stale.where(NODES.c.uuid == uuid)
    return db.write(stale.values(**_FREE, lock_epoch=NODES.c.lock_epoch + 1))


@retry_transaction
def write_locked(
    db: Database,
    node: models.Node,
    values: Mapping[str, object],
    step_runs: Iterable[Mapping[str, object]] = (),
    history: Iterable[Mapping[str, object]] = (),
    events: Iterable[Event] = (),
    extra_writes: Collection[ExtraWrite] = (),
) -> None:
    """Write for a task: the node's row with its step runs, history and events, all or nothing.

    :param node: as the lock returned it; its id, lock_epoch and reservation are the fence.
    :param step_runs: new rows, without node_id.
    :param history: new rows, without node_id and uuid.
    :param events: the events of this write.
    :param extra_writes: write what belongs to the node in other tables.
    :raises LockLost: the lock was taken over; nothing was written.
    """
    outbox = outbox_columns(events)
    statement = sa.update(NODES).where(_still_locked(node)).values(**values, **outbox, revision=NODES.c.revision + 1)
    new_runs = [{"node_id": node.id, **row} for row in step_runs]
    entries = list(history)
    writes = [*([write_history(node, entries)] if entries else []), *extra_writes]
    with db.transaction() if new_runs or writes else db.single() as connection:
        if connection.execute(statement).rowcount != 1:
            raise lock_lost_error(node)
        if new_runs:
            connection.execute(sa.insert(_STEP_RUNS), new_runs)
        for write in writes:
            write(connection)


def write_history(node: models.Node, entries: Iterable[Mapping[str, object]]) -> ExtraWrite:
    """Return the write that adds rows to a node's history.

    :param entries: the rows, without node_id and uuid.
    """
    new = [{"node_id": node.id, "uuid": uuidutils.generate_uuid(), **entry} for entry in entries]

    def write(connection: sa.Connection) -> None:
        connection.execute(sa.insert(_HISTORY), new)

    return write


LAST_HEARD: sa.ColumnElement[datetime.datetime | None] = NODES.c.agent_last_heartbeat
"""A value for step_heard: the last heartbeat there is when the statement runs, whatever was read before."""

STEP_HEARD: sa.ColumnElement[datetime.datetime | None] = NODES.c.step_heard

Heard = datetime.datetime | sa.ColumnElement[datetime.datetime | None] | None


def next_check_at_in_wait(
    node: models.Node, heard: Heard, deadline: datetime.datetime | None
) -> sa.ColumnElement[datetime.datetime | None]:
    """Return a value for due_at: a deadline (None: never), or now if the wait is over already.

    It is over if there is another heartbeat than the last one that is known, or if an abort is requested. The database
    decides, in the statement that begins the wait: what arrived while the lock was held is not overlooked, even if its
    wake-up was lost. Heartbeats are compared with each other and not with a clock: each host has its own.

    :param node: as the lock returned it; the abort that it shows already is known to the caller.
    :param heard: the last heartbeat that is known; :data:`STEP_HEARD` for the one that the node's row has.
    """
    is_over = sa.and_(LAST_HEARD.is_not(None), LAST_HEARD.is_distinct_from(heard))
    if not node.abort_requested:
        is_over = sa.or_(is_over, NODES.c.abort_requested.is_(True))
    return sa.case((is_over, clock.now()), else_=sa.literal(deadline, models.moment()))


def next_check_at_unless_aborted(
    node: models.Node, moment: datetime.datetime | None
) -> sa.ColumnElement[datetime.datetime | None] | datetime.datetime | None:
    """Return a value for due_at: a moment (None: never), or now if an abort was requested while the lock was held.

    :param node: as the lock returned it; the abort that it shows already is known.
    """
    if node.abort_requested:
        return moment
    return sa.case((NODES.c.abort_requested.is_(True), clock.now()), else_=sa.literal(moment, models.moment()))
