"""Queries on inspection: what the last one of a machine found in it, and the rules applied to that."""

from collections.abc import Collection, Iterable, Mapping

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.db import listing, models, node_crud, nodes, ports, rows
from ingot.db.engine import Database, retry_transaction

_INVENTORY = models.table(models.NodeInventory)
_BEFORE = models.table(models.NodeInventoryBefore)
_NODES = models.table(models.Node)
_PORTS = models.table(models.Port)

RULES = rows.Rows(listing.Source("Rule", models.InspectionRule))


def find(db: Database, node_id: int) -> models.NodeInventory | None:
    """Return the inventory of a node, if there is one."""
    statement = sa.select(_INVENTORY).where(_INVENTORY.c.node_id == node_id)
    return db.read_first(models.NodeInventory, statement)


def get(db: Database, node: models.Node) -> models.NodeInventory:
    """Return the inventory of a node.

    :param node: needs id and uuid.
    :raises NotFound: the machine was not inspected yet, or its inspection left no inventory.
    """
    found = find(db, node.id)
    if found is None:
        raise errors.NotFound(f"Node inventory record for node {node.uuid} could not be found: inspect the node first.")
    return found


def find_before(db: Database, node_id: int) -> models.NodeInventoryBefore | None:
    """Return the inventory of a node that the last one has replaced, if there was one."""
    return db.read_first(models.NodeInventoryBefore, sa.select(_BEFORE).where(_BEFORE.c.node_id == node_id))


@retry_transaction
def save(db: Database, node_id: int, inventory: Json, plugin_data: Json, once: bool = False) -> None:
    """Write what an inspection found, in place of what the one before had found, which is kept beside it.

    :param plugin_data: what the ramdisk sent besides the inventory.
    :param once: whether an inspection has one inventory: the same may come again, as its answer may have been lost.
    :raises NotFound: the node was deleted.
    :raises Conflict: the inspection has another inventory already.
    """
    own = _INVENTORY.c.node_id == node_id
    found = {"inventory": inventory, "plugin_data": plugin_data, "inspected_at": clock.now()}
    with db.transaction() as connection:
        # The node's row is taken first: two that save for one node at once do it one after the other.
        held = sa.update(_NODES).where(_NODES.c.id == node_id).values(updated_at=_NODES.c.updated_at)
        if connection.execute(held).rowcount != 1:
            raise errors.NotFound("The node was deleted while its machine was inspected.")
        columns = (_INVENTORY.c.inspected_at, _INVENTORY.c.inventory, _NODES.c.request)
        known = connection.execute(sa.select(*columns).join(_NODES, _NODES.c.id == node_id).where(own)).one_or_none()
        if known is None:
            connection.execute(sa.insert(_INVENTORY).values(node_id=node_id, **found))
            return
        moment = clock.iso(known.inspected_at)
        is_former = known.request.get("inventory_before", moment) == moment
        if is_former:
            connection.execute(sa.delete(_BEFORE).where(_BEFORE.c.node_id == node_id))
            former = {"inventory": known.inventory, "inspected_at": known.inspected_at}
            connection.execute(sa.insert(_BEFORE).values(node_id=node_id, **former))
        if is_former or not once:
            connection.execute(sa.update(_INVENTORY).where(own).values(found))
        elif known.inventory != inventory:
            raise errors.Conflict("This inspection has another inventory already: begin a new one.")


def write_plugin_data(node_id: int, plugin_data: Mapping[str, object]) -> nodes.ExtraWrite:
    """Return the write of what is kept with an inventory, for the transaction that ends the step."""

    def write(connection: sa.Connection) -> None:
        found = sa.update(_INVENTORY).where(_INVENTORY.c.node_id == node_id)
        connection.execute(found.values(plugin_data=dict(plugin_data)))

    return write


def write_conclusion(
    node_id: int, found_ports: Iterable[Mapping[str, object]], removed_ports: Collection[int], traits: Collection[str]
) -> nodes.ExtraWrite:
    """Return the write of what an inventory says of ports and traits, for the transaction that ends the step.

    :param found_ports: those that are new, without id, and those that are changed, with it.
    :param removed_ports: the ids of those that are deleted.
    :param traits: all that the node has afterwards.
    """

    def write(connection: sa.Connection) -> None:
        if removed_ports:
            connection.execute(sa.delete(_PORTS).where(_PORTS.c.id.in_(removed_ports)))
        for port in found_ports:
            values = {name: value for name, value in port.items() if name != "id"}
            if "id" in port:
                changed = sa.update(_PORTS).where(_PORTS.c.id == port["id"])
                connection.execute(changed.values(**values, updated_at=clock.now()))
            else:
                ports.PORTS.insert(connection, {**values, "node_id": node_id})
        node_crud.write_traits(connection, node_id, node_crud.read_traits(connection, node_id), set(traits))

    return write


def find_foreign_addresses(db: Database, node_id: int | None, addresses: Collection[str]) -> set[str]:
    """Return those of some MAC addresses that ports of other nodes have; without a node, those that any port has."""
    others = sa.select(_PORTS.c.address).where(_PORTS.c.address.in_(addresses))
    if node_id is not None:
        others = others.where(_PORTS.c.node_id != node_id)
    return set(db.read_column(others))


def delete_all_rules(db: Database) -> None:
    """Remove every rule."""
    db.write(sa.delete(RULES.source.table))


def list_rules(db: Database, phase: str) -> list[models.InspectionRule]:
    """Return the rules of a phase in the order in which they run: highest priority first, then the oldest."""
    table = RULES.source.table
    found = sa.select(table).where(table.c.phase == phase).order_by(table.c.priority.desc(), table.c.id)
    return db.read_all(models.InspectionRule, found)
