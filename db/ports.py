"""Queries on ports."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import listing, models, nodes, records, rows
from ingot.db.engine import Database, retried

PORTS = models.table(models.Port)
_PORTGROUPS = models.table(models.Portgroup)
_NETWORK = frozenset(("portgroup_id", "physical_network"))


SOURCE = listing.Source(
    "Port",
    PORTS,
    {
        **nodes.of_owned(PORTS, "uuid", "owner", "lessee", "shard", "conductor_group"),
        "portgroup_uuid": sa.select(_PORTGROUPS.c.uuid)
        .where(_PORTGROUPS.c.id == PORTS.c.portgroup_id)
        .scalar_subquery(),
    },
)


def node_is_free(node_id: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """The condition that nobody works on the node with an id."""
    return sa.exists().where(nodes.NODES.c.id == node_id, nodes.NODES.c.reservation.is_(None))


@retried
def create(db: Database, values: Mapping[str, Any]) -> int:
    """Adds a port; see :func:`rows.insert`.

    :raises Conflict: the ports of its portgroup are on another physical network.
    """
    joins = values.get("portgroup_id") is not None
    with db.transaction() if joins else db.single() as connection:
        if joins:
            _refuse_another_network(connection, values)
        return rows.insert(connection, SOURCE, values)


@retried
def update(db: Database, port: records.Record, values: Mapping[str, Any]) -> None:
    """Changes a port of a node that nobody works on; see :func:`rows.update`.

    :raises NodeLocked: a conductor works on the node.
    :raises Conflict: the ports of its portgroup are on another physical network.
    """
    after = {**vars(port), **values}
    moves = after["portgroup_id"] is not None and not _NETWORK.isdisjoint(values)
    try:
        with db.transaction() if moves else db.single() as connection:
            if moves:
                _refuse_another_network(connection, after)
            rows.update(connection, SOURCE, port, values, node_is_free(PORTS.c.node_id))
    except errors.ChangedMeanwhile:
        refuse_locked(db, port)
        raise


def _refuse_another_network(connection: sa.Connection, port: Mapping[str, Any]) -> None:
    """
    :param port: what its row will be.
    :raises Conflict: another port of its portgroup is on another physical network, or on none where this is on one.
    """
    # Of two ports that join at once the second waits here for the first; on two nodes of a Galera cluster it fails and
    # is tried again, because both write this.
    group = sa.update(_PORTGROUPS).where(_PORTGROUPS.c.id == port["portgroup_id"])
    unseen = {"updated_at": _PORTGROUPS.c.updated_at}  # for clients the portgroup has not changed
    connection.execute(group.values(joined=_PORTGROUPS.c.joined + 1, **unseen))
    others = sa.select(PORTS.c.physical_network).where(
        PORTS.c.portgroup_id == port["portgroup_id"], PORTS.c.id != port.get("id", 0)
    )
    for network in connection.execute(others.distinct()).scalars():
        if network != port.get("physical_network"):
            raise errors.Conflict(
                reason=f"Invalid physical_network: {port.get('physical_network')!r}. The ports of a portgroup are on "
                f"one physical network; those of portgroup {_uuid_of(connection, port)} have {network!r}."
            )


def _uuid_of(connection: sa.Connection, port: Mapping[str, Any]) -> str | None:
    group = sa.select(_PORTGROUPS.c.uuid).where(_PORTGROUPS.c.id == port["portgroup_id"])
    return connection.execute(group).scalar()


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
    why = nodes.why_refused(db, owned.node_uuid)
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
