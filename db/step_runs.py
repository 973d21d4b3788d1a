"""Queries on the journal of steps that have ended."""

import sqlalchemy as sa

from ingot.db import models, records
from ingot.db.engine import Database

_STEP_RUNS = models.table(models.StepRun)


def of_run(db: Database, node_id: int, run_id: str | None = None) -> list[records.Record]:
    """The attempts of a run of a node in the order in which they ended.

    :param run_id: None for the run of the latest attempt.
    """
    wanted: sa.ColumnElement[str] | str | None = run_id
    if wanted is None:
        latest = sa.select(_STEP_RUNS.c.run_id).where(_STEP_RUNS.c.node_id == node_id)
        wanted = latest.order_by(_STEP_RUNS.c.id.desc()).limit(1).scalar_subquery()
    statement = sa.select(_STEP_RUNS).where(_STEP_RUNS.c.node_id == node_id, _STEP_RUNS.c.run_id == wanted)
    with db.single() as connection:
        return records.many(connection.execute(statement.order_by(_STEP_RUNS.c.id)))
