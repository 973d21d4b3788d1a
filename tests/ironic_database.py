"""Databases as Ironic leaves them: SQLite files with the tables of a release, and rows that tests write.

``ironic_schema.json`` has the columns of release 39, and what older releases lack. The gate's step ``moving`` compares
it with real Ironic.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

SCHEMA = json.loads(pathlib.Path(__file__).with_name("ironic_schema.json").read_text())
NEWEST: str = SCHEMA["revision"]

_TYPES: Mapping[str, type[sa.types.TypeEngine[Any]]] = {
    "boolean": sa.Boolean,
    "bigint": sa.BigInteger,
    "datetime": sa.DateTime,
    "integer": sa.Integer,
    "text": sa.Text,
}

_NODE: Mapping[str, Any] = {
    "driver": "fake-hardware",
    "provision_state": "available",
    "power_state": "power on",
    "created_at": "2026-03-01 12:00:00",
    "conductor_group": "",
    "protected": 0,
}


def list_tables(revision: str = NEWEST) -> dict[str, dict[str, str]]:
    """Return the tables of a revision: by name, the types of their columns."""
    lacks: Mapping[str, list[str]] = SCHEMA["lacks"].get(revision, {})
    every = {
        table: {name: kind for name, kind in columns.items() if name not in lacks.get(table, ())}
        for table, columns in SCHEMA["tables"].items()
    }
    return {table: columns for table, columns in every.items() if columns}


class IronicDatabase:
    """A database of Ironic.

    :param path: of the file, which is made.
    """

    def __init__(self, path: pathlib.Path, revision: str = NEWEST) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"
        self.tables = list_tables(revision)
        metadata = sa.MetaData()
        for name, columns in self.tables.items():
            types = ((column, _TYPES.get(kind, sa.String)()) for column, kind in columns.items())
            sa.Table(name, metadata, *(sa.Column(column, kind, primary_key=column == "id") for column, kind in types))
        self.engine = sa.create_engine(self.url, poolclass=sa.pool.NullPool)
        metadata.create_all(self.engine)
        self.add("alembic_version", version_num=revision)

    def add(self, table: str, **values: Any) -> None:
        """Write a row; JSON is given as what it says."""
        given = {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in values.items()}
        with self.engine.begin() as connection:
            connection.execute(sa.insert(self._table(table)), given)

    def add_node(self, number: int, **values: Any) -> str:
        """Write a node; return its uuid."""
        uuid = f"00000000-0000-0000-0000-{number:012}"
        self.add("nodes", **{**_NODE, "id": number, "uuid": uuid, "name": f"node-{number}", **values})
        return uuid

    def execute(self, statement: str, **values: Any) -> None:
        """Execute a statement."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Return the rows of a table as they are kept, in the order of their first column."""
        found = self._table(table)
        with self.engine.connect() as connection:
            return [dict(row) for row in connection.execute(sa.select(found).order_by(sa.text("1"))).mappings()]

    def _table(self, name: str) -> sa.TableClause:
        """Return a table whose values are as they are kept."""
        return sa.table(name, *map(sa.column, self.tables[name]))
