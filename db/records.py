"""What query functions return: one row as an object with the columns as attributes."""

import datetime
import types
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

_EPOCH = datetime.datetime(1970, 1, 1)
_TICK = datetime.timedelta(microseconds=1)


class Record(types.SimpleNamespace):
    """A row of a table at the moment it was read. Changing an attribute changes nothing in the database."""

    def __getattr__(self, name: str) -> Any:  # only for type checkers: unknown attributes raise as usual
        raise AttributeError(f"{name} was not read")

    def as_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)

    @property
    def version(self) -> str:
        """Names this state of the row among all that a row of its uuid ever had, earlier rows of the uuid included.

        Needs created_at, and revision (nodes) or updated_at.
        """
        revision = self.__dict__.get("revision")
        if revision is None:
            return _moment(self.updated_at or self.created_at)
        return f"{revision}.{_moment(self.created_at)}"

    def __repr__(self) -> str:
        return f"<{self.__dict__.get('uuid', self.__dict__.get('id'))}>"  # rows hold secrets


def _moment(moment: datetime.datetime) -> str:
    return f"{(moment - _EPOCH) // _TICK:x}"


def one(result: sa.CursorResult[Any]) -> Record | None:
    row = result.mappings().first()
    return None if row is None else Record(**row)


def many(result: sa.CursorResult[Any]) -> list[Record]:
    return [Record(**row) for row in result.mappings()]


def columns(table: sa.Table, names: Iterable[str] | None) -> list[sa.Column[Any]]:
    """The named columns of a table, or all."""
    return list(table.c) if names is None else [table.c[name] for name in names]
