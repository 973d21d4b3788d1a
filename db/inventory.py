"""What the last inspection of a machine found in it."""

from typing import Any

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import models, records
from ingot.db.engine import Database, retried

_INVENTORY = models.table(models.NodeInventory)


def get(db: Database, node: records.Record) -> records.Record:
    """
    :param node: needs id and uuid.
    :raises NotFound: the machine was not inspected yet, or its inspection left no inventory.
    """
    with db.single() as connection:
        found = records.one(connection.execute(sa.select(_INVENTORY).where(_INVENTORY.c.node_id == node.id)))
    if found is None:
        raise errors.NotFound(f"Node inventory record for node {node.uuid} could not be found: inspect the node first.")
    return found


@retried
def save(db: Database, node_id: int, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
    """Keeps what an inspection found, in place of what the one before had found.

    :param plugin_data: what the ramdisk sent beside the inventory.
    """
    with db.transaction() as connection:
        connection.execute(sa.delete(_INVENTORY).where(_INVENTORY.c.node_id == node_id))
        found = {"node_id": node_id, "inventory": inventory, "plugin_data": plugin_data}
        connection.execute(sa.insert(_INVENTORY).values(found))
