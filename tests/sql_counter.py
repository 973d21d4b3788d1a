"""Counts what is sent to the database: statements, and the BEGINs, COMMITs and ROLLBACKs around them."""

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
    rollbacks: int = 0

    def __len__(self) -> int:
        return len(self.statements)

    def __str__(self) -> str:
        return "\n".join(f"{number}. {text}" for number, text in enumerate(self.statements, 1))


@contextlib.contextmanager
def counting(db: Database) -> Iterator[Counted]:
    """Count until the block ends, on both engines of a database and in all threads."""
    counted = Counted()

    def statement(_c: Any, _cursor: Any, text: str, _p: Any, _context: Any, _many: bool) -> None:
        counted.statements.append(" ".join(text.split()))

    def commit(_connection: Any) -> None:
        counted.commits += 1

    def rollback(_connection: Any) -> None:
        counted.rollbacks += 1

    single, multi = db.engines
    listeners = [
        *((engine, "before_cursor_execute", statement) for engine in (single, multi)),
        # Single statements run without transactions: what SQLAlchemy calls a rollback there is never sent.
        (multi, "commit", commit),
        (multi, "rollback", rollback),
    ]
    for listener in listeners:
        sa.event.listen(*listener)
    try:
        yield counted
    finally:
        for listener in listeners:
            sa.event.remove(*listener)
