"""What the unit tests say of SQLite holds on MariaDB and PostgreSQL."""

from tests.unit.db import (
    test_agents,
    test_allocations,
    test_census,
    test_conductors,
    test_engine,
    test_events,
    test_facts,
    test_locks,
    test_maintenance,
    test_nodes,
    test_past,
    test_ports,
    test_references,
    test_retention,
    test_schema,
    test_secrets,
)


class AgentsOnMySQL(test_agents.AgentsOnSQLite):
    backend = "mysql"


class AgentsOnPostgreSQL(test_agents.AgentsOnSQLite):
    backend = "postgresql"


class AllocationsOnMySQL(test_allocations.AllocationsOnSQLite):
    backend = "mysql"


class AllocationsOnMySQLByMysqlclient(test_allocations.AllocationsOnSQLite):
    backend = "mysqlclient"


class AllocationsOnPostgreSQL(test_allocations.AllocationsOnSQLite):
    backend = "postgresql"


class CensusOnMySQL(test_census.CensusOnSQLite):
    backend = "mysql"


class CensusOnPostgreSQL(test_census.CensusOnSQLite):
    backend = "postgresql"


class ConductorsOnMySQL(test_conductors.ConductorsOnSQLite):
    backend = "mysql"


class ConductorsOnPostgreSQL(test_conductors.ConductorsOnSQLite):
    backend = "postgresql"


class EngineOnMySQL(test_engine.EngineOnSQLite):
    backend = "mysql"


class EngineOnMySQLByMysqlclient(test_engine.EngineOnSQLite):
    backend = "mysqlclient"


class EngineOnPostgreSQL(test_engine.EngineOnSQLite):
    backend = "postgresql"


class EventsOnMySQL(test_events.EventsOnSQLite):
    backend = "mysql"


class EventsOnMySQLByMysqlclient(test_events.EventsOnSQLite):
    backend = "mysqlclient"


class EventsOnPostgreSQL(test_events.EventsOnSQLite):
    backend = "postgresql"


class FactsOnMySQL(test_facts.FactsOnSQLite):
    backend = "mysql"


class FactsOnMySQLByMysqlclient(test_facts.FactsOnSQLite):
    backend = "mysqlclient"


class FactsOnPostgreSQL(test_facts.FactsOnSQLite):
    backend = "postgresql"


class HoldsOnMySQL(test_maintenance.HoldsOnSQLite):
    backend = "mysql"


class HoldsOnPostgreSQL(test_maintenance.HoldsOnSQLite):
    backend = "postgresql"


class LocksOnMySQL(test_locks.LocksOnSQLite):
    backend = "mysql"


class LocksOnMySQLByMysqlclient(test_locks.LocksOnSQLite):
    backend = "mysqlclient"


class LocksOnPostgreSQL(test_locks.LocksOnSQLite):
    backend = "postgresql"


class NodesOnMySQL(test_nodes.NodesOnSQLite):
    backend = "mysql"


class NodesOnMySQLByMysqlclient(test_nodes.NodesOnSQLite):
    backend = "mysqlclient"


class NodesOnPostgreSQL(test_nodes.NodesOnSQLite):
    backend = "postgresql"


class PortsOnMySQL(test_ports.PortsOnSQLite):
    backend = "mysql"


class PortsOnPostgreSQL(test_ports.PortsOnSQLite):
    backend = "postgresql"


class ReferencesOnMySQL(test_references.ReferencesOnSQLite):
    backend = "mysql"


class ReferencesOnMySQLByMysqlclient(test_references.ReferencesOnSQLite):
    backend = "mysqlclient"


class ReferencesOnPostgreSQL(test_references.ReferencesOnSQLite):
    backend = "postgresql"


class RetentionOnMySQL(test_retention.RetentionOnSQLite):
    backend = "mysql"


class RetentionOnPostgreSQL(test_retention.RetentionOnSQLite):
    backend = "postgresql"


class SchemaOnMySQL(test_schema.SchemaOnSQLite):
    backend = "mysql"


class SchemaOnMySQLByMysqlclient(test_schema.SchemaOnSQLite):
    backend = "mysqlclient"


class SchemaOnPostgreSQL(test_schema.SchemaOnSQLite):
    backend = "postgresql"


class PastOnMySQL(test_past.PastOnSQLite):
    backend = "mysql"


class PastOnMySQLByMysqlclient(test_past.PastOnSQLite):
    backend = "mysqlclient"


class PastOnPostgreSQL(test_past.PastOnSQLite):
    backend = "postgresql"


class SecretsOnMySQL(test_secrets.SecretsOnSQLite):
    backend = "mysql"


class SecretsOnMySQLByMysqlclient(test_secrets.SecretsOnSQLite):
    backend = "mysqlclient"


class SecretsOnPostgreSQL(test_secrets.SecretsOnSQLite):
    backend = "postgresql"
