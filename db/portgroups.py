"""Queries on portgroups."""

from collections.abc import Mapping
from typing import Any

from oslo_db import exception as db_exc

from ingot.common import errors
from ingot.db import listing, models, nodes, ports, records, rows
from ingot.db.engine import Database, retried

PORTGROUPS = models.table(models.Portgroup)


SOURCE = listing.Source(
    "Portgroup", PORTGROUPS, nodes.of_owned(PORTGROUPS, "uuid", "owner", "lessee", "shard", "conductor_group")
)


@retried
def create(db: Database, values: Mapping[str, Any]) -> int:
    """Adds a portgroup; see :func:`rows.insert`."""
    with db.single() as connection:
        return rows.insert(connection, SOURCE, values)


@retried
def update(db: Database, portgroup: records.Record, values: Mapping[str, Any]) -> None:
    """Changes a portgroup of a node that nobody works on; see :func:`rows.update`.

    :raises NodeLocked: a conductor works on the node.
    """
    try:
        with db.single() as connection:
            rows.update(connection, SOURCE, portgroup, values, ports.node_is_free(PORTGROUPS.c.node_id))
    except errors.ChangedMeanwhile:
        ports.refuse_locked(db, portgroup)
        raise


@retried
def delete(db: Database, portgroup: records.Record) -> None:
    """
    :raises NodeLocked: a conductor works on the node.
    :raises Invalid: ports are in it.
    """
    try:
        with db.single() as connection:
            gone = rows.delete(connection, SOURCE, portgroup, ports.node_is_free(PORTGROUPS.c.node_id))
    except db_exc.DBReferenceError as exc:
        raise errors.Invalid(
            f"Portgroup {portgroup.uuid} has ports. Take them out first: nothing was deleted."
        ) from exc
    if not gone:
        ports.refuse_locked(db, portgroup)
