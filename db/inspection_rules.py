"""Queries on inspection rules."""

import sqlalchemy as sa

from ingot.db import listing, models, records, rows
from ingot.db.engine import Database, retried

RULES = rows.Rows(listing.Source("Rule", models.table(models.InspectionRule)))


@retried
def delete_all(db: Database) -> None:
    """Removes every rule."""
    with db.single() as connection:
        connection.execute(sa.delete(RULES.source.table))


def of_phase(db: Database, phase: str) -> list[records.Record]:
    """The rules of a phase, in the order in which they run: highest priority first, then the oldest."""
    table = RULES.source.table
    found = sa.select(table).where(table.c.phase == phase).order_by(table.c.priority.desc(), table.c.id)
    with db.single() as connection:
        return records.many(connection.execute(found))
