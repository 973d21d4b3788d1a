"""Queries on the history of nodes."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ingot.db import listing, models
from ingot.db.engine import Database, retried

SOURCE = listing.Source("Node history record", models.table(models.NodeHistory))


@retried
def add(db: Database, node_id: int, entry: Mapping[str, Any]) -> None:
    """Enters something that changes nothing of the node, and so needs neither a task's write nor its fence."""
    row = {"node_id": node_id, "uuid": uuidutils.generate_uuid(), **entry}
    with db.single() as connection:
        connection.execute(sa.insert(SOURCE.table).values(row))
