"""Queries on the journal of steps that have ended."""

from typing import Any

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import models, records
from ingot.db.engine import Database

_STEP_RUNS = models.table(models.StepRun)
_NODES = models.table(models.Node)


def node_of(db: Database, run_id: str) -> str:
    """The uuid of the node that a run is, or was, about.

    :raises NotFound: no step of it has ended or its steps were pruned, and it does not run now.
    """
    running = sa.select(_NODES.c.uuid).where(_NODES.c.run_id == run_id)
    ended = sa.select(_NODES.c.uuid).join(_STEP_RUNS, _STEP_RUNS.c.node_id == _NODES.c.id)
    with db.single() as connection:
        found = connection.execute(running.union(ended.where(_STEP_RUNS.c.run_id == run_id))).scalar()
    if found is None:
        raise errors.NotFound(noun="Run", ident=run_id)
    return str(found)


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


def runs(db: Database, node_id: int, limit: int, before: str | None = None) -> list[records.Record]:
    """The runs of a node, the latest first: run_id, flow, started_at, finished_at, how many steps have ended; and of
    the last attempt state, error and conductor.

    A run that has ended no step yet, or whose steps were pruned, is not among them.

    :param limit: most runs.
    :param before: only runs that are older than this one.
    :raises NotFound: the node has no such run.
    """
    own = _STEP_RUNS.alias("own")
    last_id = sa.func.max(own.c.id).label("last_id")
    grouped = (
        sa.select(
            last_id,
            sa.func.min(own.c.started_at).label("started_at"),
            sa.func.count(own.c.step_index.distinct()).label("steps"),
        )
        .where(own.c.node_id == node_id)
        .group_by(own.c.run_id)
    )
    with db.single() as connection:
        if before is not None:
            grouped = grouped.having(last_id < _last_of(connection, node_id, before))
        run = grouped.order_by(last_id.desc()).limit(limit).subquery("run")
        about = [_STEP_RUNS.c[name] for name in ("run_id", "flow", "finished_at", "state", "error", "conductor")]
        statement = sa.select(run.c.started_at, run.c.steps, *about).join(run, run.c.last_id == _STEP_RUNS.c.id)
        return records.many(connection.execute(statement.order_by(run.c.last_id.desc())))


def _last_of(connection: sa.Connection, node_id: int, run_id: str) -> Any:
    of_run = sa.select(sa.func.max(_STEP_RUNS.c.id)).where(
        _STEP_RUNS.c.node_id == node_id, _STEP_RUNS.c.run_id == run_id
    )
    found = connection.execute(of_run).scalar()
    if found is None:
        raise errors.NotFound(noun="Run", ident=run_id)
    return found
