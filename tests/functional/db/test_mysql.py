"""What only MariaDB and MySQL are asked."""

import sqlalchemy as sa
import testtools

from ingot.common import errors
from ingot.db import node_history, nodes
from ingot.db.engine import Database
from tests import database


class MySQL(testtools.TestCase):
    backend = "mysql"

    def setUp(self) -> None:
        super().setUp()
        self.fixture = self.useFixture(database.DatabaseFixture(self.backend))

    def catalogue(self, statement: str) -> list[tuple[str, ...]]:
        with self.fixture.db.single() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(statement)]

    def test_all_tables_lock_rows_and_hold_all_scripts(self) -> None:
        found = self.catalogue(
            "SELECT DISTINCT engine, table_collation FROM information_schema.tables "
            "WHERE table_schema = DATABASE() AND table_name != 'alembic_version'"
        )

        self.assertEqual([("InnoDB", "utf8mb4_bin")], found)

    def test_all_text_is_compared_byte_by_byte(self) -> None:
        found = self.catalogue(
            "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = DATABASE() "
            "AND table_name != 'alembic_version' AND collation_name IS NOT NULL"
        )

        self.assertEqual([("utf8mb4_bin",)], found)

    def test_a_value_that_does_not_fit_is_refused_and_not_cut(self) -> None:
        self.assertIn("STRICT_ALL_TABLES", self.catalogue("SELECT @@sql_mode")[0][0])

    def test_an_address_that_says_mariadb_has_the_same_errors(self) -> None:
        url = sa.make_url(self.fixture.url)
        url = url.set(drivername=url.drivername.replace("mysql+", "mariadb+"))
        db = Database(database.configuration(url.render_as_string(hide_password=False)))
        self.addCleanup(db.dispose)
        database.make_node(db, name="taken")
        node = database.make_node(db)

        self.assertRaises(errors.Duplicate, nodes.compare_and_set, db, node, {"name": "taken"})

    def test_logs_beyond_the_largest_packet_are_an_error_that_callers_know(self) -> None:
        node = database.make_node(self.fixture.db)
        (largest,) = self.catalogue("SELECT @@max_allowed_packet")[0]
        log = {"run_id": "a", "flow": "deploy", "content": b"x" * int(largest)}

        self.assertRaises(errors.ServiceUnavailable, node_history.add_log, self.fixture.db, node.id, log, keep=1)

        self.assertEqual(node.uuid, nodes.get(self.fixture.db, node.uuid).uuid)


class MySQLByMysqlclient(MySQL):
    backend = "mysqlclient"
