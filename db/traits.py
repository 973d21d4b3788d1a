"""Queries on the traits of nodes."""

from collections.abc import Collection

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import models, nodes, records
from ingot.db.engine import Database, retried

_TRAITS = models.table(models.NodeTrait)

MOST = 50
"""Traits that a node can have (measured contract)."""


def of_nodes(db: Database, node_ids: Collection[int]) -> dict[int, list[str]]:
    """The sorted traits of nodes, by the node's id; nodes without traits are absent. One statement."""
    statement = sa.select(_TRAITS.c.node_id, _TRAITS.c.trait).where(_TRAITS.c.node_id.in_(node_ids))
    found: dict[int, list[str]] = {}
    with db.single() as connection:
        for node_id, trait in connection.execute(statement.order_by(_TRAITS.c.trait)):
            found.setdefault(node_id, []).append(trait)
    return found


@retried
def change(
    db: Database,
    node: records.Record,
    add: Collection[str] = (),
    remove: Collection[str] | None = (),
    revision: int | None = None,
) -> None:
    """Adds and removes traits of a node that nobody works on.

    :param node: needs id and uuid.
    :param remove: these; None for all that are not in ``add``.
    :param revision: write only if the node is still as it was read.
    :raises NodeLocked: a conductor works on the node.
    :raises ChangedMeanwhile: it is not as it was read.
    :raises NotFound: the node was deleted meanwhile.
    :raises Invalid: the node would have too many traits.
    """
    table = nodes.NODES
    with db.transaction() as connection:
        free = sa.update(table).where(table.c.id == node.id, table.c.reservation.is_(None))
        if revision is not None:
            free = free.where(table.c.revision == revision)
        if connection.execute(free.values(revision=table.c.revision + 1)).rowcount != 1:
            raise nodes.why_refused(db, node.uuid)
        own = _TRAITS.c.node_id == node.id
        present = set(connection.execute(sa.select(_TRAITS.c.trait).where(own)).scalars())
        after = (set() if remove is None else present - set(remove)) | set(add)
        if len(after) > MOST:
            raise errors.Invalid(
                f"Could not modify traits for node {node.uuid} as it would exceed the maximum number of traits per "
                f"node ({len(after)} vs. {MOST})"
            )
        gone, new = present - after, after - present
        if gone:
            connection.execute(sa.delete(_TRAITS).where(own, _TRAITS.c.trait.in_(gone)))
        if new:
            connection.execute(sa.insert(_TRAITS), [{"node_id": node.id, "trait": trait} for trait in sorted(new)])
