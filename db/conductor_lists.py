"""Conductors for showing and listing."""

import sqlalchemy as sa

from ingot.db import conductors, listing
from ingot.db.engine import Database

SOURCE = listing.Source("Conductor", conductors.CONDUCTORS, key="hostname")


def drivers(db: Database) -> dict[int, list[str]]:
    """The sorted hardware types and classic drivers that conductors have enabled, by the conductor's id."""
    types = sa.select(conductors.INTERFACES.c.conductor_id, conductors.INTERFACES.c.hardware_type).distinct()
    classic = sa.select(conductors.CONDUCTORS.c.id, conductors.CONDUCTORS.c.classic_drivers)
    with db.single() as connection:
        found: dict[int, list[str]] = {one: list(names) for one, names in connection.execute(classic)}
        for conductor_id, hardware_type in connection.execute(types):
            found.setdefault(conductor_id, []).append(hardware_type)
    return {conductor_id: sorted(names) for conductor_id, names in found.items()}
