"""The connection to the database.

Each statement stands for itself, without BEGIN and COMMIT; with MariaDB that halves the round trips of a read. Several
that belong together run in :meth:`Database.transaction`, on a connection of the same pool.
"""

import contextlib
import functools
import logging
import os
import pathlib
import random
import re
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import exc_filters
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from ingot.common import errors, keyring, metrics, probes
from ingot.db import drivers, models

LOG = logging.getLogger(__name__)

_PING_AFTER = 1.0  # seconds of idleness
_WAL_PATIENCE = 30.0  # seconds

_MOST_ATTEMPTS = 10

_CACHED_STATEMENTS = 200
"""Statements whose text is kept for the next time; one that reads a node takes 200 KiB."""

_HAS_EVENTS = "ingot.has_events"
"""The key in the information on a connection that says that events wait for its commit."""

_SINGLE, _TRANSACTION = map(metrics.DB_SECONDS.labels, ("statements", "transaction"))
_DEADLOCKS, _OUTAGES = map(metrics.DB_ERRORS.labels, ("deadlock", "unavailable"))

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")
_Record = TypeVar("_Record", bound=models.Record)
_Value = TypeVar("_Value")


class Deadlock(errors.ServiceUnavailable):
    """The server ended one of two transactions that were in each other's way (Galera: by certification)."""


