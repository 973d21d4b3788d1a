"""Counts what is sent to the database: statements, and the COMMITs after several of them."""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ingot.db.engine import Database


@dataclasses.dataclass
class Counted:
    """What was sent while a counter was open."""

    statements: list[str] = dataclasses.field(default_factory=list)
    commits: int = 0

    def __len__(self) -> int:
        return len(self.statements)

    def __str__(self) -> str:
        return "\n".join(f"{number}. {text}" for number, text in enumerate(self.statements, 1))


@contextlib.contextmanager
def counting(db: Database) -> Iterator[Counted]:
    """Count until the block ends, in all threads."""
    counted = Counted()

    def statement(_c: Any, _cursor: Any, text: str, _p: Any, _context: Any, _many: bool) -> None:
        if not text.startswith("BEGIN"):
            counted.statements.append(" ".join(text.split()))

    def commit(_connection: Any) -> None:
        counted.commits += 1

    listeners = [(db.engine, "before_cursor_execute", statement), (db.engine, "commit", commit)]
    for listener in listeners:
        sa.event.listen(*listener)
    try:
        yield counted
    finally:
        for listener in listeners:
            sa.event.remove(*listener)
