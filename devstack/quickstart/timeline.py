"""The timeline of a node (``GET /ingot/v1/nodes/<id>/timeline``) as a table that people read."""

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_COLUMNS = ("started", "took", "priority", "step", "asked for by")
# The times and the priority are numbers and stand at the right.
_RIGHT = (True, True, True, False, False)


@dataclass(frozen=True)
class Attempt:
    """One attempt of one step; ``started`` and ``finished`` know their time zone."""

    run_id: str
    flow: str
    interface: str
    step: str
    priority: int
    origin: str
    state: str
    number: int
    started: datetime.datetime
    finished: datetime.datetime | None
    error: str | None

    @property
    def took(self) -> float | None:
        """Seconds, None while it runs."""
        return (self.finished - self.started).total_seconds() if self.finished else None


@dataclass(frozen=True)
class Run:
    """One run of a flow: a cleaning, a deployment, ..."""

    flow: str
    attempts: tuple[Attempt, ...]

    @property
    def started(self) -> datetime.datetime:
        return self.attempts[0].started

    @property
    def seconds(self) -> float:
        """From the first step's start to the end of the last that has ended."""
        ends = [attempt.finished for attempt in self.attempts if attempt.finished]
        return (max(ends) - self.started).total_seconds() if ends else 0.0

    @property
    def steps(self) -> list[Attempt]:
        """What driver, agent, template or request asked for, without what belongs to the flow itself."""
        return [attempt for attempt in self.attempts if attempt.origin != "flow"]


def read(entries: Iterable[Mapping[str, Any]]) -> list[Run]:
    """Return the runs in the journal's entries, oldest first."""
    attempts = sorted((_attempt(entry) for entry in entries), key=lambda attempt: attempt.started)
    runs: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        runs.setdefault(attempt.run_id, []).append(attempt)
    return [Run(found[0].flow, tuple(found)) for found in runs.values()]


def _attempt(entry: Mapping[str, Any]) -> Attempt:
    return Attempt(
        run_id=entry["run_id"],
        flow=entry["flow"],
        interface=entry["interface"],
        step=entry["step"],
        priority=entry["priority"],
        origin=entry["origin"],
        state=entry["state"],
        number=entry["attempt"],
        started=_time(entry["started_at"]),
        finished=_time(entry["finished_at"]) if entry["finished_at"] else None,
        error=entry["error"],
    )


def _time(text: str) -> datetime.datetime:
    """Return a time; one without a zone is in UTC, as OpenStack's APIs have it."""
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def lines(run: Run) -> list[str]:
    """Return a table of a run: when each step started, how long it took, who asked for it."""
    cells = [_COLUMNS, *(_cells(attempt, run.started) for attempt in run.attempts)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    title = f"{run.flow.replace('_', ' ')}, {run.seconds:.2f} s"
    return [title, *(_line(row, widths) for row in cells), *_errors(run)]


def _cells(attempt: Attempt, start: datetime.datetime) -> tuple[str, ...]:
    again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
    ended = "" if attempt.state == "done" else f" {attempt.state}"
    return (
        f"+{(attempt.started - start).total_seconds():.2f} s",
        "" if attempt.took is None else f"{attempt.took:.2f} s",
        str(attempt.priority) if attempt.priority else "",
        f"{attempt.interface}.{attempt.step}{again}{ended}",
        attempt.origin,
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    aligned = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(row, widths, _RIGHT, strict=True)
    )
    return ("  " + "  ".join(aligned)).rstrip()


def _errors(run: Run) -> list[str]:
    failed = (attempt for attempt in run.attempts if attempt.error)
    return [f"  {attempt.interface}.{attempt.step}: {attempt.error}" for attempt in failed]
