"""What a run leaves: tables for people, and a file for programs, with the machine, its load and all versions."""

import datetime
import json
import os
import pathlib
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from benchmarks import figures
from benchmarks.operations import OPERATIONS
from tests.gate import environments

RESULTS = pathlib.Path(__file__).parent / "results"
AGAIN = "again"
"""The side that is Ingot once more, in the same round: how far it is from itself is what noise does."""

MORE = ("p95_ms", "statements_per_op", "pss_mib")
"""Metrics with tables of their own, without targets."""

Row = Mapping[str, Any]
Found = Mapping[str, Row | Sequence[Row]]
"""By title a table with a line for each row, or one row, whose names and values are the table."""


class Sample(NamedTuple):
    """The metrics of one operation, on one side, in one round."""

    operation: str
    side: str
    round: int
    metrics: figures.Metrics


def circumstances() -> dict[str, Any]:
    """Return what the figures depend on and is not measured; this takes two seconds."""
    files = (pathlib.Path("/proc") / name for name in ("cpuinfo", "meminfo"))
    pairs = (line.partition(":") for file in files for line in file.read_text().splitlines())
    known = {name.strip(): value.strip() for name, _, value in pairs}
    module = pathlib.Path(sys.argv[0])
    program = "benchmarks" if module.stem == "__main__" else f"benchmarks.{module.stem}"
    commit = environments.run("git", "describe", "--always", "--dirty", "--exclude=*", cwd=environments.ROOT)
    return {
        "command": " ".join(["devstack/services.py run -- python -m", program, *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit.strip(),
        "processor": known.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "memory": known["MemTotal"],
        "kernel": platform.release(),
        "Python": platform.python_version(),
        **pressure("before"),
    }


def pressure(when: str) -> dict[str, Any]:
    """Return the machine's load, and how many times slower than the reference machine its processors are."""
    slowness = environments.run(sys.executable, environments.ROOT / "devstack" / "speed.py")
    return {f"load {when}": round(os.getloadavg()[0], 1), f"times slower {when}": float(slowness)}


def keep(directory: pathlib.Path, name: str, facts: Row, found: Found, **more: Any) -> pathlib.Path:
    """Write a page of what was found, and all of it as JSON beside it; return where the page is.

    :param facts: the circumstances, by which the file is named, too.
    :param more: what only the file for programs has.
    """
    moment = facts["date"][:16].replace(":", "")
    page = directory / f"{moment}-{facts['commit']}-{name}.md"
    shown = {fact: value for fact, value in facts.items() if fact != "command"}
    lines = [f"# {name}", "", f"    {facts['command']}", "", *_lines(shown), ""]
    for title, part in found.items():
        lines += [f"## {title}", "", *_lines(part), ""]
    directory.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(lines))
    text = json.dumps({"facts": facts, "found": found, **more}, indent=1, default=str)
    page.with_suffix(".json").write_text(text + "\n")
    return page


def finish(name: str, facts: Row, found: Found) -> None:
    """Keep what a command has found so far, and print where."""
    print(keep(RESULTS, name, {**facts, **pressure("after")}, found))


def _lines(part: Row | Sequence[Row]) -> list[str]:
    """Return a table in Markdown."""
    rows = [{"what": name, "how": value} for name, value in part.items()] if isinstance(part, Mapping) else part
    heads = list(dict.fromkeys(name for row in rows for name in row))
    lines = [heads, ["---"] * len(heads), *([_text(row.get(name, "")) for name in heads] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines] if rows else ["none"]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(one)}" for name, one in value.items()) or "none"
    return figures.number(value) if isinstance(value, float) else str(value)


def list_tables(samples: Sequence[Sample], sides: Sequence[str]) -> Found:
    """Return the tables of a comparison; each cell has the least, the median and the greatest of the rounds.

    :param sides: ours, and the others.
    """
    judged = {name: operation.metric for name, operation in OPERATIONS.items()}
    found = {"What is judged": list(_rows(samples, sides, judged, judges=True))}
    found |= {metric: list(_rows(samples, sides, dict.fromkeys(OPERATIONS, metric))) for metric in MORE}
    return {title: rows for title, rows in found.items() if rows}


def _rows(
    samples: Sequence[Sample], sides: Sequence[str], metrics: Mapping[str, str], judges: bool = False
) -> Iterator[Row]:
    ours, *others = sides
    for name, metric in metrics.items():
        if own := series(samples, name, ours, metric):
            row = {"operation": name, "metric": metric, "ours": figures.spread([*own.values()])}
            for other in others:
                theirs = series(samples, name, other, metric)
                row[f"of {other}"] = figures.spread([*theirs.values()])
                row[f"less than {other}"] = figures.spread(figures.factors(own, theirs))
            if judges:
                row |= _judge(name, own, series(samples, name, "Ironic", metric))
            yield row


def series(samples: Iterable[Sample], operation: str, side: str, metric: str) -> dict[int, float]:
    """Return a metric of an operation on one side, by round."""
    return {
        one.round: one.metrics[metric]
        for one in samples
        if (one.operation, one.side) == (operation, side) and metric in one.metrics
    }


def _judge(name: str, own: Mapping[int, float], ironic: Mapping[int, float]) -> Row:
    """Return how far ahead an operation is to be, and whether it is, by the median."""
    operation = OPERATIONS[name]
    if operation.most is not None:
        reached = figures.percentile([*own.values()], 0.5) <= operation.most
        return {"target": f"at most {operation.most:g}", "reached": "yes" if reached else "no"}
    times = figures.factors(own, ironic)
    verdict = "-" if not times else "yes" if figures.percentile(times, 0.5) >= operation.factor else "no"
    return {"target": f"{operation.factor:g} times", "reached": verdict}
