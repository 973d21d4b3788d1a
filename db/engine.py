"""The connection to the database: one engine for single statements, one for transactions, both of one URL.

A single statement needs neither BEGIN nor COMMIT; with MariaDB that halves the round trips of a read. What takes several
statements runs in :meth:`Database.transaction`.
"""

import contextlib
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import exc_filters

from ingot.common import errors

retried = oslo_db_api.wrap_db_retry(
    max_retries=10, retry_interval=0.05, inc_retry_interval=True, max_retry_interval=1, jitter=True,
    retry_on_deadlock=True,
)
"""For query functions: a deadlock (Galera: a certification conflict) is tried again; each is one transaction."""


class Database:
    """What every query function takes first.

    :param conf: its [database] group gives URL and pool sizes (oslo.db's options).
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.url = sa.make_url(conf.database.connection)
        if self.url.get_backend_name() == "sqlite" and self.url.database:
            pathlib.Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
        self._single = self._make(conf, isolation_level="AUTOCOMMIT", skip_autocommit_rollback=True)
        self._multi = self._make(conf)
        if self.url.get_backend_name() == "sqlite":
            sa.event.listen(self._multi, "begin", _begin_immediate)

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

    @property
    def engines(self) -> tuple[sa.Engine, sa.Engine]:
        """Both engines, for those who listen to statements (tests count them) or migrate the schema."""
        return self._single, self._multi

    def dispose(self) -> None:
        """Closes the pooled connections."""
        for engine in self.engines:
            engine.dispose()

    def _make(self, conf: cfg.ConfigOpts, **options: Any) -> sa.Engine:
        group = conf.database
        options |= {
            "pool_pre_ping": True,
            "pool_recycle": group.connection_recycle_time,
            "pool_size": group.max_pool_size or 5,
            "max_overflow": group.max_overflow,
            "pool_timeout": group.pool_timeout or 30,
        }
        if self.url.get_backend_name() == "sqlite":
            options["connect_args"] = {"timeout": 30, "check_same_thread": False}
        engine = sa.create_engine(self.url, **options)
        exc_filters.register_engine(engine)
        sa.event.listen(engine, "connect", _forget_in_children)
        sa.event.listen(engine, "checkout", _refuse_inherited)
        if self.url.get_backend_name() == "sqlite":
            synchronous = "FULL" if group.sqlite_synchronous else "OFF"

            def _set_pragmas(dbapi_connection: Any, _record: Any) -> None:
                _prepare_sqlite(dbapi_connection, synchronous)

            sa.event.listen(engine, "connect", _set_pragmas)
        return engine


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turns "the database is away" into the error that clients and workers know."""
    try:
        yield
    except (db_exc.DBConnectionError, sa.exc.TimeoutError) as exc:
        raise errors.ServiceUnavailable(what="The database", reason=str(exc).splitlines()[0]) from exc


def _prepare_sqlite(dbapi_connection: Any, synchronous: str) -> None:
    # The driver must not open transactions on its own: SQLAlchemy does it (BEGIN IMMEDIATE below) or nobody.
    dbapi_connection.isolation_level = None
    cursor = dbapi_connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute(f"PRAGMA synchronous={synchronous}")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_immediate(connection: sa.Connection) -> None:
    # A transaction that reads first and writes later could not wait for another writer (SQLITE_BUSY at once).
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _forget_in_children(_dbapi_connection: Any, record: Any) -> None:
    record.info["pid"] = os.getpid()


def _refuse_inherited(_dbapi_connection: Any, record: Any, proxy: Any) -> None:
    # A WSGI server may fork after the pool was used; two processes must not talk on one connection.
    if record.info["pid"] != os.getpid():
        record.dbapi_connection = proxy.dbapi_connection = None
        raise sa.exc.DisconnectionError("connection belongs to another process")
