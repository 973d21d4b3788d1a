"""How many rows of nodes a database reads for what it is asked, on a fleet that the database makes itself."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa

from ingot.db import nodes
from ingot.db.engine import Database

_UUID = {"mysql": "UUID()", "postgresql": "gen_random_uuid()"}
_ANALYZE = {"mysql": "ANALYZE TABLE nodes", "postgresql": "ANALYZE nodes"}
_READ = ("read_first", "read_key", "read_last", "read_next", "read_prev", "read_rnd", "read_rnd_next")
_UNIQUE = ("id", "uuid", "name", "instance_uuid")

GROUPS = 20
"""Conductor groups, resource classes, owners and shards of a fleet."""

RARE = 2000
"""One node of so many is in a state that few are in."""

_SPREAD: Mapping[str, str] = {
    **{
        name: f"CONCAT('{name}-', MOD(id, {GROUPS}))"
        for name in ("conductor_group", "resource_class", "owner", "shard")
    },
    "lessee": f"CASE WHEN MOD(id, {RARE}) = 1 THEN 'lessee-1' END",
    "fault": f"CASE WHEN MOD(id, {RARE}) = 2 THEN 'power failure' END",
    "maintenance": f"MOD(id, {RARE}) = 2",
    "retired": f"MOD(id, {RARE}) = 3",
    "instance_name": f"CASE WHEN MOD(id, {RARE}) = 4 THEN 'database-7' END",
    "provision_state": f"CASE WHEN MOD(id, {RARE}) = 5 THEN 'clean failed' ELSE provision_state END",
    "driver": f"CASE WHEN MOD(id, {RARE}) = 6 THEN 'ipmi' ELSE driver END",
}
"""What the copies of nodes have, by column."""


def multiply(db: Database, number: int) -> None:
    """Copy the nodes there are until there are so many: each with values of its own where lists tell nodes apart."""
    dialect = db.url.get_backend_name()
    with db.own_connection() as connection:
        quote = connection.dialect.identifier_preparer.quote
        kept = [column.name for column in nodes.NODES.c if column.name not in (*_SPREAD, *_UNIQUE)]
        values = {
            **{name: quote(name) for name in kept},
            **_SPREAD,
            "uuid": f"CAST({_UUID[dialect]} AS CHAR(36))",
            "name": "CONCAT('node-{count}-', id)",
            "instance_uuid": f"CASE WHEN provision_state = 'active' THEN CAST({_UUID[dialect]} AS CHAR(36)) END",
        }
        names = ", ".join(map(quote, values))
        text = f"INSERT INTO nodes ({names}) SELECT {', '.join(values.values())} FROM nodes"  # noqa: S608 - all is ours
        while (count := connection.exec_driver_sql("SELECT COUNT(*) FROM nodes").scalar_one()) < number:
            connection.exec_driver_sql(f"{text.format(count=count)} ORDER BY id LIMIT {number - count}")
        connection.commit()
        connection.exec_driver_sql(_ANALYZE[dialect])
        connection.commit()


class Reading(NamedTuple):
    """What the database did for a statement.

    :param rows: of tables that it read, with MariaDB of indexes, too.
    """

    statement: str
    rows: int
    plan: str


@contextlib.contextmanager
def collected(db: Database, table: str = "nodes") -> Iterator[list[tuple[str, Any]]]:
    """Collect the statements that read a table meanwhile, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.startswith("SELECT") and f"FROM {table}" in statement:
            sent.append((statement, parameters))

    sa.event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        sa.event.remove(db.engine, "before_cursor_execute", note)


def readings(db: Database, work: Callable[[], object], table: str = "nodes") -> list[Reading]:
    """Return what the statements cost that some work sends, each of which is sent again to find out."""
    with collected(db, table) as sent:
        work()
    read = {"mysql": _read_on_mariadb, "postgresql": _read_on_postgresql}[db.url.get_backend_name()]
    with db.own_connection() as connection:
        return [Reading(statement, *read(connection, statement, parameters)) for statement, parameters in sent]


def _read_on_mariadb(connection: sa.Connection, statement: str, parameters: Any) -> tuple[int, str]:
    connection.exec_driver_sql("FLUSH STATUS")
    connection.exec_driver_sql(statement, parameters).all()
    status = {
        name.lower(): int(value)
        for name, value in connection.exec_driver_sql("SHOW SESSION STATUS LIKE 'Handler_read%%'")
    }
    steps = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings()
    plan = "; ".join(f"{step['type']} {step['key'] or ''} {step['Extra']}" for step in steps)
    return sum(status[f"handler_{name}"] for name in _READ), plan


def _read_on_postgresql(connection: sa.Connection, statement: str, parameters: Any) -> tuple[int, str]:
    found = connection.exec_driver_sql(
        f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) {statement}", parameters
    ).scalar_one()
    steps = list(_walk((json.loads(found) if isinstance(found, str) else found)[0]["Plan"]))
    rows = sum(
        (step["Actual Rows"] + step.get("Rows Removed by Filter", 0)) * step["Actual Loops"]
        for step in steps
        if "Relation Name" in step
    )
    return rows, "; ".join(f"{step['Node Type']} {step.get('Index Name', '')}" for step in steps)


def _walk(step: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield step
    for below in step.get("Plans", ()):
        yield from _walk(below)
