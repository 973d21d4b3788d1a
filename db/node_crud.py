"""Creating and deleting nodes, and changing what belongs to them: chassis, traits."""

from collections.abc import Collection, Mapping

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.common import errors
from ingot.db import events, listing, models, nodes, rows
from ingot.db.engine import Database, retry_transaction

_NODES = nodes.NODES
_TRAITS = models.table(models.NodeTrait)

_OWNED = tuple(
    models.table(model)
    for model in (
        *(models.Port, models.Portgroup, models.NodeTrait, models.NodeTag, models.StepRun),
        *(models.NodeHistory, models.Allocation),
    )
)
"""What is deleted with a node, children of others first."""

_INITIAL: Mapping[str, object] = {
    **{"maintenance": False, "maintenance_reason": None, "maintenance_holds": []},
    **{"power_state": None, "target_power_state": None},
}
"""What of a new node is no event."""

MOST_TRAITS = 50
"""Traits that a node can have (measured contract)."""


@retry_transaction
def create(db: Database, values: Mapping[str, object]) -> None:
    """Add a node.

    :param values: its columns, with its uuid.
    :raises Duplicate: another node has the name or uuid.
    :raises Conflict: the instance is on another node.
    :raises ChangedMeanwhile: its chassis was deleted since it was looked up.
    """
    outbox = nodes.outbox_columns(nodes.build_events(values, _INITIAL), new=True)
    try:
        with db.single() as connection:
            connection.execute(sa.insert(_NODES).values({**rows.json_defaults(_NODES), **values, **outbox}))
    except db_exc.DBDuplicateEntry as exc:
        raise nodes.duplicate_error(exc, values, str(values["uuid"])) from exc
    except db_exc.DBReferenceError as exc:
        raise rows.owner_gone_error("node", "its chassis") from exc


@events.retry_numbering
def delete(db: Database, node: models.Node) -> None:
    """Remove a node and everything that belongs to it, if it is still as it was read and not locked.

    :param node: as read before; needs id, uuid, revision.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    :raises NotFound: it was deleted meanwhile.
    """
    with db.transaction() as connection:
        # Held until the end: no conductor can lock the node between this write and its end.
        held = sa.update(_NODES).where(nodes.is_unchanged(node)).values(revision=_NODES.c.revision + 1)
        deleted = connection.execute(held).rowcount == 1
        if deleted:
            events.move_last(connection, node.id, {"kind": "provision", "provision_state": None})
            for owned in _OWNED:
                connection.execute(sa.delete(owned).where(owned.c.node_id == node.id))
            connection.execute(sa.delete(_NODES).where(_NODES.c.id == node.id))
    if not deleted:
        raise nodes.refused_write_error(db, node.uuid)


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
        if connection.execute(free.values(revision=_NODES.c.revision + 1)).rowcount != 1:
            raise nodes.refused_write_error(db, node.uuid)
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
