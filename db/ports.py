"""Queries on ports."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import listing, models, node_crud, nodes, records, rows
from ingot.db.engine import Database, retried

PORTS = models.table(models.Port)
_PORTGROUPS = models.table(models.Portgroup)


def _of_node(name: str) -> sa.ColumnElement[Any]:
    return sa.select(nodes.NODES.c[name]).where(nodes.NODES.c.id == PORTS.c.node_id).scalar_subquery()


SOURCE = listing.Source(
    "Port",
    PORTS,
    {
        "node_uuid": _of_node("uuid"),
        "portgroup_uuid": sa.select(_PORTGROUPS.c.uuid)
        .where(_PORTGROUPS.c.id == PORTS.c.portgroup_id)
        .scalar_subquery(),
        "node_shard": _of_node("shard"),
        "node_conductor_group": _of_node("conductor_group"),
    },
)


def node_is_free(node_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """The condition that nobody works on the node with an id."""
    return sa.exists().where(nodes.NODES.c.id == node_id, nodes.NODES.c.reservation.is_(None))


def create(db: Database, values: Mapping[str, Any]) -> int:
    """Adds a port; see :func:`rows.insert`."""
    with db.single() as connection:
        return rows.insert(connection, SOURCE, values)


def update(db: Database, port: records.Record, values: Mapping[str, Any]) -> None:
    """Changes a port of a node that nobody works on; see :func:`rows.update`.

    :raises NodeLocked: a conductor works on the node.
    """
    try:
        with db.single() as connection:
            rows.update(connection, SOURCE, port, values, node_is_free(PORTS.c.node_id))
    except errors.ChangedMeanwhile:
        refuse_locked(db, port)
        raise


@retried
def delete(db: Database, port: records.Record) -> None:
    """
    :raises NodeLocked: a conductor works on the node.
    """
    with db.single() as connection:
        gone = rows.delete(connection, SOURCE, port, node_is_free(PORTS.c.node_id))
    if not gone:
        refuse_locked(db, port)


def refuse_locked(db: Database, owned: records.Record) -> None:
    """
    :param owned: a port or portgroup with node_uuid.
    :raises NodeLocked: a conductor works on its node.
    """
    why = node_crud.why_refused(db, owned.node_uuid)
    if isinstance(why, errors.NodeLocked):
        raise why


def booting(db: Database, address: str) -> records.Record | None:
    """The node of the machine that asks with a MAC address what it shall boot: id, uuid, boot_config."""
    wanted = (nodes.NODES.c[name] for name in ("id", "uuid", "boot_config"))
    statement = (
        sa.select(*wanted)
        .join(PORTS, PORTS.c.node_id == nodes.NODES.c.id)
        .where(PORTS.c.address == address, PORTS.c.pxe_enabled.is_(True))
    )
    with db.single() as connection:
        return records.one(connection.execute(statement))
