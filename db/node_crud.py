"""Creating and deleting nodes, and changing what belongs to them: chassis, traits."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.common import clock, errors
from ingot.db import left_behind, listing, models, node_refusals, nodes, outbox, rows
from ingot.db.engine import Database, Deadlock, mark_events, retry_transaction

_NODES = nodes.NODES
_TRAITS = models.table(models.NodeTrait)

_REMOVED = models.table(models.RemovedNode)

_READ_LAST = sa.select(
    *models.columns(_NODES, ("name", "owner", "lessee", "outbox", "outbox_at", "driver_internal_info"))
).where(nodes.IS_UNCHANGED)

_DELETE_OWNED = tuple(
    sa.delete(owned).where(owned.c.node_id == sa.bindparam("own_id"))
    for owned in (models.table(models.Port), models.table(models.Allocation))
)
"""The database deletes with a node whatever else refers to it; port groups only if no port refers to them."""

_DELETE = sa.delete(_NODES).where(
    # The collector of events empties the outbox without a new revision.
    nodes.IS_UNCHANGED,
    _NODES.c.outbox_at.is_not_distinct_from(sa.bindparam("read_outbox_at")),
)

_INITIAL: Mapping[str, object] = {
    **{"maintenance": False, "maintenance_reason": None, "maintenance_holds": []},
    **{"power_state": None, "target_power_state": None},
}
"""What of a new node is no event."""

_EMPTY: Mapping[str, object] = {
    **{
        column.name: getattr(column.default, "arg", None)
        for column in _NODES.c
        if column.name not in ("id", "created_at")
    },
    **rows.json_defaults(_NODES),
}
"""What of a new node is not given."""

MOST_TRAITS = 50
"""Traits that a node can have (measured contract)."""


_CREATE = sa.insert(_NODES)


@retry_transaction
def create(db: Database, values: Mapping[str, object], chassis_uuid: str | None = None) -> nodes.ShownNode:
    """Add a node; see :func:`insert`."""
    with db.single() as connection:
        return insert(connection, values, chassis_uuid)


def insert(connection: sa.Connection, values: Mapping[str, object], chassis_uuid: str | None = None) -> nodes.ShownNode:
    """Add a node.

    :param values: its columns, with its uuid.
    :param chassis_uuid: that of its chassis, if it has one.
    :returns: what reading it would: all of it is known.
    :raises Duplicate: another node has the name or uuid.
    :raises Conflict: the instance is on another node.
    :raises ChangedMeanwhile: its chassis was deleted since it was looked up.
    """
    events = outbox.build_columns(outbox.build_first_events(values, _INITIAL))
    row = {**_EMPTY, "created_at": clock.now(), **values}
    mark_events(connection)
    try:
        connection.execute(_CREATE, {**row, **events})
    except db_exc.DBDuplicateEntry as exc:
        raise node_refusals.duplicate_error(exc, values, str(values["uuid"])) from exc
    except db_exc.DBReferenceError as exc:
        raise rows.owner_gone_error("node", "its chassis") from exc
    return nodes.ShownNode(**row, chassis_uuid=chassis_uuid, allocation_uuid=None, traits=[])


@retry_transaction
def delete(db: Database, node: models.Node) -> None:
    """Remove a node and everything that belongs to it, if it is still as it was read and not locked.

    :param node: as read before; needs id, uuid, revision.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    :raises NotFound: it was deleted meanwhile.
    """
    with db.transaction() as connection:
        found = models.Node.first_of(connection.execute(_READ_LAST, nodes.as_read(node)))
        if found is not None:
            _delete(connection, node, found)
    if found is None:
        raise nodes.refused_write_error(db, node.uuid)


def _delete(connection: sa.Connection, node: models.Node, found: models.Node) -> None:
    for statement in _DELETE_OWNED:
        connection.execute(statement, {"own_id": node.id})
    if connection.execute(_DELETE, {**nodes.as_read(node), "read_outbox_at": found.outbox_at}).rowcount != 1:
        raise Deadlock(what="The database", reason=f"node {node.uuid} was written to while it was deleted")
    last = outbox.build_columns([outbox.build_last_event()])["outbox"]
    about = {name: getattr(found, name) for name in ("name", "owner", "lessee")}
    removed = {"uuid": node.uuid, **about, "outbox": f"{found.outbox or ''}{last}"}
    connection.execute(sa.insert(_REMOVED), removed)
    left_behind.keep(connection, node.uuid, found.driver_internal_info)
    mark_events(connection)


@retry_transaction
def change_traits(
    db: Database,
    node: models.Node,
    add: Collection[str] = (),
    remove: Collection[str] | None = (),
    revision: int | None = None,
) -> None:
    """Add and remove traits of a node that is not locked.

    :param node: needs id and uuid.
    :param remove: these; None for all that are not in ``add``.
    :param revision: write only if the node is still as it was read.
    :raises NodeLocked: a conductor works on the node.
    :raises ChangedMeanwhile: it is not as it was read.
    :raises NotFound: the node was deleted meanwhile.
    :raises Invalid: the node would have too many traits.
    """
    with db.transaction() as connection:
        free = sa.update(_NODES).where(_NODES.c.id == node.id, _NODES.c.reservation.is_(None))
        if revision is not None:
            free = free.where(_NODES.c.revision == revision)
        written = free.values(revision=_NODES.c.revision + 1, **nodes.APPENDED)
        event = nodes.as_appended([outbox.build_node_event("traits")])
        is_free = connection.execute(written, event).rowcount == 1
        mark_events(connection)
        if is_free:
            _change_traits(connection, node, add, remove)
    if not is_free:
        raise nodes.refused_write_error(db, node.uuid)


def _change_traits(
    connection: sa.Connection, node: models.Node, add: Collection[str], remove: Collection[str] | None
) -> None:
    present = read_traits(connection, node.id)
    after = (set() if remove is None else present - set(remove)) | set(add)
    if len(after) > MOST_TRAITS:
        raise errors.Invalid(
            f"Could not modify traits for node {node.uuid} as it would exceed the maximum number of traits per "
            f"node ({len(after)} vs. {MOST_TRAITS})"
        )
    write_traits(connection, node.id, present, after)


def read_traits(connection: sa.Connection, node_id: int) -> set[str]:
    """Return the traits of a node, in the transaction that changes them."""
    return set(connection.execute(sa.select(_TRAITS.c.trait).where(_TRAITS.c.node_id == node_id)).scalars())


def write_traits(connection: sa.Connection, node_id: int, before: set[str], after: set[str]) -> None:
    """Write what becomes different of a node's traits."""
    if gone := before - after:
        connection.execute(sa.delete(_TRAITS).where(_TRAITS.c.node_id == node_id, _TRAITS.c.trait.in_(gone)))
    if new := after - before:
        connection.execute(sa.insert(_TRAITS), [{"node_id": node_id, "trait": trait} for trait in sorted(new)])


CHASSIS = rows.Rows(listing.Source("Chassis", models.Chassis), "nodes. Move or delete them")
