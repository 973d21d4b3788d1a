"""Ironic's database: opening it, and refusing one that is not what it should be."""

import contextlib
import datetime
import functools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, errors, masking
from ingot.common.conf import files
from ingot.db import drivers, models
from ingot.db.engine import REFUSED
from ingot.db.moving import schema

_BATCH = 500
"""Rows that are in memory at a time."""

_PLACE = "Ironic's database"

_BEGIN = {
    ("mysql", False): "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ("mysql", True): "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    ("sqlite", False): "BEGIN",
    ("sqlite", True): "BEGIN IMMEDIATE",
}
"""By backend, and whether it is written to, what begins the transaction that everything is read in."""

_ALSO: Mapping[str, sa.types.TypeEngine[Any]] = {
    "id": sa.Integer(),
    "version": sa.String(),
    "created_at": sa.DateTime(),
    "updated_at": sa.DateTime(),
    "reservation": sa.String(),
    "allocation_id": sa.Integer(),
    "scope": sa.String(),
}
"""Columns of Ironic that Ingot has not, or not in each table, and that are needed."""

_HEARTBEAT = 60
"""Seconds for which a conductor of Ironic counts as running, as Ironic's [conductor] heartbeat_timeout has it."""


class Peer:
    """Ironic's database in one transaction.

    :param connection: is in that transaction.
    :ivar release: the newest release of Ironic that has this schema.
    :raises Conflict: it is no database of Ironic, or of a release that is not known.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._inspector = sa.inspect(connection)
        self._tables = frozenset(self._inspector.get_table_names())
        self.release = schema.RELEASES[self._read_revision()][-1]

    def _read_revision(self) -> str:
        known = "; ".join(f"{', '.join(map(str, of))}: {name}" for name, of in schema.RELEASES.items())
        if not {"alembic_version", "nodes", "conductors"} <= self._tables:
            raise errors.Conflict(reason=f"{_PLACE} has no tables of Ironic. Name the database that Ironic used.")
        if "removed_nodes" in self._tables:
            raise errors.Conflict(reason="This is a database of Ingot. Name the database that Ironic used.")
        revision = self.connection.execute(sa.select(schema.REVISION)).scalar()
        if revision not in schema.RELEASES:
            raise errors.Conflict(
                reason=f"{_PLACE} has revision {revision}, which is that of no release known here ({known}). Upgrade "
                "Ironic to one of these first: install it and run its ironic-dbsync upgrade."
            )
        return str(revision)

    def list_running(self) -> list[str]:
        """Return the conductors that have written a heartbeat a moment ago, each with its age."""
        found = []
        for row in self.connection.execute(sa.select(schema.CONDUCTORS)):
            age = (clock.now() - (row.updated_at or datetime.datetime.min)).total_seconds()
            if row.online and age < _HEARTBEAT:
                found.append(f"{row.hostname} ({max(0, round(age))} s ago)")
        return found

    def list_volume_boots(self) -> frozenset[int]:
        """Return the ids of nodes with a volume that a machine may boot from."""
        table = sa.table("volume_targets", sa.column("node_id", sa.Integer()), sa.column("boot_index", sa.Integer()))
        found = self.connection.execute(sa.select(table.c.node_id).where(table.c.boot_index == 0))
        return frozenset(found.scalars())

    def table(self, noun: schema.Noun) -> sa.TableClause:
        """Return Ironic's table, with the columns that Ingot has too and this release has."""
        there = {column["name"] for column in self._inspector.get_columns(noun.theirs)}
        found = {**_ALSO, **{name: _their_type(column) for name, column in noun.columns.items()}}
        return sa.table(noun.theirs, *(sa.column(name, kind) for name, kind in found.items() if name in there))

    def has(self, noun: schema.Noun) -> bool:
        """Return whether this release has the table."""
        return noun.theirs in self._tables

    def read(self, noun: schema.Noun) -> Iterator[Sequence[sa.RowMapping]]:
        """Yield the rows of a table in batches, by one statement, in the order of their keys.

        :raises Conflict: a row holds JSON that is none.
        """
        table = self.table(noun)
        keys = ("id",) if "id" in table.c else noun.key
        statement = sa.select(table).order_by(*(table.c[name] for name in keys))
        if noun.newest:
            last = sa.select(sa.func.max(table.c[noun.newest])).group_by(*(table.c[name] for name in noun.key))
            statement = statement.where(table.c[noun.newest].in_(last))
        try:
            result = self.connection.execute(statement, execution_options={"yield_per": _BATCH})
            yield from result.mappings().partitions()
        except ValueError as exc:
            raise errors.Conflict(reason=f"{_PLACE}: a row of {noun.theirs} holds what is no JSON: {exc}.") from exc


