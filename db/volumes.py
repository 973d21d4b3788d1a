"""Queries on volume connectors and volume targets: how machines reach volumes, and which."""

from collections.abc import Mapping
from typing import TypeVar

import sqlalchemy as sa

from ingot.common import clock, errors, states
from ingot.common.json_types import Json
from ingot.db import listing, models, nodes, ports, rows
from ingot.db.engine import Database, retry_transaction


class ConnectorOfNode(models.VolumeConnector, nodes.OfNode):
    """A volume connector, with what is shown of its node."""


class TargetOfNode(models.VolumeTarget, nodes.OfNode):
    """A volume target, with what is shown of its node."""


AnyVolume = TypeVar("AnyVolume", bound=nodes.OfNode)


class Volumes(rows.Rows[AnyVolume]):
    """One of the two tables; both belong to a node and follow the same rules.

    New rows, and those that are deleted, do not depend on the node's lock.
    """

    def __init__(self, noun: str, model: type[AnyVolume], sorted_by: str) -> None:
        super().__init__(
            listing.Source(noun, model, ports.node_columns(models.table(model), "uuid", "owner", "lessee"))
        )
        self._sorted_by = sorted_by

    def list_of_node(self, db: Database, node_id: int) -> list[AnyVolume]:
        """Return the rows of a node: connectors in order of creation, targets by boot index."""
        table = self.source.table
        statement = sa.select(table).where(table.c.node_id == node_id).order_by(table.c[self._sorted_by])
        return db.read_all(self.source.model, statement)

    @retry_transaction
    def update(self, db: Database, row: AnyVolume, values: Mapping[str, object]) -> None:
        """Change a row of a machine that is off or about to be; see :meth:`rows.Rows.write`.

        :raises NodeLocked: a conductor works on the node.
        :raises StateTransitionRefused: see :meth:`refuse_running`.
        """
        node_id = self.source.table.c.node_id
        power = sa.func.coalesce(nodes.NODES.c.target_power_state, nodes.NODES.c.power_state)
        is_off = sa.exists().where(nodes.NODES.c.id == node_id, power == states.POWER_OFF)
        try:
            with db.single() as connection:
                self.write(connection, row, values, is_off, ports.node_is_free(node_id))
        except errors.ChangedMeanwhile:
            self.refuse_running(db, row, "update")
            ports.refuse_locked(db, row)
            raise

    def delete(self, db: Database, row: AnyVolume) -> None:
        """Remove a row.

        :raises StateTransitionRefused: see :meth:`refuse_running`; what cannot be used yet is removed all the same.
        """
        self.refuse_running(db, row, "deletion", _UNUSED)
        super().delete(db, row)

    def refuse_running(self, db: Database, row: AnyVolume, action: str, whatever: frozenset[str] = frozenset()) -> None:
        """Refuse a change of a volume of a machine that runs.

        :param action: what is about to be done with the row: update, deletion.
        :param whatever: provision states in which the power does not matter.
        :raises StateTransitionRefused: the machine that it belongs to is not known to be off. The requested power state
            counts, so a client that requested it need not wait.
        """
        node = nodes.get(db, row.node_uuid, ("uuid", "power_state", "target_power_state", "provision_state"))
        power = node.target_power_state or node.power_state
        if power != states.POWER_OFF and node.provision_state not in whatever:
            raise errors.StateTransitionRefused(
                action=f"{self.source.noun.lower()} {action}",
                node=node.uuid,
                state=power or "unknown",
                possible="to power it off first",
            )


_UNUSED = frozenset((states.ADOPTFAIL, states.ENROLL, states.MANAGEABLE))

CONNECTORS = Volumes("Volume connector", ConnectorOfNode, sorted_by="id")
TARGETS = Volumes("Volume target", TargetOfNode, sorted_by="boot_index")


def build_removal_of_targets(node_id: int) -> nodes.ExtraWrite:
    """Return the write that deletes all volume targets of a node, whose lock is held."""
    table = TARGETS.source.table

    def remove(connection: sa.Connection) -> None:
        connection.execute(sa.delete(table).where(table.c.node_id == node_id))

    return remove


def build_properties(node_id: int, properties: Mapping[str, Json]) -> nodes.ExtraWrite:
    """Return the write of how volumes of a node are reached.

    :param properties: of targets, by uuid; one that was deleted meanwhile stays so.
    """
    table = TARGETS.source.table

    def write(connection: sa.Connection) -> None:
        for uuid, values in properties.items():
            own = sa.update(table).where(table.c.node_id == node_id, table.c.uuid == uuid)
            connection.execute(own.values(properties=values, updated_at=clock.now()))

    return write
