"""Lets an upgrade of the schema that was killed be run again, where the database cannot undo half of one.

MariaDB and MySQL commit each statement that changes a table. What was killed between two of them has done a part of its
revision, and the schema says that it has the revision before: those that are done already are left out then. What has
the same name and is another thing is not done: the statement is executed, and the database refuses it.
"""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from alembic.ddl.base import AddColumn, DropColumn
from alembic.runtime import migration
from sqlalchemy import schema

LOG = logging.getLogger(__name__)

_NOTHING = sa.text("SELECT 1")


def _columns(connection: sa.Connection, table: str) -> dict[str, Any]:
    """Return the types of a table's columns; none if there is no such table."""
    catalogue = sa.inspect(connection)
    found = catalogue.get_columns(table) if catalogue.has_table(table) else []
    return {column["name"]: column["type"] for column in found}


def _has_columns(connection: sa.Connection, table: str, columns: Iterable[sa.Column[Any]]) -> bool:
    found = _columns(connection, table)
    differs = migration.MigrationContext.configure(connection).impl.compare_type
    return all(one.name in found and not differs(sa.Column(one.name, found[one.name]), one) for one in columns)


def _has_table(connection: sa.Connection, table: sa.Table) -> bool:
    same = set(table.columns.keys()) == set(_columns(connection, table.name))
    return same and _has_columns(connection, table.name, table.columns)


def _indexes(connection: sa.Connection, index: sa.Index) -> dict[str | None, tuple[Any, bool]]:
    """Return columns and uniqueness of the indexes of an index's table, by name."""
    assert index.table is not None  # noqa: S101 - a migration names it
    found = sa.inspect(connection).get_indexes(index.table.name)
    return {one["name"]: (one["column_names"], bool(one["unique"])) for one in found}


def _has_index(connection: sa.Connection, index: sa.Index) -> bool:
    return _indexes(connection, index).get(index.name) == (list(index.columns.keys()), bool(index.unique))


_IS_DONE: Mapping[type[Any], Callable[[sa.Connection, Any], bool]] = {
    schema.CreateTable: lambda connection, made: _has_table(connection, made.element),
    schema.DropTable: lambda connection, made: not _columns(connection, made.element.name),
    schema.CreateIndex: lambda connection, made: _has_index(connection, made.element),
    schema.DropIndex: lambda connection, made: made.element.name not in _indexes(connection, made.element),
    AddColumn: lambda connection, made: _has_columns(connection, made.table_name, [made.column]),
    DropColumn: lambda connection, made: made.column.name not in _columns(connection, made.table_name),
}
"""By the kind of a statement, whether the schema shows that it was executed."""


def is_done(connection: sa.Connection, statement: Any) -> bool:
    """Return whether the schema shows that a statement was executed; of other kinds it never does.

    Migrations have no others but those that may be executed twice, such as a change of a column's type.
    """
    check = _IS_DONE.get(type(statement))
    return check is not None and check(connection, statement)


@contextlib.contextmanager
def leaving_out_done(connection: sa.Connection) -> Iterator[None]:
    """Leave out meanwhile what was done before, on databases that keep half of a revision."""
    if connection.dialect.name != "mysql":
        yield
        return

    def choose(_connection: Any, statement: Any, *rest: Any) -> tuple[Any, Any, Any]:
        if is_done(connection, statement):
            LOG.info("It was done before, and is left out: %s", " ".join(str(statement).split()))
            statement = _NOTHING
        return statement, rest[0], rest[1]

    sa.event.listen(connection, "before_execute", choose, retval=True)
    try:
        yield
    finally:
        sa.event.remove(connection, "before_execute", choose)
