"""Queries on chassis."""

from collections.abc import Mapping
from typing import Any

from oslo_db import exception as db_exc

from ingot.common import errors
from ingot.db import listing, models, records, rows
from ingot.db.engine import Database, retried

SOURCE = listing.Source("Chassis", models.table(models.Chassis))


def create(db: Database, values: Mapping[str, Any]) -> int:
    """Adds a chassis; see :func:`rows.insert`."""
    with db.single() as connection:
        return rows.insert(connection, SOURCE, values)


def update(db: Database, chassis: records.Record, values: Mapping[str, Any]) -> None:
    """Changes a chassis; see :func:`rows.update`."""
    with db.single() as connection:
        rows.update(connection, SOURCE, chassis, values)


@retried
def delete(db: Database, chassis: records.Record) -> None:
    """
    :raises Conflict: nodes are in it.
    """
    try:
        with db.single() as connection:
            rows.delete(connection, SOURCE, chassis)
    except db_exc.DBReferenceError as exc:
        raise errors.Invalid(
            f"Chassis {chassis.uuid} has nodes. Move or delete them first: nothing was deleted."
        ) from exc