def _their_type(column: sa.Column[Any]) -> sa.types.TypeEngine[Any]:
    """Return the type of Ironic's column: all its secrets stand there in plain."""
    kind = column.type
    return models.JsonText(kind.empty) if isinstance(kind, models.SecretJson) else kind


def read_address(text: str) -> str:
    """Return the address of a database, as it is given or as a configuration file of Ironic has it.

    :raises ConfigurationError: the file cannot be read, or names no database.
    """
    if "://" in text:
        return text
    mistakes: list[str] = []
    found = [one.value for one in files.read(text, mistakes) if (one.group, one.name) == ("database", "connection")]
    if found:
        return found[-1]
    reason = mistakes[0] if mistakes else f"{text} has no [database] connection."
    allowed = f"{reason} Name the address of the database, or a configuration file of Ironic that has it."
    raise errors.ConfigurationError(option="address of Ironic's database", value=text, allowed=allowed)


@contextlib.contextmanager
def open_peer(text: str, writes: bool = False) -> Iterator[Peer]:
    """Open Ironic's database in one transaction, which is rolled back unless the caller commits it.

    :param text: its address, or a configuration file of Ironic.
    :param writes: whether it is to be written; otherwise the database itself refuses that.
    :raises ConfigurationError: the address is none, or of a kind that Ironic does not have.
    :raises ServiceUnavailable: the database does not answer, or refuses the login or what it may not do.
    :raises Conflict: as :class:`Peer`, or the database refuses a row.
    """
    url = _parse(read_address(text))
    backend = url.get_backend_name()
    engine = _make_engine(url, writes)
    sa.event.listen(engine, "handle_error", functools.partial(_explain, url))
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(_BEGIN[backend, writes])
            yield Peer(connection)
            connection.rollback()
    finally:
        engine.dispose()


def _explain(url: sa.URL, context: sa.engine.ExceptionContext) -> None:
    """Raise an error of Ironic's database in its own words, before anything takes it for one of Ingot's.

    :raises Conflict: the database refuses a row.
    :raises ServiceUnavailable: it does not answer, or refuses the login or what it may not do.
    """
    original = context.original_exception
    if not isinstance(context.sqlalchemy_exception, sa.exc.DBAPIError):
        return
    said = masking.mask_text(str(original))
    if isinstance(context.sqlalchemy_exception, sa.exc.IntegrityError | sa.exc.DataError):
        raise errors.Conflict(reason=f"{_PLACE} refuses a row, and nothing was changed there: {said}") from original
    kind = errors.AccessRefused if REFUSED.search(said) else errors.ServiceUnavailable
    raise kind(what=f"{_PLACE} {url.render_as_string(hide_password=True)}", reason=said) from original


def _parse(text: str) -> sa.URL:
    url = drivers.parse_url(text, "address of Ironic's database")
    if url.get_backend_name() == "postgresql":
        raise errors.ConfigurationError(
            option="address of Ironic's database",
            value=url.render_as_string(hide_password=True),
            allowed="Ironic does not work with PostgreSQL: name a MariaDB, MySQL or SQLite database.",
        )
    return url


def _make_engine(url: sa.URL, writes: bool) -> sa.Engine:
    options: dict[str, object] = {"hide_parameters": True, "poolclass": sa.pool.NullPool}
    if url.get_backend_name() == "sqlite":
        path = pathlib.Path(url.database or "")
        if not path.is_file():
            hint = " Write the path instead of a reference such as $state_path." if "$" in str(path) else ""
            allowed = f"There is no such file.{hint}"
            raise errors.ConfigurationError(option="address of Ironic's database", value=str(url), allowed=allowed)
        mode = "rw" if writes else "ro"
        url = url.set(database=f"file:{path.absolute()}", query={"mode": mode, "uri": "true"})
        engine = sa.create_engine(url, **options)
        # The driver opens transactions of its own otherwise.
        sa.event.listen(engine, "connect", lambda connection, _record: setattr(connection, "isolation_level", None))
        return engine
    # What Ironic keeps may need more bytes for a character than the address that Ironic has asks for.
    url = url.update_query_dict({"charset": "utf8mb4"})
    # A server may be set to another isolation level, with which there is no snapshot.
    options |= {"isolation_level": "REPEATABLE READ", "connect_args": {"connect_timeout": drivers.CONNECT_S}}
    return sa.create_engine(url, **options)
