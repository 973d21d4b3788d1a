"""Data that a release moves while its services run: the table of what there is to move, and moving it in batches.

A migration of the schema only adds; what moves data from an old place to a new one goes here, because it may take
hours. A later release drops the old place, after ``ingot-status upgrade check`` found nothing left to move.
"""

import enum
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ingot.db.engine import Database

LOG = logging.getLogger(__name__)


class Migration(NamedTuple):
    """One thing to move.

    :param name: what an operator sees.
    :param left: how many rows are still to be moved.
    :param move: moves at most that many rows and says how many it did; each call is a transaction of its own.
    """

    name: str
    left: Callable[[Database], int]
    move: Callable[[Database, int], int]


MIGRATIONS: Sequence[Migration] = ()
"""In order; this release has nothing to move."""

BATCH = 500
"""Rows moved at a time where the operator names no number."""


class Outcome(enum.IntEnum):
    """The outcome of a run; its value is the exit status of ``ingot-dbsync online_data_migrations``."""

    DONE = 0
    MORE = 1
    FAILED = 2

    @property
    def explanation(self) -> str:
        return ("Nothing is left to move.", "There is more to move: run it again.", "A migration failed: see the log.")[
            self
        ]


def list_unfinished(db: Database) -> list[str]:
    """Return the names of the migrations that have something left to move."""
    return [migration.name for migration in MIGRATIONS if migration.left(db)]


def run(db: Database, migrations: Sequence[Migration], max_count: int | None) -> Outcome:
    """Move what is left.

    :param max_count: rows to move at most in all; None moves everything.
    :returns: FAILED if a migration raised an error; it is logged, and those after it were still run.
    """
    outcome = Outcome.DONE
    budget = max_count
    for migration in migrations:
        try:
            moved = _move(db, migration, budget)
            unfinished = migration.left(db) > 0
        except Exception:
            LOG.exception("Migration %s failed; correct the cause and run it again", migration.name)
            outcome = Outcome.FAILED
            continue
        LOG.info("Migration %s moved %d rows", migration.name, moved)
        budget = None if budget is None else budget - moved
        outcome = max(outcome, Outcome.MORE if unfinished else Outcome.DONE)
    return outcome


def _move(db: Database, migration: Migration, budget: int | None) -> int:
    moved = 0
    while batch := migration.move(db, BATCH if budget is None else min(BATCH, budget - moved)):
        moved += batch
    return moved
