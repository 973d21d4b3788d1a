"""The timeline of a node (``GET /ingot/v1/nodes/<id>/timeline``) as a table that people read."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_COLUMNS = ("started", "took", "priority", "step", "asked for by")
# Times and priorities are numbers and stand at the right.
_RIGHT = (True, True, True, False, False)


@dataclass(frozen=True)
class Attempt:
    """One attempt of one step. ``started`` is None while the step is only planned, ``finished`` until it has ended."""

    interface: str
    step: str
    priority: int
    origin: str
    state: str
    number: int
    started: datetime.datetime | None
    finished: datetime.datetime | None
    error: str | None


@dataclass(frozen=True)
class Run:
    """One run of a flow, such as a cleaning or a deployment."""

    flow: str
    attempts: tuple[Attempt, ...]

    @property
    def started(self) -> datetime.datetime | None:
        return min((attempt.started for attempt in self.attempts if attempt.started), default=None)

    @property
    def seconds(self) -> float:
        """From the first step's start to the end of the last that has ended."""
        ends = [attempt.finished for attempt in self.attempts if attempt.finished]
        return (max(ends) - self.started).total_seconds() if ends and self.started else 0.0

    @property
    def done(self) -> list[Attempt]:
        """What driver, agent, template or request asked for and got, without what belongs to the flow itself."""
        return [attempt for attempt in self.attempts if attempt.origin != "flow" and attempt.state == "done"]


def read(answer: Mapping[str, Any]) -> Run:
    """Return the run in an answer of the API."""
    return Run(answer["flow"], tuple(_attempt(step) for step in answer["steps"]))


def _attempt(step: Mapping[str, Any]) -> Attempt:
    return Attempt(
        interface=step["interface"],
        step=step["step"],
        priority=step["priority"],
        origin=step["origin"],
        state=step["state"],
        number=step["attempt"],
        started=_time(step["started_at"]),
        finished=_time(step["finished_at"]),
        error=step["error"],
    )


def _time(text: str | None) -> datetime.datetime | None:
    """Return a time; one without a zone is in UTC, as OpenStack's APIs have it."""
    if text is None:
        return None
    found = datetime.datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def lines(run: Run) -> list[str]:
    """Return a table of a run: when each step started, how long it took, what asked for it."""
    cells = [_COLUMNS, *(_cells(attempt, run.started) for attempt in run.attempts)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_COLUMNS))]
    title = f"{run.flow.replace('_', ' ')}, {run.seconds:.2f} s"
    return [title, *(_line(row, widths) for row in cells), *_errors(run)]


def _cells(attempt: Attempt, start: datetime.datetime | None) -> tuple[str, ...]:
    began, ended = attempt.started, attempt.finished
    again = f" (attempt {attempt.number})" if attempt.number > 1 else ""
    outcome = "" if attempt.state == "done" else f" {attempt.state}"
    return (
        f"+{(began - start).total_seconds():.2f} s" if began and start else "",
        f"{(ended - began).total_seconds():.2f} s" if began and ended else "",
        str(attempt.priority) if attempt.priority else "",
        f"{attempt.interface}.{attempt.step}{again}{outcome}",
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
