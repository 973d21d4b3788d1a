"""The connection to the database: one engine for single statements, one for transactions, both of one URL.

A single statement needs neither BEGIN nor COMMIT; with MariaDB that halves the round trips of a read. Several
statements run in :meth:`Database.transaction`.
"""

import contextlib
import functools
import logging
import os
import pathlib
import random
import re
import sqlite3
import time
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import exc_filters
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from ingot.common import errors, keyring
from ingot.db import models

LOG = logging.getLogger(__name__)

_PING_AFTER = 1.0  # seconds of idleness
_WAL_PATIENCE = 30.0  # seconds

_CONNECT_S = 5
"""Seconds within which a server must take a connection."""

_ANSWER_S = 30
"""Seconds within which it must answer a statement. One that is frozen, or behind a line that swallows everything, must
not keep a request for ever. Migrations have no limit."""

_LOCK_S = 10
"""Seconds that a statement waits for rows that another transaction has, and after which the server ends a transaction
in which nothing happens: that of a process that is frozen would keep all others from a node."""

_MOST_ATTEMPTS = 10

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
        until = time.monotonic() + _ANSWER_S
        for attempt in range(1, _MOST_ATTEMPTS):
            try:
                return query(*args, **kwargs)
            except Deadlock:
                if time.monotonic() > until:
                    raise
                time.sleep(random.uniform(0, min(0.1 * attempt, 1)))  # noqa: S311 - no secret
        return query(*args, **kwargs)

    return retrying


Options = dict[str, object]


def _mysql(group: cfg.ConfigOpts.GroupAttr, limited: bool) -> Options:
    session: dict[str, object] = {"sql_mode": group.mysql_sql_mode, "wsrep_sync_wait": group.mysql_wsrep_sync_wait}
    arguments: Options = {"connect_timeout": _CONNECT_S}
    if limited:
        session["innodb_lock_wait_timeout"] = _LOCK_S
        arguments |= {"read_timeout": _ANSWER_S, "write_timeout": _ANSWER_S}
    settings = [f"SESSION {name} = {value!r}" for name, value in session.items() if value not in (None, "")]
    if limited:  # in a comment that only MariaDB reads: MySQL has no such setting
        settings[-1] += f" /*M!100300 , SESSION idle_transaction_timeout = {_LOCK_S} */"
    return arguments | ({"init_command": f"SET {', '.join(settings)}"} if settings else {})


def _postgresql(_group: cfg.ConfigOpts.GroupAttr, limited: bool) -> Options:
    arguments: Options = {"connect_timeout": _CONNECT_S}
    if limited:
        settings = {"lock_timeout": _LOCK_S, "idle_in_transaction_session_timeout": _LOCK_S}
        arguments["options"] = " ".join(f"-c {name}={seconds}s" for name, seconds in settings.items())
    return arguments


_CONNECT_ARGS: Mapping[str, Callable[[cfg.ConfigOpts.GroupAttr, bool], Options]] = {
    "mysql": _mysql,
    "postgresql": _postgresql,
    "sqlite": lambda _group, _limited: {"timeout": _ANSWER_S, "check_same_thread": False},
}

_ELSEWHERE = frozenset((1047, 1290, 1792, 1836, "25006"))
"""Codes of errors of a server that is not, or not any more, the one to write to: a replica that was the primary until a
failover, a node that its Galera cluster has lost. A new connection may reach the right one."""

_REFUSED = re.compile(
    "Access denied|Unknown database|authentication failed|no pg_hba.conf entry|permission denied|"
    "unable to open database|readonly database|file is not a database|(role|database) .* does not exist",
    re.IGNORECASE,
)
"""What servers of all kinds say to a user, a password or a database that is wrong. PostgreSQL's driver has no codes for
errors at a login."""

_URLS = (
    "Use mysql+pymysql://LOGIN@HOST/NAME or postgresql+psycopg://LOGIN@HOST/NAME, with user:password as LOGIN, or "
    "sqlite:////FILE."
)


