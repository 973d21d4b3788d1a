"""The connection to the database: one engine for single statements, one for transactions, both of one URL.

A single statement needs neither BEGIN nor COMMIT; with MariaDB that halves the round trips of a read. What
takes several statements runs in :meth:`Database.transaction`.
"""

import contextlib
import logging
import os
import pathlib
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import exc_filters

from ingot.common import errors

LOG = logging.getLogger(__name__)

_PING_AFTER = 1.0  # seconds of idleness
_WAL_PATIENCE = 30.0  # seconds

retried = oslo_db_api.wrap_db_retry(
    max_retries=10,
    retry_interval=0.05,
    inc_retry_interval=True,
    max_retry_interval=1,
    jitter=True,
    retry_on_deadlock=True,
)
"""For query functions: a deadlock (Galera: a certification conflict) is tried again; each is one
transaction."""


def _mysql_session(group: cfg.ConfigOpts.GroupAttr) -> dict[str, Any]:
    settings = {"sql_mode": group.mysql_sql_mode, "wsrep_sync_wait": group.mysql_wsrep_sync_wait}
    wanted = [f"SESSION {name} = {value!r}" for name, value in settings.items() if value not in (None, "")]
    return {"init_command": f"SET {', '.join(wanted)}"} if wanted else {}


_CONNECT_ARGS: Mapping[str, Callable[[cfg.ConfigOpts.GroupAttr], dict[str, Any]]] = {
    "mysql": _mysql_session,
    "postgresql": lambda _group: {},
    "sqlite": lambda _group: {"timeout": 30, "check_same_thread": False},
}


_URLS = "Use mysql+pymysql://user:password@host/name, postgresql+psycopg://user:password@host/name or sqlite:////file."


class Database:
    """What every query function takes first.

    :param conf: its [database] group gives URL and pool sizes (oslo.db's options).
    :raises ConfigurationError: the URL names an SQLite database that cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.url = _parsed(conf.database.connection).update_query_string(conf.database.connection_parameters)
        if self.url.get_backend_name() == "sqlite":
            _create_file(self.url)
        self._single = self._make(conf, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
        self._multi = self._make(conf)
        if self.url.get_backend_name() == "sqlite":
            sa.event.listen(self._multi, "begin", _begin_immediate)
        _databases.add(self)

    @contextlib.contextmanager
    def single(self) -> Iterator[sa.Connection]:
        """A connection on which each statement stands for itself.

        :raises ServiceUnavailable: the database is away.
        """
        with _translated(), self._single.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """A connection in a transaction that is committed at the end, rolled back on an exception.

        :raises ServiceUnavailable: the database is away.
        """
        with _translated(), self._multi.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def own_connection(self) -> Iterator[sa.Connection]:
        """A connection on which nothing has begun yet and that nobody gets after: for changing the session itself.

        :raises ServiceUnavailable: the database is away.
        """
        with _translated(), self._multi.connect() as connection:
            connection.detach()
            yield connection

    @property
    def engines(self) -> tuple[sa.Engine, sa.Engine]:
        """Both engines, for those who listen to statements (tests count them)."""
        return self._single, self._multi

    def dispose(self) -> None:
        """Closes the pooled connections."""
        for engine in self.engines:
            engine.dispose()

    def _make(self, conf: cfg.ConfigOpts, **options: Any) -> sa.Engine:
        group = conf.database
        options |= {
            "hide_parameters": True,  # an error's text goes to logs and last_error, and rows hold secrets
            "pool_recycle": group.connection_recycle_time,
            "pool_size": group.max_pool_size or 5,
            "max_overflow": group.max_overflow,
            "pool_timeout": group.pool_timeout or 30,
        }
        options["connect_args"] = _CONNECT_ARGS[self.url.get_backend_name()](group)
        engine = sa.create_engine(self.url, **options)
        exc_filters.register_engine(engine)
        if self.url.get_backend_name() != "sqlite":
            _ping_idle_connections(engine)
        else:
            synchronous = "FULL" if group.sqlite_synchronous else "OFF"

            def _set_pragmas(dbapi_connection: Any, _record: Any) -> None:
                _prepare_sqlite(dbapi_connection, synchronous)

            sa.event.listen(engine, "connect", _set_pragmas)
        return engine


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turns "the database does not work just now" into the error that clients and workers know.

    An OperationalError that oslo.db has no name for is one of those: a refused connection, a lock that was
    not given in time, a full disk. Its text names hosts and users, so it is for the log and not for a client
    of the API.
    """
    try:
        yield
    except (
        db_exc.DBConnectionError,
        db_exc.DBNonExistentDatabase,
        sa.exc.OperationalError,
        sa.exc.TimeoutError,
    ) as exc:
        LOG.error("The database does not work: %s", str(exc).splitlines()[0])  # noqa: TRY400 - the cause is in the text
        raise errors.ServiceUnavailable(what="The database", reason="the log tells the cause") from exc


def _parsed(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError as exc:
        # The text may hold a password, and what is wrong with it hides where.
        raise errors.ConfigurationError(option="[database] connection", value="***", allowed=_URLS) from exc
    # oslo.db knows a MariaDB's errors (a deadlock, a duplicate) only under the name mysql.
    url = url.set(drivername=url.drivername.replace("mariadb", "mysql", 1))
    if url.get_backend_name() not in _CONNECT_ARGS:
        raise errors.ConfigurationError(
            option="[database] connection", value=url.render_as_string(hide_password=True), allowed=_URLS
        )
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


def _prepare_sqlite(dbapi_connection: Any, synchronous: str) -> None:
    # The driver must not open transactions on its own: SQLAlchemy does it (BEGIN IMMEDIATE below) or nobody.
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    _use_wal(cursor)
    cursor.execute(f"PRAGMA synchronous={synchronous}")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _use_wal(cursor: Any) -> None:
    """Switches the file to WAL. SQLite does not wait here for others that open a new file at the same moment."""
    until = time.monotonic() + _WAL_PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def _begin_immediate(connection: sa.Connection) -> None:
    # A transaction that reads first and writes later could not wait for another writer (SQLITE_BUSY at once).
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _ping_idle_connections(engine: sa.Engine) -> None:
    """Finds connections that died while nobody used them.

    pool_pre_ping does so before every use, which costs a small query as much as itself. A connection that was
    in use a second ago is good enough; if it is not after all, one request fails and the pool is renewed.
    """

    def _returned(_dbapi_connection: Any, record: Any) -> None:
        record.info["idle_since"] = time.monotonic()

    def _taken(dbapi_connection: Any, record: Any, _proxy: Any) -> None:
        if time.monotonic() - record.info.get("idle_since", float("inf")) <= _PING_AFTER:
            return
        try:
            engine.dialect.do_ping(dbapi_connection)
        except engine.dialect.loaded_dbapi.Error as exc:
            raise sa.exc.InvalidatePoolError("the connection died while idle") from exc

    sa.event.listen(engine, "checkin", _returned)
    sa.event.listen(engine, "checkout", _taken)


# A WSGI server may fork after the pools were used, and two processes must not talk on one connection: the
# child begins with empty pools, and keeps the old ones only so that their connections are not closed under
# the parent.
_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_inherited: list[sa.Pool] = []


def _leave_pools_to_parent() -> None:
    for engine in (engine for database in _databases for engine in database.engines):
        _inherited.append(engine.pool)
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_pools_to_parent)
