"""The inbox, and which machines are enrolled, on MariaDB and PostgreSQL: as the unit tests say of SQLite."""

from tests.unit.api import test_inbox
from tests.unit.boot import test_machines


class ReceivingOnMySQL(test_inbox.Receiving):
    backend = "mysql"


class ReceivingOnPostgreSQL(test_inbox.Receiving):
    backend = "postgresql"


class AcceptingOnMySQL(test_inbox.Accepting):
    backend = "mysql"


class AcceptingOnPostgreSQL(test_inbox.Accepting):
    backend = "postgresql"


class MachinesOnMySQL(test_machines.MachinesOnSQLite):
    backend = "mysql"


class MachinesOnPostgreSQL(test_machines.MachinesOnSQLite):
    backend = "postgresql"
