"""Queries on inspection rules."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ingot.db import listing, models, records, rows
from ingot.db.engine import Database, retried

RULES = models.table(models.InspectionRule)

SOURCE = listing.Source("Rule", RULES)


def create(db: Database, values: Mapping[str, Any]) -> int:
    """Adds a rule; see :func:`rows.insert`."""
    with db.single() as connection:
        return rows.insert(connection, SOURCE, values)


def update(db: Database, rule: records.Record, values: Mapping[str, Any]) -> None:
    """Changes a rule; see :func:`rows.update`."""
    with db.single() as connection:
        rows.update(connection, SOURCE, rule, values)


@retried
def delete(db: Database, rule: records.Record) -> None:
    """Removes a rule; see :func:`rows.delete`."""
    with db.single() as connection:
        rows.delete(connection, SOURCE, rule)


@retried
def delete_all(db: Database) -> None:
    """Removes every rule."""
    with db.single() as connection:
        connection.execute(sa.delete(RULES))
