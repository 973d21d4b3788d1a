"""Real, migrated databases for tests: SQLite always, MariaDB and PostgreSQL where a server is given.

class NodesOnSQLite(database.TestCase):  # fast: a copy of a file that is migrated once a process
    def test_...(self): ... self.db ...

class NodesOnMySQL(NodesOnSQLite):       # the same tests there; skipped without a server
    backend = "mysql"
"""

import atexit
import contextlib
import functools
import importlib.util
import os
import pathlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import fixtures
import sqlalchemy as sa
import testtools
from oslo_config import cfg

from ingot.common import keyring, states
from ingot.common.conf import opts
from ingot.db import migrate, models, nodes, rows, schema
from ingot.db.engine import Database

_idle: dict[str, list[str]] = {"mysql": [], "mysqlclient": [], "postgresql": []}
"""By backend, migrated and empty databases that tests of this process have given back: making one takes seconds."""

SERVERS: Mapping[str, str] = {
    "mysql": "INGOT_TEST_MYSQL_URL",
    "mysqlclient": "INGOT_TEST_MYSQLCLIENT_URL",
    "postgresql": "INGOT_TEST_POSTGRESQL_URL",
}
"""Environment variables with the URL of a server on which fresh databases may be created.

mysqlclient is another driver for MariaDB's."""


def configuration(url: str) -> cfg.ConfigOpts:
    """Return Ingot's options with a database, fake hardware and an API without login, and else at their defaults."""
    conf = opts.load([], prog="ingot-tests", files=[])
    conf.set_default("auth_strategy", "noauth")
    conf.set_default("enabled_hardware_types", ["ipmi", "fake-hardware"])
    conf.set_default("my_ip", "127.0.0.1")
    conf.set_override("connection", url, group="database")
    # What a power cut would lose is no test's business.
    conf.set_override("sqlite_synchronous", False, group="database")
    conf.set_override("key_file", str(_key_file()), group="secrets")
    return conf


@functools.cache
def _key_file() -> pathlib.Path:
    """Return a file with a key for secrets, made once per process."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="ingot-key-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = directory / "secrets.key"
    keyring.Keyring(path, seals=True).add_key()
    return path


@functools.cache
def _template() -> pathlib.Path:
    """Return a migrated SQLite file, made once per process."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="ingot-schema-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    path = directory / "template.sqlite"
    db = Database(configuration(f"sqlite:///{path}"))
    migrate.upgrade(db)
    db.dispose()
    return path


class DatabaseFixture(fixtures.Fixture):
    """A fresh database of its own: ``db`` (connected), ``url``, ``conf``.

    :param backend: sqlite, mysql, mysqlclient or postgresql. Without a server or a driver for it the test is skipped.
    :param migrated: False leaves the database empty.
    """

    def __init__(self, backend: str = "sqlite", migrated: bool = True) -> None:
        super().__init__()
        if backend in SERVERS and not os.environ.get(SERVERS[backend]):  # not in _setUp, which may not skip
            raise testtools.TestCase.skipException(
                f"{SERVERS[backend]} names no server: run under devstack/services.py run -- COMMAND"
            )
        if backend == "mysqlclient" and not importlib.util.find_spec("MySQLdb"):
            raise testtools.TestCase.skipException("mysqlclient is not installed: pip install -e '.[mysqlclient]'")
        self.backend = backend
        self.migrated = migrated

    def _setUp(self) -> None:
        self.url = self._sqlite() if self.backend == "sqlite" else self._on_server()
        self.conf = configuration(self.url)
        self.db = Database(self.conf)
        self.addCleanup(self.db.dispose)

    def another(self) -> Database:
        """Open a second connection pool to the same database, as another process would."""
        db = Database(self.conf)
        self.addCleanup(db.dispose)
        return db

    def _sqlite(self) -> str:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "ingot.sqlite"
        if self.migrated:
            shutil.copyfile(_template(), path)
        return f"sqlite:///{path}"

    def _on_server(self) -> str:
        idle = _idle[self.backend]
        url = idle.pop() if self.migrated and idle else self._create()
        self.addCleanup(self._give_back if self.migrated else self._drop, url)
        return url

    def _create(self) -> str:
        url = sa.make_url(os.environ[SERVERS[self.backend]]).set(database=f"ingot_{uuid.uuid4().hex[:12]}")
        with _connected(os.environ[SERVERS[self.backend]]) as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {url.database}")
        created = url.render_as_string(hide_password=False)
        if self.migrated:
            db = Database(configuration(created))
            migrate.upgrade(db)
            db.dispose()
        return created

    def _give_back(self, url: str) -> None:
        """Keep the database for the next test, or drop it if its schema has changed."""
        with _connected(url) as connection:
            version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
            _empty(connection)
        if version != schema.head():
            self._drop(url)
            return
        idle = _idle[self.backend]
        if not idle:
            atexit.register(self._drop_idle)
        idle.append(url)

    def _drop_idle(self) -> None:
        while _idle[self.backend]:
            self._drop(_idle[self.backend].pop())

    def _drop(self, url: str) -> None:
        _engine(url).dispose()
        force = " WITH (FORCE)" if self.backend == "postgresql" else ""
        with _connected(os.environ[SERVERS[self.backend]]) as connection:
            connection.exec_driver_sql(f"DROP DATABASE {sa.make_url(url).database}{force}")


