"""Queries on volume connectors and volume targets: how machines reach volumes, and which."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import errors, states
from ingot.db import listing, models, nodes, ports, records, rows
from ingot.db.engine import Database, retried


class Volumes:
    """One of the two tables; both belong to a node and follow the same rules."""

    def __init__(self, noun: str, table: sa.Table) -> None:
        self.table = table
        of_node = {
            f"node_{name}": sa.select(nodes.NODES.c[name]).where(nodes.NODES.c.id == table.c.node_id).scalar_subquery()
            for name in ("uuid", "owner", "lessee")
        }
        self.source = listing.Source(noun, table, of_node)

    def create(self, db: Database, values: Mapping[str, Any]) -> int:
        """Adds a row; see :func:`rows.insert`. That somebody works on the node does not matter."""
        with db.single() as connection:
            return rows.insert(connection, self.source, values)

    def update(self, db: Database, volume: records.Record, values: Mapping[str, Any]) -> None:
        """Changes a row of a machine that is off; see :func:`rows.update`.

        :raises NodeLocked: a conductor works on the node.
        :raises Invalid: the machine is not known to be off.
        """
        its_node = nodes.NODES.c.id == self.table.c.node_id
        is_off = sa.exists().where(its_node, nodes.NODES.c.power_state == states.POWER_OFF)
        try:
            with db.single() as connection:
                free = ports.node_is_free(self.table.c.node_id)
                rows.update(connection, self.source, volume, values, sa.and_(is_off, free))
        except errors.ChangedMeanwhile:
            refuse_running(db, volume)
            ports.refuse_locked(db, volume)
            raise

    @retried
    def delete(self, db: Database, volume: records.Record) -> None:
        """Removes a row. That somebody works on the node does not matter."""
        with db.single() as connection:
            rows.delete(connection, self.source, volume)


def refuse_running(db: Database, volume: records.Record) -> None:
    """
    :raises Invalid: the machine that the row belongs to is not known to be off.
    """
    node = nodes.get(db, volume.node_uuid, ("uuid", "power_state"))
    if node.power_state != states.POWER_OFF:
        raise errors.Invalid(
            f"Volume connectors and targets can be changed while the machine is off; node {node.uuid} is in power "
            f"state {node.power_state or 'unknown'}. Power it off first, or delete the record and make a new one."
        )


CONNECTORS = Volumes("Volume connector", models.table(models.VolumeConnector))
TARGETS = Volumes("Volume target", models.table(models.VolumeTarget))
