"""The tables of doc/specs: requirements, what implements them, and the tests that prove them."""

import ast
import functools
import importlib
import importlib.metadata
import pathlib
import re
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]

COLUMNS = 5

HEADERS = ("Id", "What")


class Row(NamedTuple):
    """A requirement: its cells as text, in which names of code and tests are between double backquotes."""

    ident: str
    requirement: str
    implemented: str
    proven: str
    otherwise: str

    @property
    def places(self) -> list[tuple[str, list[str]]]:
        """(path, names in it) of everything that implements the requirement."""
        found = []
        for literal in _literals(self.implemented):
            path, _, names = literal.partition(":")
            found.append((path, [name.strip() for name in names.split(",") if name.strip()]))
        return found

    @property
    def tests(self) -> list[str]:
        return _literals(self.proven)


def _literals(cell: str) -> list[str]:
    return re.findall(r"``(.+?)``", cell)


def cells_of(text: str) -> list[list[str]]:
    """Return the cells of each row of all list-tables of a page."""
    cells: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("   * - "):
            cells.append([line[7:]])
        elif re.match(r"     -( |$)", line) and cells:
            cells[-1].append(line[7:])
        elif line.startswith("       ") and cells:
            cells[-1][-1] += f" {line.strip()}"
    return [[cell.strip() for cell in row] for row in cells]


def rows_of(text: str) -> list[Row]:
    """Return the rows of all list-tables of a page, without their header rows.

    :raises ValueError: a row has more or fewer cells than columns.
    """
    cells = cells_of(text)
    if wrong := [row for row in cells if len(row) != COLUMNS]:
        raise ValueError(f"not {COLUMNS} cells: {wrong}")
    return [Row(*row) for row in cells if row[0] not in HEADERS]


@functools.cache
def defined_in(path: pathlib.Path) -> frozenset[str]:
    """Return the classes, functions and variables of a module, and of its classes as Class.name."""
    return frozenset(_defined(ast.parse(path.read_text()).body, ""))


def _defined(body: list[ast.stmt], prefix: str) -> list[str]:
    found: list[str] = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(prefix + node.name)
        if isinstance(node, ast.ClassDef):
            found += _defined(node.body, f"{prefix}{node.name}.")
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found += [prefix + target.id for target in targets if isinstance(target, ast.Name)]
    return found


def exists(test: str) -> bool:
    """Return whether the method of a test's full name is there to be run."""
    module, _, rest = test.rpartition(".")
    module, _, cls = module.rpartition(".")
    try:
        return callable(getattr(getattr(importlib.import_module(module), cls), rest))
    except (ImportError, AttributeError):
        return False
