"""What the last inspection of a machine found in it."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.db import models, nodes, records, rows
from ingot.db import ports as port_rows
from ingot.db.engine import Database, retried

_INVENTORY = models.table(models.NodeInventory)
_NODES = models.table(models.Node)
_PORTS = models.table(models.Port)
_TRAITS = models.table(models.NodeTrait)


def find(db: Database, node_id: int) -> records.Record | None:
    """The inventory of a node, if there is one."""
    with db.single() as connection:
        return records.one(connection.execute(sa.select(_INVENTORY).where(_INVENTORY.c.node_id == node_id)))


def get(db: Database, node: records.Record) -> records.Record:
    """
    :param node: needs id and uuid.
    :raises NotFound: the machine was not inspected yet, or its inspection left no inventory.
    """
    found = find(db, node.id)
    if found is None:
        raise errors.NotFound(f"Node inventory record for node {node.uuid} could not be found: inspect the node first.")
    return found


@retried
def save(db: Database, node_id: int, inventory: dict[str, Any], plugin_data: dict[str, Any]) -> None:
    """Keeps what an inspection found, in place of what the one before had found.

    :param plugin_data: what the ramdisk sent beside the inventory.
    :raises NotFound: there is no such node any more.
    """
    with db.transaction() as connection:
        # The node's row is taken first: two that save for one node at once do it one after the other.
        taken = sa.update(_NODES).where(_NODES.c.id == node_id).values(updated_at=_NODES.c.updated_at)
        if connection.execute(taken).rowcount != 1:
            raise errors.NotFound("The node was deleted while its machine was inspected.")
        connection.execute(sa.delete(_INVENTORY).where(_INVENTORY.c.node_id == node_id))
        found = {"node_id": node_id, "inventory": inventory, "plugin_data": plugin_data}
        connection.execute(sa.insert(_INVENTORY).values(found))


def plugin_data(node_id: int, kept: Mapping[str, Any]) -> nodes.Beside:
    """The write of what is kept beside an inventory, for the transaction that ends the step."""

    def write(connection: sa.Connection) -> None:
        found = sa.update(_INVENTORY).where(_INVENTORY.c.node_id == node_id)
        connection.execute(found.values(plugin_data=dict(kept)))

    return write


def conclusion(node_id: int, ports: Iterable[Mapping[str, Any]], traits: Collection[str]) -> nodes.Beside:
    """The write of what an inventory tells of ports and traits, for the transaction that ends the step.

    :param ports: those that are new, without id, and those that are changed, with it.
    :param traits: all that the node has afterwards.
    """

    def write(connection: sa.Connection) -> None:
        for port in ports:
            values = {name: value for name, value in port.items() if name != "id"}
            if "id" in port:
                changed = sa.update(_PORTS).where(_PORTS.c.id == port["id"])
                connection.execute(changed.values(**values, updated_at=clock.now()))
            else:
                rows.insert(connection, port_rows.SOURCE, {**values, "node_id": node_id})
        own = _TRAITS.c.node_id == node_id
        present = set(connection.execute(sa.select(_TRAITS.c.trait).where(own)).scalars())
        connection.execute(sa.delete(_TRAITS).where(own, _TRAITS.c.trait.in_(present - set(traits))))
        for trait in sorted(set(traits) - present):
            connection.execute(sa.insert(_TRAITS).values(node_id=node_id, trait=trait))

    return write


def taken(db: Database, node_id: int, addresses: Collection[str]) -> set[str]:
    """The MAC addresses, of some, that ports of other nodes have."""
    others = sa.select(_PORTS.c.address).where(_PORTS.c.address.in_(addresses), _PORTS.c.node_id != node_id)
    with db.single() as connection:
        return set(connection.execute(others).scalars())