@functools.cache
def _engine(url: str) -> sa.Engine:
    """Return the engine with which tests of this process look after a database; greeting a server anew takes time."""
    return sa.create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True)


@contextlib.contextmanager
def _connected(url: str) -> Iterator[sa.Connection]:
    with _engine(url).connect() as connection:
        yield connection


def _empty(connection: sa.Connection) -> None:
    """Delete all rows of all tables."""
    tables = models.Base.metadata.sorted_tables
    rows = (sa.select(sa.literal(table.name)).where(sa.exists().select_from(table)) for table in tables)
    filled = set(connection.execute(sa.union_all(*rows)).scalars())
    for table in reversed(tables):
        if table.name in filled:
            connection.execute(table.delete())


@contextlib.contextmanager
def statements(db: Database) -> Iterator[list[str]]:
    """Collect the statements that any thread sends meanwhile, without the BEGINs before several of them."""
    sent: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if not statement.startswith("BEGIN"):
            sent.append(statement)

    sa.event.listen(db.engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        sa.event.remove(db.engine, "before_cursor_execute", note)


def make_node(db: Database, **values: Any) -> models.Node:
    """Insert a node straight into its table: available, on fake hardware, by default.

    :returns: the whole row but the config drive, as :func:`ingot.db.nodes.get` reads it.
    """
    table = nodes.NODES
    node = rows.json_defaults(table) | {
        "uuid": str(uuid.uuid4()),
        "driver": "fake-hardware",
        "provision_state": states.AVAILABLE,
        "power_state": states.POWER_OFF,
    }
    node |= values
    with db.single() as connection:
        connection.execute(sa.insert(table).values(node))
    return nodes.get(db, node["uuid"])


def make_port(db: Database, node: models.Node, **values: Any) -> models.Port:
    """Insert a port of a node straight into its table."""
    table = models.table(models.Port)
    port = rows.json_defaults(table) | {
        "uuid": str(uuid.uuid4()),
        "node_id": node.id,
        "address": "52:54:00:" + uuid.uuid4().hex[:6],
        **values,
    }
    with db.single() as connection:
        connection.execute(sa.insert(table).values(port))
        return models.Port(**connection.execute(sa.select(table).where(table.c.uuid == port["uuid"])).mappings().one())


class TestCase(testtools.TestCase):
    """A test with a database of its own: ``self.db``; ``backend`` says of which kind."""

    backend = "sqlite"

    def setUp(self) -> None:
        super().setUp()
        self.database = self.useFixture(DatabaseFixture(self.backend))
        self.db = self.database.db