def retry_transaction(query: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Decorate a query function, which is one transaction: one that the server ended for another's sake is tried again.

    :raises ServiceUnavailable: it failed too often, or for too long.
    """

    @functools.wraps(query)
    def retrying(*args: _Args.args, **kwargs: _Args.kwargs) -> _Result:
        until = time.monotonic() + drivers.ANSWER_S
        for attempt in range(1, _MOST_ATTEMPTS):
            try:
                return query(*args, **kwargs)
            except Deadlock:
                if time.monotonic() > until:
                    raise
                time.sleep(random.uniform(0, min(0.1 * attempt, 1)))  # noqa: S311 - no secret
        return query(*args, **kwargs)

    return retrying


_ELSEWHERE = frozenset((1047, 1290, 1792, 1836, "25006"))
"""Codes of errors of a server that is not, or not any more, the one to write to: a replica that was the primary until a
failover, a node that its Galera cluster has lost. A new connection may reach the right one."""

REFUSED = re.compile(
    "Access denied|command denied|Unknown database|authentication failed|no pg_hba.conf entry|permission denied|"
    "unable to open database|readonly database|file is not a database|(role|database) .* does not exist",
    re.IGNORECASE,
)
"""What servers of all kinds say to a user, a password or a database that is wrong. PostgreSQL's driver has no codes for
errors at a login."""


class Database:
    """The database: the first argument of every query function.

    :param conf: its [database] group gives URL and pool sizes (oslo.db's options).
    :ivar keyring: what secrets are encrypted with.
    :ivar probe: whether the database answers.
    :raises ConfigurationError: the URL names an SQLite database that cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.url = drivers.parse_url(conf.database.connection).update_query_string(conf.database.connection_parameters)
        if self.url.get_backend_name() == "sqlite":
            _create_file(self.url)
        self._group = conf.database
        self.keyring = keyring.Keyring.of(conf)
        # Who reads first and writes later could not wait for another writer of SQLite (SQLITE_BUSY at once).
        self._begin = "BEGIN IMMEDIATE" if self.url.get_backend_name() == "sqlite" else "BEGIN"
        self.engine = self._make(isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
        self._trouble = ""
        self.probe = probes.Probe(lambda: self.read_column(sa.select(sa.literal(1))))
        _databases.add(self)
        self._listeners: dict[object, Callable[[], object]] = {}

    @contextlib.contextmanager
    def listening(self, tell: Callable[[], object]) -> Iterator[None]:
        """Call a function whenever this process has committed something with events; it must return at once."""
        key = object()
        self._listeners[key] = tell
        try:
            yield
        finally:
            del self._listeners[key]

    def _announce(self, connection: sa.Connection) -> None:
        """Tell the listeners, if what was committed on a connection was marked by :func:`mark_events`."""
        if connection.info.pop(_HAS_EVENTS, False):
            for tell in tuple(self._listeners.values()):
                tell()

    @contextlib.contextmanager
    def single(self) -> Iterator[sa.Connection]:
        """Open a connection on which each statement stands for itself.

        :raises ServiceUnavailable: the database is away.
        """
        began = time.perf_counter()
        try:
            with self._translate_errors(), self.engine.connect() as connection:
                yield connection
                self._announce(connection)
        finally:
            _SINGLE.observe(time.perf_counter() - began)

    def read_first(self, model: type[_Record], statement: sa.Select[Any], **values: object) -> _Record | None:
        """Return the first row that a statement selects, if there is one.

        :param values: those of its parameters.
        """
        with self.single() as connection:
            return model.first_of(connection.execute(statement, values))

    def read_all(self, model: type[_Record], statement: sa.Select[Any], **values: object) -> list[_Record]:
        """Return all rows that a statement selects; parameters as in :meth:`read_first`."""
        with self.single() as connection:
            return model.all_of(connection.execute(statement, values))

    def read_column(self, statement: sa.Select[_Value]) -> list[_Value]:
        """Return the only column that a statement selects."""
        with self.single() as connection:
            return list(connection.execute(statement).scalars())

    def read_groups(self, statement: "sa.Select[int, _Value]") -> dict[int, list[_Value]]:
        """Return the values of the second column that a statement selects, by the value of the first."""
        groups: dict[int, list[_Value]] = {}
        with self.single() as connection:
            for key, value in connection.execute(statement):
                groups.setdefault(key, []).append(value)
        return groups

    @retry_transaction
    def write(self, statement: sa.UpdateBase, has_events: bool = False, **values: object) -> int:
        """Execute a statement that stands for itself, and return how many rows it wrote.

        :param has_events: whether it writes events, as :func:`mark_events` notes it.
        :param values: those of its parameters.
        """
        with self.single() as connection:
            if has_events:
                mark_events(connection)
            return connection.execute(statement, values).rowcount

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Open a connection in a transaction that is committed at the end, rolled back on an exception.

        :raises ServiceUnavailable: the database is away.
        """
        with _TRANSACTION.time(), self._translate_errors(), self.engine.connect() as connection:
            try:
                connection.exec_driver_sql(self._begin)
                yield connection
                connection.commit()
                self._announce(connection)
            except BaseException:
                _undo(connection)
                raise

    @contextlib.contextmanager
    def own_connection(self, limited: bool = False) -> Iterator[sa.Connection]:
        """Open a connection that is not reused: the session may be changed.

        :param limited: whether statements have to be answered as soon as others; those of migrations need not be.
        :raises ServiceUnavailable: the database is away.
        """
        engine = self._make(limited=limited)
        try:
            with self._translate_errors(), engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of a database that is unavailable into those that clients and workers know.

        An OperationalError that oslo.db has no name for is one of those: a refused connection, a lock that was not
        given in time, a full disk. Its text names hosts and users, so it is for the log and not for a client of the
        API. It is logged once, until the database is heard again or says something else.
        """
        try:
            yield
        except db_exc.DBDeadlock as exc:
            _DEADLOCKS.inc()
            raise Deadlock(what="The database", reason="other transactions write the same") from exc
        except (
            db_exc.DBConnectionError,
            db_exc.DBNonExistentDatabase,
            sa.exc.OperationalError,
            sa.exc.TimeoutError,
        ) as exc:
            _OUTAGES.inc()
            before, self._trouble = self._trouble, str(exc).splitlines()[0]
            level = logging.DEBUG if self._trouble == before else logging.ERROR
            LOG.log(level, "Database unavailable: %s", self._trouble)
            if REFUSED.search(str(exc)):
                raise errors.AccessRefused(what="The database", reason=errors.SEE_LOG) from exc
            raise errors.ServiceUnavailable(what="The database", reason=errors.SEE_LOG) from exc
        self._trouble = ""

    def serve_gauges(self) -> None:
        """Have Prometheus find how many connections there are."""
        metrics.ask("database", self._count_connections)

    def _count_connections(self) -> list[metrics.Metric]:
        pool, group = self.engine.pool, self._group
        if not isinstance(pool, sa.QueuePool):
            return []
        counts = {
            "busy": pool.checkedout(),
            "idle": pool.checkedin(),
            "most": (group.max_pool_size or 5) + (group.max_overflow or 0),
        }
        return [metrics.DB_CONNECTIONS(((state,), count) for state, count in counts.items())]

    def dispose(self) -> None:
        """Close the pooled connections."""
        self.engine.dispose()

    def _make(self, limited: bool = True, **options: Any) -> sa.Engine:
        group, backend = self._group, self.url.get_backend_name()
        options |= {
            "hide_parameters": True,  # an error's text goes to logs and last_error, and rows hold secrets
            "query_cache_size": _CACHED_STATEMENTS,
            "pool_recycle": group.connection_recycle_time,
            "pool_size": group.max_pool_size or 5,
            "max_overflow": group.max_overflow,
            "pool_timeout": group.pool_timeout or 30,
            "pool_use_lifo": True,  # those that were in use just now need no ping
            "connect_args": drivers.connect_options(self.url, group, limited),
        }
        engine = sa.create_engine(self.url, **options)
        models.keyrings[engine.dialect] = self.keyring
        sa.event.listen(engine, "handle_error", _leave_server)
        # Of what oslo.db listens to, the errors alone: any event of statements or transactions costs each statement.
        sa.event.listen(engine, "handle_error", exc_filters.handler, retval=True)
        if backend == "sqlite":
            _prepare_each_file(engine, "FULL" if group.sqlite_synchronous else "OFF")
            if "isolation_level" not in options:
                sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(self._begin))
        else:
            _ping_idle_connections(engine)
        drivers.teach(engine, limited)
        return engine


def mark_events(connection: sa.Connection) -> None:
    """Note that what is written on a connection has events: those who listen learn of its commit, or of a later one."""
    connection.info[_HAS_EVENTS] = True


def _undo(connection: sa.Connection) -> None:
    """Roll a transaction back; SQLAlchemy would not, as it takes each statement for one that stands for itself."""
    try:
        if not connection.invalidated:
            connection.connection.rollback()
    except connection.dialect.loaded_dbapi.Error:
        connection.invalidate()  # which ends the transaction, too


def _leave_server(context: sa.ExceptionContext) -> None:
    """Close the connections to a server that is the wrong one by now."""
    error = context.original_exception
    code = getattr(error, "sqlstate", None) or next(iter(error.args), None)
    if code in _ELSEWHERE:
        context.is_disconnect = True


def _create_file(url: sa.URL) -> None:
    if url.database in (None, "", ":memory:"):
        raise errors.ConfigurationError(
            option="[database] connection", value=str(url), allowed="Name a file: sqlite:////directory/ingot.sqlite."
        )
    path = pathlib.Path(url.database)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # It holds the passwords of BMCs. SQLite gives its companion files the same mode.
        path.touch(mode=0o600)
    except OSError as exc:
        raise errors.ConfigurationError(
            option="[database] connection",
            value=str(url),
            allowed=f"The file cannot be created ({exc.strerror}). Name another one, or another state_path.",
        ) from exc


def _prepare_each_file(engine: sa.Engine, synchronous: str) -> None:
    driver = engine.dialect.loaded_dbapi

    def on_connect(dbapi_connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        # The driver must not open transactions on its own: only SQLAlchemy does (BEGIN IMMEDIATE).
        dbapi_connection.isolation_level = None
        cursor = dbapi_connection.cursor()
        # SQLite does not wait here for other processes that open a new file at the same moment.
        until = time.monotonic() + _WAL_PATIENCE
        while True:
            try:
                cursor.execute("PRAGMA journal_mode=WAL")
                break
            except driver.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            except driver.DatabaseError as exc:  # what is there is no database
                raise driver.OperationalError(str(exc)) from exc
        cursor.execute(f"PRAGMA synchronous={synchronous}")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    sa.event.listen(engine, "connect", on_connect)


def _ping_idle_connections(engine: sa.Engine) -> None:
    """Find connections that died while idle.

    pool_pre_ping does so before every use, which costs as much as a small query. A connection that was in use a second
    ago is good enough; if it is not after all, one request fails and the pool is renewed.
    """

    def on_checkin(_dbapi_connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info["idle_since"] = time.monotonic()

    def on_checkout(
        dbapi_connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: PoolProxiedConnection
    ) -> None:
        if time.monotonic() - record.info.get("idle_since", float("inf")) <= _PING_AFTER:
            return
        try:
            engine.dialect.do_ping(dbapi_connection)
        except engine.dialect.loaded_dbapi.Error as exc:
            raise sa.exc.InvalidatePoolError("the connection died while idle") from exc

    sa.event.listen(engine, "checkin", on_checkin)
    sa.event.listen(engine, "checkout", on_checkout)


# A WSGI server may fork after the pools were used, and two processes must not use one connection: the child begins with
# empty pools, and keeps the old ones only so that their connections are not closed under the parent.
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_inherited: list[sa.Pool] = []


def _leave_pools_to_parent() -> None:
    for database in _databases:
        _inherited.append(database.engine.pool)
        database.engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_pools_to_parent)
