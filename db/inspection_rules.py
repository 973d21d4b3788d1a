"""Queries on inspection rules."""

import sqlalchemy as sa

from ingot.db import listing, models, rows
from ingot.db.engine import Database, retried

RULES = rows.Rows(listing.Source("Rule", models.table(models.InspectionRule)))


@retried
def delete_all(db: Database) -> None:
    """Removes every rule."""
    with db.single() as connection:
        connection.execute(sa.delete(RULES.source.table))
