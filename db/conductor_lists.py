"""Conductors for showing and listing."""

import sqlalchemy as sa

from ingot.db import conductors, listing
from ingot.db.engine import Database

SOURCE = listing.Source("Conductor", conductors.CONDUCTORS, key="hostname")


def hardware_types(db: Database) -> dict[int, list[str]]:
    """The sorted hardware types that conductors have enabled, by the conductor's id. One statement."""
    table = conductors.INTERFACES
    statement = sa.select(table.c.conductor_id, table.c.hardware_type).distinct().order_by(table.c.hardware_type)
    found: dict[int, list[str]] = {}
    with db.single() as connection:
        for conductor_id, hardware_type in connection.execute(statement):
            found.setdefault(conductor_id, []).append(hardware_type)
    return found
