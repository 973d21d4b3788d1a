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
        """Changes a row of a machine that is off or about to be; see :func:`rows.update`.

        :raises NodeLocked: a conductor works on the node.
        :raises StateTransitionRefused: see :meth:`refuse_running`.
        """
        its_node = nodes.NODES.c.id == self.table.c.node_id
        power = sa.func.coalesce(nodes.NODES.c.target_power_state, nodes.NODES.c.power_state)
        is_off = sa.exists().where(its_node, power == states.POWER_OFF)
        try:
            with db.single() as connection:
                free = ports.node_is_free(self.table.c.node_id)
                rows.update(connection, self.source, volume, values, sa.and_(is_off, free))
        except errors.ChangedMeanwhile:
            self.refuse_running(db, volume, "update")
            ports.refuse_locked(db, volume)
            raise

    @retried
    def delete(self, db: Database, volume: records.Record) -> None:
        """Removes a row. That somebody works on the node does not matter.

        :raises StateTransitionRefused: see :meth:`refuse_running`; what nobody can use yet is removed all the same.
        """
        self.refuse_running(db, volume, "deletion", _UNUSED)
        with db.single() as connection:
            rows.delete(connection, self.source, volume)

    def refuse_running(
        self, db: Database, volume: records.Record, done: str, whatever: frozenset[str] = frozenset()
    ) -> None:
        """
        :param done: what is about to be done with the row: update, deletion.
        :param whatever: provision states in which the power does not matter.
        :raises StateTransitionRefused: the machine that it belongs to is not known to be off. Somebody who asked for a
            power state need not wait for it: what is asked for counts.
        """
        node = nodes.get(db, volume.node_uuid, ("uuid", "power_state", "target_power_state", "provision_state"))
        power = node.target_power_state or node.power_state
        if power != states.POWER_OFF and node.provision_state not in whatever:
            action = f"{self.source.noun.lower()} {done}"
            raise errors.StateTransitionRefused(
                action=action, node=node.uuid, state=power or "unknown", possible="to power it off first"
            )


_UNUSED = frozenset((states.ADOPTFAIL, states.ENROLL, states.MANAGEABLE))

CONNECTORS = Volumes("Volume connector", models.table(models.VolumeConnector))
TARGETS = Volumes("Volume target", models.table(models.VolumeTarget))
