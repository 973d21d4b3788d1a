"""What the database itself saw: every process has an account of its own, and triggers note every write with its
account. No part of Ingot takes part in it, so it is evidence about all of them.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

import sqlalchemy as sa

from ingot.db import models

NODES = models.table(models.Node)
CONDUCTORS = models.table(models.Conductor)
PASSWORD = "audited"

KEPT = ("reservation", "lock_epoch", "provision_state", "flow", "run_id", "step_state")
"""Columns whose values before and after a write are kept; of the others, only whether they changed."""

_metadata = sa.MetaData()

WRITES = sa.Table(
    "audit_writes",
    _metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("at", sa.Double),
    sa.Column("account", sa.String(255)),
    sa.Column("node_id", sa.Integer),
    sa.Column("changed", sa.Text),
    *(sa.Column(f"{when}_{name}", NODES.c[name].type) for name in KEPT for when in ("old", "new")),
)
SIGNS = sa.Table(
    "audit_signs",
    _metadata,
    sa.Column("id", sa.BigInteger, primary_key=True),
    sa.Column("at", sa.Double),
    sa.Column("account", sa.String(255)),
    sa.Column("hostname", sa.String(255)),
    sa.Column("heartbeat_at", CONDUCTORS.c.heartbeat_at.type),
)


class _Dialect(NamedTuple):
    """How a database says who writes when, makes an account, and has a statement run after each write."""

    account: str
    moment: str
    accounts: Callable[[str, str, str], list[str]]
    trigger: Callable[[str, str, str], list[str]]


def _mysql_accounts(name: str, _owner: str, database: str) -> list[str]:
    who = f"'{name}'@'127.0.0.1'"
    return [f"CREATE USER {who} IDENTIFIED BY '{PASSWORD}'", f"GRANT ALL ON {database}.* TO {who}"]


def _mysql_trigger(table: str, event: str, statement: str) -> list[str]:
    return [f"CREATE TRIGGER audit_{table}_{event} AFTER {event} ON {table} FOR EACH ROW {statement}"]


def _postgresql_accounts(name: str, owner: str, _database: str) -> list[str]:
    """Return statements for an account whose objects belong to the owner."""
    return [
        f'CREATE ROLE "{name}" LOGIN PASSWORD \'{PASSWORD}\' IN ROLE "{owner}"',
        f'ALTER ROLE "{name}" SET role = "{owner}"',
    ]


def _postgresql_trigger(table: str, event: str, statement: str) -> list[str]:
    name = f"audit_{table}_{event}"
    body = f"BEGIN {statement}; RETURN NEW; END"
    return [
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $body$ {body} $body$",
        f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()",
    ]


_DIALECTS = {
    "mysql": _Dialect("SUBSTRING_INDEX(USER(), '@', 1)", "UNIX_TIMESTAMP(SYSDATE(6))", _mysql_accounts, _mysql_trigger),
    "postgresql": _Dialect(
        "session_user", "extract(epoch FROM clock_timestamp())", _postgresql_accounts, _postgresql_trigger
    ),
}


def make_accounts(url: sa.URL, names: Collection[str]) -> None:
    """Create accounts with the rights that a database's owner has.

    :param url: of the database, as its owner.
    """
    make = _DIALECTS[url.get_backend_name()].accounts
    _execute(url, [statement for name in names for statement in make(name, str(url.username), str(url.database))])


def begin(url: sa.URL) -> None:
    """Record all writes from now on, in a database whose tables exist."""
    engine = sa.create_engine(url)
    _metadata.create_all(engine)
    engine.dispose()
    dialect = _DIALECTS[url.get_backend_name()]
    compiled = engine.dialect
    writes = _statement(WRITES, dialect, {"node_id": "NEW.id", "changed": _changed(compiled), **_values()})
    signs = _statement(SIGNS, dialect, {"hostname": "NEW.hostname", "heartbeat_at": "NEW.heartbeat_at"})
    statements = [
        *dialect.trigger("nodes", "UPDATE", writes),
        *dialect.trigger("conductors", "INSERT", signs),
        *dialect.trigger("conductors", "UPDATE", signs),
    ]
    _execute(url, statements)


def _values() -> dict[str, str]:
    return {f"{when}_{name}": f"{when.upper()}.{name}" for name in KEPT for when in ("old", "new")}


def _statement(table: sa.Table, dialect: _Dialect, values: dict[str, str]) -> str:
    values = {"at": dialect.moment, "account": dialect.account, **values}
    return str(sa.insert(table).values({name: sa.literal_column(value) for name, value in values.items()}))


def _changed(dialect: sa.Dialect) -> str:
    """Return an expression for the names of the columns that a write changed, between commas."""
    cases = [
        sa.case((sa.literal_column(f"OLD.{name}").is_distinct_from(sa.literal_column(f"NEW.{name}")), name))
        for name in NODES.c.keys()
    ]
    compiled = sa.func.concat_ws(",", *cases).compile(dialect=dialect, compile_kwargs={"literal_binds": True})
    return str(compiled)


def _execute(url: sa.URL, statements: list[str]) -> None:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
