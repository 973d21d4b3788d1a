"""Reports of what is not compared with another product: tables, and the same as JSON beside them."""

import json
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import figures, report

Row = Mapping[str, Any]
Found = Mapping[str, Row | Sequence[Row]]
"""By title a table with a line for each row, or one row, whose names and values are the table."""


def keep(name: str, found: Found, facts: Mapping[str, Any], part: str = "") -> pathlib.Path:
    """Print what was found, write it to the results, and return where its page is.

    :param part: of what the module measures.
    """
    command = f"python -m benchmarks.{name} {' '.join(sys.argv[1:])}".strip()
    known = {**facts, **report.pressure("after")}
    lines = [f"# {name.capitalize()}", "", f"    {command}", "", *_pairs(known), ""]
    for title, table in found.items():
        lines += [f"## {title}", "", *(_pairs(table) if isinstance(table, Mapping) else _rows(table)), ""]
    text = "\n".join(lines)
    report.RESULTS.mkdir(parents=True, exist_ok=True)
    page = report.path(report.RESULTS, f"{name}-{part}" if part else name, known)
    page.write_text(text)
    page.with_suffix(".json").write_text(
        json.dumps({"command": command, "facts": known, "found": found}, indent=1) + "\n"
    )
    print(text)
    return page


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return by how much a cost grows with each thousand of what it grows with: the line through all points."""
    mean_size, mean_cost = sum(sizes) / len(sizes), sum(costs) / len(costs)
    pairs = list(zip(sizes, costs, strict=True))
    spread = sum((size - mean_size) ** 2 for size, _ in pairs)
    return 1000 * sum((size - mean_size) * (cost - mean_cost) for size, cost in pairs) / spread if spread else 0.0


def _pairs(row: Row) -> list[str]:
    return report.table([["what", "how"], *([name, _text(value)] for name, value in row.items())])


def _rows(rows: Sequence[Row]) -> list[str]:
    heads = list(dict.fromkeys(name for row in rows for name in row))
    return report.table([heads, *([_text(row.get(name, "")) for name in heads] for row in rows)])


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(one)}" for name, one in value.items()) or "none"
    return figures.number(value) if isinstance(value, float) else str(value)
