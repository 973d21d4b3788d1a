"""Lists of nodes: for the API with their chassis and by its filters, for the ring, for what conductors do to many."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from ingot.common import states
from ingot.db import listing, maintenance, models, nodes, records
from ingot.db.engine import Database

_CHASSIS = models.table(models.Chassis)
_ALLOCATIONS = models.table(models.Allocation)

SOURCE = listing.Source(
    "Node",
    nodes.NODES,
    {
        "chassis_uuid": sa.select(_CHASSIS.c.uuid).where(_CHASSIS.c.id == nodes.NODES.c.chassis_id).scalar_subquery(),
        "allocation_uuid": sa.select(_ALLOCATIONS.c.uuid)
        .where(_ALLOCATIONS.c.node_id == nodes.NODES.c.id)
        .scalar_subquery(),
    },
)


def called(db: Database, idents: Collection[str]) -> list[records.Record]:
    """UUID, name, owner and lessee of the nodes that have one of these as UUID or as name."""
    columns = records.columns(nodes.NODES, ("uuid", "name", "owner", "lessee"))
    named = sa.or_(nodes.NODES.c.uuid.in_(idents), nodes.NODES.c.name.in_(idents))
    with db.single() as connection:
        return records.many(connection.execute(sa.select(*columns).where(named)))


def ring_keys(db: Database) -> Sequence[records.Record]:
    """What the hash ring needs to know of every node."""
    names = ("uuid", "driver", "conductor_group")
    with db.single() as connection:
        return records.many(connection.execute(sa.select(*records.columns(nodes.NODES, names))))


def shards(db: Database) -> list[tuple[str | None, int]]:
    """The shards by name with the number of their nodes; first, under None, the nodes that are in no shard."""
    shard = nodes.NODES.c.shard
    statement = sa.select(shard, sa.func.count()).group_by(shard)
    with db.single() as connection:
        found = [(name, count) for name, count in connection.execute(statement)]
    return sorted(found, key=lambda one: (one[0] is not None, one[0] or ""))


def for_power_sync(db: Database, group: str, drivers: Collection[str]) -> list[records.Record]:
    """Nodes of a group with these drivers whose power state may be read: unlocked, in a stable or failed state, nothing
    due, no hold forbids it. Of each what tells whose it is: uuid, driver, conductor_group."""
    table = nodes.NODES
    names = ("uuid", "driver", "conductor_group", *maintenance.FLAG)
    statement = sa.select(*records.columns(table, names)).where(
        table.c.conductor_group == group,
        table.c.driver.in_(list(drivers)),
        table.c.reservation.is_(None),
        table.c.due_at.is_(None),
        table.c.provision_state.in_((states.STABLE | states.FAILED) - {states.ENROLL}),
    )
    with db.single() as connection:
        found = records.many(connection.execute(statement))
    return [node for node in found if not maintenance.silent(node)]


def of_drivers(db: Database, drivers: Collection[str], names: Collection[str]) -> list[records.Record]:
    """The named columns of all nodes with one of these drivers."""
    statement = sa.select(*records.columns(nodes.NODES, names)).where(nodes.NODES.c.driver.in_(drivers))
    with db.single() as connection:
        return records.many(connection.execute(statement))