class Database:
    """The database: the first argument of every query function.

    :param conf: its [database] group gives URL and pool sizes (oslo.db's options).
    :ivar keyring: what secrets are encrypted with.
    :raises ConfigurationError: the URL names an SQLite database that cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.url = parse_url(conf.database.connection).update_query_string(conf.database.connection_parameters)
        if self.url.get_backend_name() == "sqlite":
            _create_file(self.url)
        self._group = conf.database
        self.keyring = keyring.Keyring.of(conf)
        self._single = self._make(isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
        self._multi = self._make()
        self._trouble = ""
        _databases.add(self)

    @contextlib.contextmanager
    def single(self) -> Iterator[sa.Connection]:
        """Open a connection on which each statement stands for itself.

        :raises ServiceUnavailable: the database is away.
        """
        with self._translate_errors(), self._single.connect() as connection:
            yield connection

    def read_first(self, model: type[_Record], statement: sa.Select[Any]) -> _Record | None:
        """Return the first row that a statement selects, if there is one."""
        with self.single() as connection:
            return model.first_of(connection.execute(statement))

    def read_all(self, model: type[_Record], statement: sa.Select[Any]) -> list[_Record]:
        """Return all rows that a statement selects."""
        with self.single() as connection:
            return model.all_of(connection.execute(statement))

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
    def write(self, statement: sa.UpdateBase) -> int:
        """Execute a statement that stands for itself, and return how many rows it wrote."""
        with self.single() as connection:
            return connection.execute(statement).rowcount

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Open a connection in a transaction that is committed at the end, rolled back on an exception.

        :raises ServiceUnavailable: the database is away.
        """
        with self._translate_errors(), self._multi.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def own_connection(self) -> Iterator[sa.Connection]:
        """Open a connection that is not reused, for migrations: the session may be changed, and nothing is limited.

        :raises ServiceUnavailable: the database is away.
        """
        engine = self._make(limited=False)
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
            raise Deadlock(what="The database", reason="other transactions write the same") from exc
        except (
            db_exc.DBConnectionError,
            db_exc.DBNonExistentDatabase,
            sa.exc.OperationalError,
            sa.exc.TimeoutError,
        ) as exc:
            before, self._trouble = self._trouble, str(exc).splitlines()[0]
            level = logging.DEBUG if self._trouble == before else logging.ERROR
            LOG.log(level, "Database unavailable: %s", self._trouble)
            if _REFUSED.search(str(exc)):
                raise errors.AccessRefused(what="The database", reason=errors.SEE_LOG) from exc
            raise errors.ServiceUnavailable(what="The database", reason=errors.SEE_LOG) from exc
        self._trouble = ""

    @property
    def engines(self) -> tuple[sa.Engine, sa.Engine]:
        """Both engines, for listeners to statements (tests count them)."""
        return self._single, self._multi

    def dispose(self) -> None:
        """Close the pooled connections."""
        for engine in self.engines:
            engine.dispose()

    def _make(self, limited: bool = True, **options: Any) -> sa.Engine:
        group, backend = self._group, self.url.get_backend_name()
        arguments = _CONNECT_ARGS[backend](group, limited)
        options |= {
            "hide_parameters": True,  # an error's text goes to logs and last_error, and rows hold secrets
            "pool_recycle": group.connection_recycle_time,
            "pool_size": group.max_pool_size or 5,
            "max_overflow": group.max_overflow,
            "pool_timeout": group.pool_timeout or 30,
            # What the operator has written into the address is stronger.
            "connect_args": {name: value for name, value in arguments.items() if name not in self.url.query},
        }
        engine = sa.create_engine(self.url, **options)
        models.keyrings[engine.dialect] = self.keyring
        sa.event.listen(engine, "handle_error", _leave_server)
        exc_filters.register_engine(engine)
        if backend == "sqlite":
            _prepare_each_file(engine, "FULL" if group.sqlite_synchronous else "OFF")
            if "isolation_level" not in options:
                # Who reads first and writes later could not wait for another writer (SQLITE_BUSY at once).
                sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        else:
            _ping_idle_connections(engine)
        if backend == "postgresql" and limited:
            _limit_waits(engine)
        return engine


def _leave_server(context: sa.ExceptionContext) -> None:
    """Close the connections to a server that is the wrong one by now."""
    error = context.original_exception
    code = getattr(error, "sqlstate", None) or next(iter(error.args), None)
    if code in _ELSEWHERE:
        context.is_disconnect = True


def parse_url(text: str) -> sa.URL:
    """Return the address of a database.

    :raises ConfigurationError: it is none, of a kind that Ingot does not know, or for a driver that is not installed.
    """
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError) as exc:
        # The text may hold a password, and what is wrong with it hides where.
        raise errors.ConfigurationError(option="[database] connection", value="***", allowed=_URLS) from exc
    # oslo.db knows a MariaDB's errors (a deadlock, a duplicate) only under the name mysql.
    url = url.set(drivername=url.drivername.replace("mariadb", "mysql", 1))
    if url.get_backend_name() not in _CONNECT_ARGS:
        raise errors.ConfigurationError(
            option="[database] connection", value=url.render_as_string(hide_password=True), allowed=_URLS
        )
    try:
        url.get_dialect().import_dbapi()
    except (sa.exc.NoSuchModuleError, ImportError) as exc:
        raise errors.ConfigurationError(
            option="[database] connection",
            value=url.drivername,
            allowed=f"Its driver is not installed ({exc}). {_URLS} Ingot's extras mysql and postgresql install those.",
        ) from exc
    return url


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
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
            except sqlite3.DatabaseError as exc:  # what is there is no database
                raise sqlite3.OperationalError(str(exc)) from exc
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


_Exchange = Generator[Any, Any, Any]


class _NoAnswerError(Exception):
    """The server is frozen, or the line swallows everything."""


def _limit_waits(engine: sa.Engine) -> None:
    """Have connections to PostgreSQL give up on a server, and end, when it does not answer: the driver has no limit."""
    driver: Any = engine.dialect.loaded_dbapi  # is only installed where it is used
    seconds = _ANSWER_S

    def wait(self: Any, gen: _Exchange, *args: object, **kwargs: object) -> object:
        try:
            return driver.Connection.wait(self, _limit(gen, seconds), *args, **kwargs)
        except _NoAnswerError as exc:
            self.pgconn.finish()  # a late answer would be taken for that to the next question
            raise driver.OperationalError(f"no answer for {seconds} s") from exc

    limited: Any = type("Limited", (driver.Connection,), {"wait": wait})

    def connect(_dialect: object, _record: object, arguments: Sequence[object], options: Mapping[str, object]) -> Any:
        return limited.connect(*arguments, **options)

    sa.event.listen(engine, "do_connect", connect)


def _limit(exchange: _Exchange, seconds: float) -> _Exchange:
    """Wrap an exchange with the server, which asks for readiness and hears every now and then that there is none."""
    until = time.monotonic() + seconds
    try:
        awaited = exchange.send(None)
        while True:
            ready = yield awaited
            if not ready and time.monotonic() > until:
                raise _NoAnswerError
            awaited = exchange.send(ready)
    except StopIteration as end:
        return end.value


# A WSGI server may fork after the pools were used, and two processes must not use one connection: the child begins with
# empty pools, and keeps the old ones only so that their connections are not closed under the parent.
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_inherited: list[sa.Pool] = []


def _leave_pools_to_parent() -> None:
    for engine in (engine for database in _databases for engine in database.engines):
        _inherited.append(engine.pool)
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_pools_to_parent)
