"""What a run leaves: a table for people and a file for programs, with the machine, its load and all versions."""

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
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "processor": known.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "memory": known["MemTotal"],
        "kernel": platform.release(),
        "Python": platform.python_version(),
        **pressure("before"),
    }


def pressure(when: str) -> dict[str, Any]:
    """Return how busy the machine is: its load, and how many times slower than a quiet one it works."""
    slowness = environments.run(sys.executable, environments.ROOT / "devstack" / "speed.py")
    return {f"load {when}": round(os.getloadavg()[0], 1), f"times slower {when}": float(slowness)}


def commit() -> str:
    """Return the commit of the checkout, and whether it was changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return environments.run(*command, cwd=environments.ROOT).strip()


def path(directory: pathlib.Path, name: str, facts: Mapping[str, Any]) -> pathlib.Path:
    """Return where the page of a run goes: by date, commit and name."""
    return directory / f"{facts['date'][:10]}-{facts['commit']}-{name}.md"


def series(samples: Iterable[Sample], operation: str, side: str, metric: str) -> dict[int, float]:
    """Return a metric of an operation on one side, by round."""
    return {
        one.round: one.metrics[metric]
        for one in samples
        if (one.operation, one.side) == (operation, side) and metric in one.metrics
    }


def is_reached(operation: str, factors: Sequence[float], values: Sequence[float]) -> bool | None:
    """Return whether an operation is as far ahead as it is to be, by the median; None when that is not known."""
    target = OPERATIONS[operation]
    if target.most is not None:
        found = figures.spread(values)
        return found and found.median <= target.most
    found = figures.spread(factors)
    return found and found.median >= target.factor


def target_table(samples: Sequence[Sample], sides: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of the table of targets: first the heads of its columns.

    :param sides: ours, and the others.
    """
    for line in metric_table(samples, sides, {name: operation.metric for name, operation in OPERATIONS.items()}):
        name, *rest = line
        yield [name, *rest, *(_judge(samples, name, sides[0]) if name in OPERATIONS else ("target", "reached"))]


def metric_table(samples: Sequence[Sample], sides: Sequence[str], metrics: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the lines of a table with a metric of each operation: first the heads of its columns."""
    ours, *others = sides
    yield ["operation", "metric", "ours", *(f"{head} {other}" for other in others for head in ("of", "less than"))]
    for name, metric in metrics.items():
        if own := series(samples, name, ours, metric):
            line = [name, metric, _text(own.values())]
            for theirs in (series(samples, name, other, metric) for other in others):
                line += [_text(theirs.values()), _text(figures.factors(own, theirs))]
            yield line


def _judge(samples: Sequence[Sample], name: str, ours: str) -> list[str]:
    operation = OPERATIONS[name]
    own = series(samples, name, ours, operation.metric)
    ironic = series(samples, name, "Ironic", operation.metric)
    reached = is_reached(name, figures.factors(own, ironic), list(own.values()))
    target = f"at most {operation.most:g}" if operation.most is not None else f"{operation.factor:g} times"
    return [target, {True: "yes", False: "no", None: "-"}[reached]]


def _text(values: Iterable[float]) -> str:
    return str(figures.spread(list(values)) or "-")


class Report(NamedTuple):
    """All that a run has found.

    :param name: of its files, after date and commit.
    :param facts: the circumstances, the versions of the parts, the command.
    :param packages: what is installed on each side.
    :param problems: on each side.
    """

    name: str
    title: str
    sides: Sequence[str]
    facts: Mapping[str, Any]
    packages: Mapping[str, Mapping[str, str]]
    samples: Sequence[Sample]
    problems: Mapping[str, Sequence[str]]

    def page(self) -> str:
        """Return the report for people."""
        lines = [f"# {self.title}", "", f"    {self.facts['command']}", "", *table([["what", "how"], *self._facts()])]
        lines += ["", "Each cell has the least, the median and the greatest of the rounds.", ""]
        lines += table(list(target_table(self.samples, self.sides)))
        for metric in MORE:
            head, *more = metric_table(self.samples, self.sides, dict.fromkeys(OPERATIONS, metric))
            lines += ["", *table([head, *more])] if more else []
        lines += [
            "",
            f"`{AGAIN}` is the same service as ours, measured once more in the same round: a factor of 1 is right.",
        ]
        found = [(side, problem) for side, problems in self.problems.items() for problem in dict.fromkeys(problems)]
        lines += ["", f"Problems: {len(found) or 'none'}", "", *(f"- {side}: {text}" for side, text in found[:20])]
        return "\n".join(lines).rstrip() + "\n"

    def _facts(self) -> list[list[str]]:
        return [[name, str(value)] for name, value in self.facts.items() if name != "command"]

    def write(self, directory: pathlib.Path) -> pathlib.Path:
        """Write the page, and a file with every figure beside it; return where the page is."""
        directory.mkdir(parents=True, exist_ok=True)
        target = path(directory, self.name, self.facts)
        target.write_text(self.page())
        everything = {**self._asdict(), "samples": [sample._asdict() for sample in self.samples]}
        target.with_suffix(".json").write_text(json.dumps(everything, indent=1) + "\n")
        return target


def table(lines: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown; the first line has the heads of its columns."""
    head, *body = lines
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body)]
