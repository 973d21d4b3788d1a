"""Queries on which machines are enrolled: what a DHCP server has to know of ports."""

from typing import NamedTuple

import sqlalchemy as sa

from ingot.db import models, nodes
from ingot.db.engine import Database

_PORTS = models.table(models.Port)
_BOOTING = sa.and_(_PORTS.c.node_id == nodes.NODES.c.id, _PORTS.c.pxe_enabled.is_(True))

_READ = sa.select(_PORTS.c.address, nodes.NODES.c.boot_interface).join(nodes.NODES, _BOOTING).order_by(_PORTS.c.address)

# A port that is added or taken away changes one of these, and so does a node's boot interface. A port that is changed
# does too, unless another has a later updated_at: clocks of two writers differ, and commits overtake each other.
_READ_MARK = sa.select(
    sa.func.count(_PORTS.c.id),
    sa.func.max(_PORTS.c.id),
    sa.func.max(_PORTS.c.created_at),
    sa.func.max(_PORTS.c.updated_at),
    sa.func.sum(sa.case((nodes.NODES.c.boot_interface == "pxe", _PORTS.c.id), else_=0)),
).join(nodes.NODES, _PORTS.c.node_id == nodes.NODES.c.id)

Mark = tuple[object, ...]


class Enrolled(NamedTuple):
    """A port that its machine may boot from."""

    address: str
    boot_interface: str | None


def read_mark(db: Database) -> Mark:
    """Return what usually is another when :func:`list_all` is: one statement, whatever the size of the fleet."""
    with db.single() as connection:
        return tuple(connection.execute(_READ_MARK).one())


def list_all(db: Database) -> list[Enrolled]:
    """Return all ports with pxe_enabled, in the order of their MAC addresses."""
    with db.single() as connection:
        return [Enrolled(*row) for row in connection.execute(_READ)]
