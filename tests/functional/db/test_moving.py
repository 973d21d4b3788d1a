"""A fleet moves from Ironic into MariaDB and PostgreSQL, and back, as into SQLite."""

from tests.unit.db import test_moving, test_moving_back


class ImportsOnMySQL(test_moving.ImportsOnSQLite):
    backend = "mysql"


class ImportsOnPostgreSQL(test_moving.ImportsOnSQLite):
    backend = "postgresql"


class ExportsOnMySQL(test_moving_back.ExportsOnSQLite):
    backend = "mysql"


class ExportsOnPostgreSQL(test_moving_back.ExportsOnSQLite):
    backend = "postgresql"
