"""The servers that all sides share, started by ``devstack/services.py``: counters and processes."""

import os
import pathlib
import secrets
from collections.abc import Mapping

import sqlalchemy as sa

from benchmarks import processes
from tests import database
from tests.functional import services
from tests.gate import environments

STATEMENTS = ("Com_select", "Com_insert", "Com_update", "Com_delete", "Com_update_multi", "Com_delete_multi")
DURABLE = ("innodb_flush_log_at_trx_commit = 1", "innodb_buffer_pool_size = 1073741824", "max_connections = 1000")
"""What tests do without and production does not: each commit is written to the disk; and room for all tables."""


class MariaDB:
    """The private server.

    :ivar versions: of itself and of the broker beside it.
    :ivar pids: its process.
    """

    def __init__(self) -> None:
        self._url = sa.make_url(os.environ[database.SERVERS["mysql"]])
        self._engine = sa.create_engine(self._url, isolation_level="AUTOCOMMIT")
        for setting in DURABLE:
            self._execute(f"SET GLOBAL {setting}")
        self.versions = {"MariaDB": str(self._read("SELECT VERSION()")[0][0]), "RabbitMQ": _package("rabbitmq-server")}
        pid_file = self._read("SELECT @@pid_file")[0][0]
        self.pids = [int(pathlib.Path(pid_file).read_text())]

    def create(self, charset: str = "utf8mb4", driver: str = "pymysql") -> str:
        """Create an empty database with a name of its own and return its URL.

        :param driver: pymysql, or mysqldb, which is written in C.
        """
        name = f"benchmark_{secrets.token_hex(4)}"
        self._execute(f"CREATE DATABASE {name} CHARACTER SET {charset}")
        query = {"charset": charset.removesuffix("mb3")}
        if driver == "pymysql":  # without it, the system's certificates are read for each connection
            query["ssl_disabled"] = "true"
        url = self._url.set(database=name, drivername=f"mysql+{driver}", query=query)
        return url.render_as_string(hide_password=False)

    def count(self) -> Mapping[str, int]:
        """Return how many statements the server was sent, and how many queries of any kind, commits among them."""
        status = {name: int(value) for name, value in self._read("SHOW GLOBAL STATUS") if value.isdigit()}
        statements = sum(status[name] for name in STATEMENTS)
        return {"statements": statements, "queries": status["Questions"]}

    def _execute(self, statement: str) -> None:
        with self._engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def _read(self, statement: str) -> list[tuple[str, str]]:
        with self._engine.connect() as connection:
            return [(row[0], row[-1]) for row in connection.exec_driver_sql(statement)]


def _package(name: str) -> str:
    """Return the version of a package of the system."""
    return environments.run("dpkg-query", "--show", "--showformat", "${Version}", name)


def broker_pids() -> list[int]:
    """Return the processes of the broker."""
    return processes.listening(int(services.broker_url().rsplit(":", 1)[1].strip("/")))
