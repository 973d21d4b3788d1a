"""Queries on the past of nodes: history entries, step runs and the logs of agents, and how much of it is kept."""

import datetime
from collections.abc import Mapping
from typing import TypedDict

import sqlalchemy as sa
from oslo_utils import uuidutils

from ingot.common import clock, errors
from ingot.db import listing, models
from ingot.db.engine import Database, retry_transaction

ENTRIES = listing.Source("Node history record", models.NodeHistory)
LOGS = listing.Source("Agent log", models.AgentLog)

_LOGS = LOGS.table
_NODES = models.table(models.Node)
_STEP_RUNS = models.table(models.StepRun)

_OWN = _STEP_RUNS.c.node_id == sa.bindparam("own_id")
_LATEST = sa.select(_STEP_RUNS.c.run_id).where(_OWN).order_by(_STEP_RUNS.c.id.desc()).limit(1).scalar_subquery()
_ATTEMPTS = {
    of_latest: sa.select(_STEP_RUNS).where(_OWN, _STEP_RUNS.c.run_id == run).order_by(_STEP_RUNS.c.id)
    for of_latest, run in ((True, _LATEST), (False, sa.bindparam("own_run")))
}

_DAY_S = 86_400
_BATCH = 500  # rows a statement: what SQLite's single writer and a replicated database bear beside their work


class Run(models.StepRun):
    """The last attempt of a run, with the beginning of the first one and how many steps have ended."""

    steps: int


class NewLog(TypedDict):
    """What the agent of a run had logged: a tar.gz."""

    run_id: str
    flow: str
    content: bytes


def add_entry(db: Database, node_id: int, entry: Mapping[str, object]) -> None:
    """Add an entry about something that changes nothing of the node: no task's write, no fence."""
    row = {"node_id": node_id, "uuid": uuidutils.generate_uuid(), **entry}
    db.write(sa.insert(ENTRIES.table).values(row))


@retry_transaction
def add_log(db: Database, node_id: int, log: NewLog, keep: int) -> str:
    """Add an agent's log and remove all but the newest logs of the node.

    :param keep: how many logs the node has afterwards, at most.
    :returns: the uuid of the log.
    :raises ServiceUnavailable: the database refuses it; content beyond its largest packet is one cause.
    """
    row = {"uuid": uuidutils.generate_uuid(), "node_id": node_id, "size": len(log["content"]), **log}
    with db.transaction() as connection:
        connection.execute(sa.insert(_LOGS).values(row))
        of_node = sa.select(_LOGS.c.id).where(_LOGS.c.node_id == node_id).order_by(_LOGS.c.id.desc())
        # Two statements, because MySQL does not delete from a table that a subquery reads.
        kept = connection.execute(of_node.limit(keep)).scalars().all()
        connection.execute(sa.delete(_LOGS).where(_LOGS.c.node_id == node_id, _LOGS.c.id < min(kept)))
    return str(row["uuid"])


def find_node_of_run(db: Database, run_id: str) -> str:
    """Return the uuid of the node that a run is, or was, about.

    :raises NotFound: no step of it has ended or its steps were pruned, and it does not run now.
    """
    running = sa.select(_NODES.c.uuid).where(_NODES.c.run_id == run_id)
    ended = sa.select(_NODES.c.uuid).join(_STEP_RUNS, _STEP_RUNS.c.node_id == _NODES.c.id)
    with db.single() as connection:
        found = connection.execute(running.union(ended.where(_STEP_RUNS.c.run_id == run_id))).scalar()
    if found is None:
        raise errors.NotFound(noun="Run", ident=run_id)
    return str(found)


def list_attempts(db: Database, node_id: int, run_id: str | None = None) -> list[models.StepRun]:
    """Return the attempts of a run of a node in the order in which they ended.

    :param run_id: None for the run of the latest attempt.
    """
    return db.read_all(models.StepRun, _ATTEMPTS[run_id is None], own_id=node_id, own_run=run_id)


