"""What steps usually take: the median of their past, of the same machine if it has one, else of the fleet.

Only attempts that ended well count, and of a machine its latest ones: what hardware and images were like a year ago
says little. What the fleet has done is read once in a while, of its latest attempts alone: a process needs neither an
index for it nor to read a table that grows.
"""

import datetime
import statistics
import time
import weakref
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeVar

import sqlalchemy as sa

from ingot.db import models, nodes
from ingot.db.engine import Database

_Key = TypeVar("_Key")

_RUNS = models.table(models.StepRun)
_NODES = nodes.NODES

LATEST = 5
"""Attempts of a step on a machine that count."""

FLEET_ATTEMPTS = 5000
"""Attempts of the whole fleet that count."""

FLEET_S = 60.0
"""Seconds for which the fleet's past is used again."""


class Step(NamedTuple):
    """A step of a flow. In another flow the same step may do more or less."""

    flow: str
    interface: str
    step: str


class Usual(NamedTuple):
    """What a step usually takes.

    :param basis: ``node``: that machine's past; ``class``: that of machines with the same driver; ``all``: of all.
    """

    seconds: float
    basis: str


class _Fleet(NamedTuple):
    read_at: float
    by_driver: Mapping[tuple[str, Step], float]
    of_all: Mapping[Step, float]


_fleets: weakref.WeakKeyDictionary[Database, _Fleet] = weakref.WeakKeyDictionary()


class Past:
    """The past of some nodes, and of the fleet.

    :param own: medians by node id and step.
    """

    def __init__(self, own: Mapping[tuple[int, Step], float], fleet: _Fleet) -> None:
        self._own = own
        self._fleet = fleet

    def find(self, node: models.Node, step: Step) -> Usual | None:
        """Return what a step usually takes on a node; None: it never ended well, anywhere.

        :param node: needs id and driver.
        """
        for basis, found in (
            ("node", self._own.get((node.id, step))),
            ("class", self._fleet.by_driver.get((node.driver, step))),
            ("all", self._fleet.of_all.get(step)),
        ):
            if found is not None:
                return Usual(round(found, 3), basis)
        return None


def read_past(db: Database, steps: Mapping[Step, Collection[int]], without: str | None = None) -> Past:
    """Return what steps usually take; one statement, and another one once in a while.

    :param steps: ids of the nodes that are asked about, by step.
    :param without: a run that does not count: it is to be compared with the others.
    """
    known = {step: sorted(set(ids)) for step, ids in steps.items() if ids}
    return Past(_read_own(db, known, without) if known else {}, _read_fleet(db))


def _read_own(db: Database, steps: Mapping[Step, list[int]], without: str | None) -> dict[tuple[int, Step], float]:
    every = sorted({node_id for ids in steps.values() for node_id in ids})
    key = _RUNS.c.flow, _RUNS.c.interface, _RUNS.c.step
    asked = [
        sa.and_(*(column == value for column, value in zip(key, step, strict=True)), _RUNS.c.node_id.in_(ids))
        for step, ids in steps.items()
    ]
    age = sa.func.row_number().over(partition_by=(_RUNS.c.node_id, *key), order_by=_RUNS.c.id.desc()).label("age")
    # All ids first: what the databases find the rows by.
    ended = [_RUNS.c.node_id.in_(every), _RUNS.c.state == "done", sa.or_(*asked)]
    if without is not None:
        ended.append(_RUNS.c.run_id != without)
    aged = sa.select(_RUNS.c.node_id, *key, _RUNS.c.started_at, _RUNS.c.finished_at, age).where(*ended).subquery()
    latest = sa.select(*(column for column in aged.c if column.name != "age")).where(aged.c.age <= LATEST)
    with db.single() as connection:
        rows = connection.execute(latest).all()
    return _list_medians(((row[0], Step(*row[1:4])), row[4], row[5]) for row in rows)


def _read_fleet(db: Database) -> _Fleet:
    known = _fleets.get(db)
    if known is not None and time.monotonic() - known.read_at < FLEET_S:
        return known
    read_at = time.monotonic()
    columns = models.columns(_RUNS, ("node_id", "flow", "interface", "step", "state", "started_at", "finished_at"))
    newest = sa.select(*columns).order_by(_RUNS.c.id.desc()).limit(FLEET_ATTEMPTS).subquery()
    well = sa.select(_NODES.c.driver, newest).join(_NODES, _NODES.c.id == newest.c.node_id)
    with db.single() as connection:
        rows = connection.execute(well.where(newest.c.state == "done")).all()
    spans = [(row[0], Step(*row[2:5]), row[6], row[7]) for row in rows]
    found = _Fleet(
        read_at,
        _list_medians(((driver, step), began, ended) for driver, step, began, ended in spans),
        _list_medians((step, began, ended) for _driver, step, began, ended in spans),
    )
    _fleets[db] = found
    return found


def _list_medians(spans: Iterable[tuple[_Key, datetime.datetime, datetime.datetime]]) -> dict[_Key, float]:
    seconds: defaultdict[_Key, list[float]] = defaultdict(list)
    for key, began, ended in spans:
        seconds[key].append((ended - began).total_seconds())
    return {key: statistics.median(found) for key, found in seconds.items()}


def read_run_starts(db: Database, run_ids: Collection[str]) -> dict[str, datetime.datetime]:
    """Return when runs began, of those that have ended a step."""
    started = sa.select(_RUNS.c.run_id, sa.func.min(_RUNS.c.started_at)).where(_RUNS.c.run_id.in_(run_ids))
    with db.single() as connection:
        return {run_id: moment for run_id, moment in connection.execute(started.group_by(_RUNS.c.run_id))}
