"""Single statements, transactions, forks, and what is done when two transactions are in each other's way."""

import datetime
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Sequence

import sqlalchemy as sa
import testtools

from ingot.common import errors
from ingot.db import drivers, nodes
from ingot.db.engine import Database, retry_transaction
from tests import call_counter, database


class EngineOnSQLite(database.TestCase):
    def test_a_transaction_is_all_or_nothing(self) -> None:
        node = database.make_node(self.db)

        def write_and_fail() -> None:
            with self.db.transaction() as connection:
                connection.execute(nodes.NODES.update().values(description="half"))
                raise LookupError

        self.assertRaises(LookupError, write_and_fail)
        self.assertIsNone(nodes.get(self.db, node.uuid).description)

    def test_a_single_statement_is_there_for_others_at_once(self) -> None:
        node = database.make_node(self.db)
        with self.db.single() as connection:
            connection.execute(nodes.NODES.update().values(description="x"))
            self.assertEqual("x", nodes.get(self.database.another(), node.uuid).description)

    def test_single_statements_and_transactions_share_connections(self) -> None:
        with self.db.single():
            pass
        with self.db.transaction():
            pass

        self.assertEqual(1, self.db.engine.pool.checkedin())

    def test_the_connection_that_was_in_use_last_is_taken_next(self) -> None:
        with self.db.single() as outer, self.db.single():
            last = outer.connection.dbapi_connection

        with self.db.single() as taken:
            self.assertIs(last, taken.connection.dbapi_connection)

    def test_a_statement_and_a_transaction_take_few_calls_of_functions(self) -> None:
        """With any listener to statements or transactions, as oslo.db has them, a read takes a third more."""
        node = database.make_node(self.db)

        def transact() -> None:
            with self.db.transaction():
                pass

        calls = call_counter.count_calls(lambda: nodes.get(self.db, node.uuid, ("uuid", "revision")), "sqlalchemy")
        self.assertLessEqual(calls.total(), 120, calls.most_common(20))
        calls = call_counter.count_calls(transact, "sqlalchemy")
        self.assertLessEqual(calls.total(), 95, calls.most_common(20))

    def test_a_transaction_that_reads_first_can_write_later(self) -> None:
        database.make_node(self.db, description="0")

        @retry_transaction
        def count_up() -> None:
            with self.db.transaction() as connection:
                row = connection.execute(nodes.NODES.select().with_for_update()).one()
                connection.execute(nodes.NODES.update().values(description=str(int(row.description) + 1)))

        _together([count_up] * 10)

        with self.db.single() as connection:
            self.assertEqual("10", connection.execute(nodes.NODES.select()).one().description)

    def test_transactions_that_wait_for_each_other_are_tried_again(self) -> None:
        ids = [database.make_node(self.db).id for _ in range(2)]

        def write(order: list[int]) -> None:
            with self.db.transaction() as connection:
                for node_id in order:
                    update = nodes.NODES.update().where(nodes.NODES.c.id == node_id)
                    connection.execute(update.values(revision=nodes.NODES.c.revision + 1))
                    time.sleep(0.2)

        _together([lambda: retry_transaction(write)(ids), lambda: retry_transaction(write)(ids[::-1])])

        with self.db.single() as connection:
            self.assertEqual([2, 2], [row.revision for row in connection.execute(nodes.NODES.select())])

    def test_a_child_process_uses_no_connection_of_its_parent(self) -> None:
        node = database.make_node(self.db)
        child = os.fork()
        if child == 0:
            try:
                for _ in range(50):
                    nodes.get(self.db, node.uuid)
            finally:
                os._exit(0 if self.db.engine.pool.checkedin() == 1 else 1)
        for _ in range(50):
            self.assertEqual(node.uuid, nodes.get(self.db, node.uuid).uuid)

        self.assertEqual(0, os.waitpid(child, 0)[1])


class Moments(testtools.TestCase):
    def test_are_written_as_the_drivers_of_mysql_write_them(self) -> None:
        group = database.configuration("sqlite:////x").database
        for module in filter(importlib.util.find_spec, ("pymysql", "MySQLdb")):
            name = f"mysql+{module.lower()}://db/x"
            converters = drivers.connect_options(sa.make_url(name), group, limited=True)["conv"]
            original = importlib.import_module(f"{module}.converters").conversions
            whole = datetime.datetime(2026, 2, 3, 4, 5, 6)
            for moment in (whole, whole.replace(microsecond=70), datetime.datetime.min, datetime.datetime.max):
                written = original[datetime.datetime](moment, original)
                written = written.decode() if isinstance(written, bytes) else written
                self.assertEqual(written, converters[datetime.datetime](moment, converters))


class SQLiteFile(testtools.TestCase):
    def test_belongs_to_its_owner_alone(self) -> None:
        path = self.useFixture(database.DatabaseFixture(migrated=False)).url.removeprefix("sqlite:///")

        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)

    def test_a_location_that_cannot_be_written_is_reported(self) -> None:
        refusal = self.assertRaises(
            errors.ConfigurationError, Database, database.configuration("sqlite:////dev/null/ingot.sqlite")
        )

        self.assertIn("/dev/null/ingot.sqlite", str(refusal))

    def test_memory_is_refused_because_connections_would_not_share_it(self) -> None:
        self.assertRaises(errors.ConfigurationError, Database, database.configuration("sqlite://"))

    def test_an_address_that_names_no_database_is_reported_without_its_password(self) -> None:
        for url in ("oracle://ingot:secret@192.0.2.1/x", "ingot:secret@192.0.2.1"):
            refusal = self.assertRaises(errors.ConfigurationError, Database, database.configuration(url))

            self.assertIn("Use mysql+pymysql://", str(refusal))
            self.assertNotIn("secret", str(refusal))

    def test_a_driver_that_ingot_does_not_know_is_reported(self) -> None:
        for url in ("mysql+asyncmy://ingot:secret@192.0.2.1/x", "postgresql+pg8000://ingot:secret@192.0.2.1/x"):
            refusal = self.assertRaises(errors.ConfigurationError, Database, database.configuration(url))

            self.assertIn("Use mysql+pymysql://", str(refusal))
            self.assertNotIn("secret", str(refusal))

    def test_a_parameter_that_the_driver_does_not_know_is_reported(self) -> None:
        db = Database(database.configuration("mysql+pymysql://ingot:secret@192.0.2.1/x?ssl_mode=REQUIRED"))

        refusal = self.assertRaises(errors.ConfigurationError, db.single().__enter__)

        self.assertIn("ssl_mode", str(refusal))
        self.assertNotIn("secret", str(refusal))

    def test_a_writer_that_does_not_end_makes_the_database_unavailable(self) -> None:
        fixture = self.useFixture(database.DatabaseFixture())

        def write_impatiently() -> None:
            with fixture.db.single() as connection:
                connection.exec_driver_sql("PRAGMA busy_timeout=10")
                connection.execute(nodes.NODES.update().values(maintenance=True))

        with fixture.another().transaction():
            self.assertRaises(errors.ServiceUnavailable, write_impatiently)
        write_impatiently()


def _together(calls: Sequence[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as exc:  # noqa: BLE001 - any error fails the test
            failures.append(exc)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