def list_runs(db: Database, node_id: int, limit: int, before: str | None = None) -> list[Run]:
    """Return the runs of a node, the latest first.

    Each has run_id, flow, started_at, finished_at, how many steps have ended; and of the last attempt state, error and
    conductor.

    A run that has ended no step yet, or whose steps were pruned, is not among them.

    :param limit: most runs.
    :param before: only runs that are older than this one.
    :raises NotFound: the node has no such run.
    """
    own = _STEP_RUNS.alias("own")
    last_id = sa.func.max(own.c.id).label("last_id")
    started_at, steps = sa.func.min(own.c.started_at), sa.func.count(own.c.step_index.distinct())
    grouped = (
        sa.select(last_id, started_at.label("started_at"), steps.label("steps"))
        .where(own.c.node_id == node_id)
        .group_by(own.c.run_id)
    )
    with db.single() as connection:
        if before is not None:
            grouped = grouped.having(last_id < _last_id_of_run(connection, node_id, before))
        run = grouped.order_by(last_id.desc()).limit(limit).subquery("run")
        columns = models.columns(_STEP_RUNS, ("run_id", "flow", "finished_at", "state", "error", "conductor"))
        statement = sa.select(run.c.started_at, run.c.steps, *columns).join(run, run.c.last_id == _STEP_RUNS.c.id)
        return Run.all_of(connection.execute(statement.order_by(run.c.last_id.desc())))


def _last_id_of_run(connection: sa.Connection, node_id: int, run_id: str) -> int:
    own = (_STEP_RUNS.c.node_id == node_id, _STEP_RUNS.c.run_id == run_id)
    found = connection.execute(sa.select(sa.func.max(_STEP_RUNS.c.id)).where(*own)).scalar()
    if found is None:
        raise errors.NotFound(noun="Run", ident=run_id)
    return int(found)


_MOMENTS: Mapping[sa.Table, sa.Column[datetime.datetime]] = {
    _STEP_RUNS: _STEP_RUNS.c.finished_at,
    ENTRIES.table: ENTRIES.table.c.created_at,
}
"""What is kept for a limited time, with the column that says how old it is."""


def prune_by_age(db: Database, days: int) -> int:
    """Delete step runs and history entries that are too old.

    They are read in the order in which they were written, up to a batch in which none is too old.

    :param days: for which they are kept ([conductor] node_history_maximum_days).
    :returns: how many rows were deleted.
    """
    deleted, limit = 0, clock.after(-days * _DAY_S)
    for table, moment in _MOMENTS.items():
        oldest = sa.select(table.c.id, moment).order_by(table.c.id).limit(_BATCH)
        while ids := _read_ids(db, oldest, limit):
            deleted += db.write(sa.delete(table).where(table.c.id.in_(ids)))
    return deleted


def _read_ids(db: Database, oldest: "sa.Select[int, datetime.datetime]", limit: datetime.datetime) -> list[int]:
    with db.single() as connection:
        return [row_id for row_id, moment in connection.execute(oldest) if moment < limit]


def prune(db: Database, keep: int, nodes: int = 100, minimum_days: int = 0) -> int:
    """Delete all but the newest step runs and history entries of each node.

    Any number of conductors may do this at once: what is deleted is named by its id, not by its number.

    :param keep: rows of either table that a node keeps ([conductor] node_history_max_entries).
    :param nodes: how many nodes to shorten at most, those with the most rows first; the next call goes on.
    :param minimum_days: rows that are younger stay, however many they are ([conductor] node_history_minimum_days).
    :returns: how many rows were deleted; 0 when all is within bounds.
    """
    deleted, rows, limit = 0, sa.func.count(), clock.after(-minimum_days * _DAY_S)
    for table, moment in _MOMENTS.items():
        # Counted in the index on node_id alone, unless nodes whose rows are all young are to be left out.
        may_go = sa.and_(rows > keep, sa.func.min(moment) < limit) if minimum_days else rows > keep
        too_long = sa.select(table.c.node_id).group_by(table.c.node_id).having(may_go).order_by(rows.desc())
        for node_id in db.read_column(too_long.limit(nodes)):
            deleted += _shorten(db, table, node_id, keep, moment < limit)
    return deleted


def _shorten(db: Database, table: sa.Table, node_id: int, keep: int, may_go: sa.ColumnElement[bool]) -> int:
    of_node = sa.select(table.c.id).where(table.c.node_id == node_id)
    newest_to_go = db.read_column(of_node.order_by(table.c.id.desc()).limit(1).offset(keep))
    if not newest_to_go:
        return 0
    to_go = of_node.where(table.c.id <= newest_to_go[0], may_go).order_by(table.c.id).limit(_BATCH)
    deleted = 0
    # Two statements, because MySQL does not delete from a table that a subquery reads.
    while ids := db.read_column(to_go):
        deleted += db.write(sa.delete(table).where(table.c.id.in_(ids)))
    return deleted
