"""Queries on the history of nodes."""

from ingot.common import errors
from ingot.db import listing, models, records
from ingot.db.engine import Database

SOURCE = listing.Source("Node history record", models.table(models.NodeHistory))


def get(db: Database, node_id: int, uuid: str) -> records.Record:
    """An entry of a node's history.

    :raises NotFound: the node has no such entry.
    """
    entry = listing.one(db, SOURCE, listing.Condition("uuid", "equals", uuid))
    if entry is None or entry.node_id != node_id:
        raise errors.NotFound(noun=SOURCE.noun, ident=uuid[:80])
    return entry
