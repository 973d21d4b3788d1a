"""What a sweep costs on MariaDB and PostgreSQL: as the unit tests say of SQLite."""

from tests.unit.conductor import test_sweep


class SweepOnMySQL(test_sweep.SweepOnSQLite):
    backend = "mysql"


class SweepOnPostgreSQL(test_sweep.SweepOnSQLite):
    backend = "postgresql"
