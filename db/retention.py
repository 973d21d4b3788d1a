"""Keeps the journal and the history of each node at a bounded length (called by a conductor's periodic
task)."""

import sqlalchemy as sa

from ingot.db import models
from ingot.db.engine import Database, retried

_BATCH = 500  # rows a statement: what SQLite's single writer and a replicated database bear beside their work
_BOUNDED = (models.table(models.StepRun), models.table(models.NodeHistory))


def prune(db: Database, keep: int, nodes: int = 100) -> int:
    """Deletes all but the newest step runs and history entries of each node.

    Any number of conductors may do this at once: what is deleted is told by its id, not by its number.

    :param keep: rows of either kind that a node keeps ([conductor] node_history_max_entries).
    :param nodes: how many nodes to take care of at most, those with the most rows first; the next call goes
        on.
    :returns: how many rows were deleted; 0 when all is within bounds.
    """
    return sum(
        _shorten(db, table, node_id, keep) for table in _BOUNDED for node_id in _too_long(db, table, keep, nodes)
    )


def _too_long(db: Database, table: sa.Table, keep: int, limit: int) -> list[int]:
    """Ids of nodes with too many rows; counted in the index on node_id alone."""
    rows = sa.func.count()
    statement = sa.select(table.c.node_id).group_by(table.c.node_id).having(rows > keep)
    with db.single() as connection:
        return list(connection.execute(statement.order_by(rows.desc()).limit(limit)).scalars())


def _shorten(db: Database, table: sa.Table, node_id: int, keep: int) -> int:
    of_node = sa.select(table.c.id).where(table.c.node_id == node_id)
    with db.single() as connection:
        newest_to_go = connection.execute(of_node.order_by(table.c.id.desc()).limit(1).offset(keep)).scalar()
    if newest_to_go is None:
        return 0
    to_go = of_node.where(table.c.id <= newest_to_go).order_by(table.c.id).limit(_BATCH)
    deleted = 0
    while batch := _delete(db, table, to_go):
        deleted += batch
    return deleted


@retried
def _delete(db: Database, table: sa.Table, selected: sa.Select[tuple[int]]) -> int:
    # Two statements, because MySQL does not delete from a table that a subquery reads.
    with db.single() as connection:
        ids = connection.execute(selected).scalars().all()
        return connection.execute(sa.delete(table).where(table.c.id.in_(ids))).rowcount if ids else 0
