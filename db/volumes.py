"""Queries on volume connectors and volume targets: how machines reach volumes, and which."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import errors, states
from ingot.db import listing, models, nodes, ports, records, rows
from ingot.db.engine import Database, retried


class Volumes(rows.Rows):
    """One of the two tables; both belong to a node and follow the same rules.

    That somebody works on the node does not matter for new rows, and for those that go.
    """

    def __init__(self, noun: str, table: sa.Table) -> None:
        super().__init__(listing.Source(noun, table, nodes.of_owned(table, "uuid", "owner", "lessee")))

    @retried
    def update(self, db: Database, row: records.Record, values: Mapping[str, Any]) -> None:
        """Changes a row of a machine that is off or about to be; see :func:`rows.update`.

        :raises NodeLocked: a conductor works on the node.
        :raises StateTransitionRefused: see :meth:`refuse_running`.
        """
        node_id = self.source.table.c.node_id
        power = sa.func.coalesce(nodes.NODES.c.target_power_state, nodes.NODES.c.power_state)
        is_off = sa.exists().where(nodes.NODES.c.id == node_id, power == states.POWER_OFF)
        try:
            with db.single() as connection:
                rows.update(connection, self.source, row, values, sa.and_(is_off, ports.node_is_free(node_id)))
        except errors.ChangedMeanwhile:
            self.refuse_running(db, row, "update")
            ports.refuse_locked(db, row)
            raise

    def delete(self, db: Database, row: records.Record) -> None:
        """Removes a row. That somebody works on the node does not matter.

        :raises StateTransitionRefused: see :meth:`refuse_running`; what nobody can use yet is removed all the same.
        """
        self.refuse_running(db, row, "deletion", _UNUSED)
        super().delete(db, row)

    def refuse_running(
        self, db: Database, row: records.Record, done: str, whatever: frozenset[str] = frozenset()
    ) -> None:
        """
        :param done: what is about to be done with the row: update, deletion.
        :param whatever: provision states in which the power does not matter.
        :raises StateTransitionRefused: the machine that it belongs to is not known to be off. Somebody who asked for a
            power state need not wait for it: what is asked for counts.
        """
        node = nodes.get(db, row.node_uuid, ("uuid", "power_state", "target_power_state", "provision_state"))
        power = node.target_power_state or node.power_state
        if power != states.POWER_OFF and node.provision_state not in whatever:
            action = f"{self.source.noun.lower()} {done}"
            raise errors.StateTransitionRefused(
                action=action, node=node.uuid, state=power or "unknown", possible="to power it off first"
            )


_UNUSED = frozenset((states.ADOPTFAIL, states.ENROLL, states.MANAGEABLE))

CONNECTORS = Volumes("Volume connector", models.table(models.VolumeConnector))
TARGETS = Volumes("Volume target", models.table(models.VolumeTarget))
