"""Lets an upgrade of the schema that was killed be run again, where the database cannot undo half of one.

MariaDB and MySQL commit each statement that changes a table. What was killed between two of them has done a part of its
revision, and the schema says that it has the revision before: those that are done already are left out then.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from alembic.ddl.base import AddColumn
from sqlalchemy import schema

_NOTHING = sa.text("SELECT 1")


def _has_index(catalogue: sa.Inspector, index: sa.Index) -> bool:
    return index.table is not None and catalogue.has_index(index.table.name, str(index.name))


_IS_DONE: Mapping[type[Any], Callable[[sa.Inspector, Any], bool]] = {
    schema.CreateTable: lambda catalogue, made: catalogue.has_table(made.element.name),
    schema.CreateIndex: lambda catalogue, made: _has_index(catalogue, made.element),
    schema.DropIndex: lambda catalogue, made: not _has_index(catalogue, made.element),
    AddColumn: lambda catalogue, made: (
        made.column.name in {column["name"] for column in catalogue.get_columns(made.table_name)}
    ),
}
"""By the kind of a statement, whether the schema shows that it was executed. Other kinds may be executed twice."""


@contextlib.contextmanager
def leaving_out_done(connection: sa.Connection) -> Iterator[None]:
    """Leave out meanwhile what was done before, on databases that keep half of a revision."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield
        return

    def choose(_connection: Any, statement: Any, *rest: Any) -> tuple[Any, Any, Any]:
        is_done = _IS_DONE.get(type(statement))
        if is_done is not None and is_done(sa.inspect(connection), statement):
            statement = _NOTHING
        return statement, rest[0], rest[1]

    sa.event.listen(connection, "before_execute", choose, retval=True)
    try:
        yield
    finally:
        sa.event.remove(connection, "before_execute", choose)
