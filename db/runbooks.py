"""Queries on runbooks, their steps and their traits."""

from collections.abc import Collection

import sqlalchemy as sa

from ingot.db import listing, models, records, rows
from ingot.db.engine import Database, retried
from ingot.db.step_lists import StepLists

_TRAITS = models.table(models.RunbookTrait)

RUNBOOKS = StepLists(
    listing.Source("Runbook", models.table(models.Runbook)), models.table(models.RunbookStep), owner="runbook_id"
)


def traits_of(db: Database, runbook_ids: Collection[int]) -> dict[int, list[str]]:
    """The sorted traits of runbooks, by the runbook's id; runbooks without traits are absent. One statement."""
    statement = sa.select(_TRAITS.c.runbook_id, _TRAITS.c.trait).where(_TRAITS.c.runbook_id.in_(runbook_ids))
    found: dict[int, list[str]] = {}
    with db.single() as connection:
        for runbook_id, trait in connection.execute(statement.order_by(_TRAITS.c.trait)):
            found.setdefault(runbook_id, []).append(trait)
    return found


@retried
def set_traits(db: Database, runbook: records.Record, traits: Collection[str]) -> None:
    """Gives a runbook these traits and no others.

    :param runbook: as read; see :func:`rows.update`.
    :raises ChangedMeanwhile: another request changed the runbook, or its traits, since it was read.
    """
    with db.transaction() as connection:
        rows.update(connection, RUNBOOKS.source, runbook, {})
        connection.execute(sa.delete(_TRAITS).where(_TRAITS.c.runbook_id == runbook.id))
        if traits:
            connection.execute(
                sa.insert(_TRAITS), [{"runbook_id": runbook.id, "trait": trait} for trait in sorted(traits)]
            )
