"""What really goes over the wire to a database server, and what a broken line does."""

import re
import threading
import time
from typing import ClassVar

import fixtures
import sqlalchemy as sa
import testtools

from ingot.common import errors, states
from ingot.db import agents, nodes
from ingot.db.engine import Database
from tests import database
from tests.functional import proxy

_TRANSACTION = re.compile(rb"BEGIN|START TRANSACTION|COMMIT|ROLLBACK|AUTOCOMMIT", re.IGNORECASE)
_STATEMENT = re.compile(rb"BEGIN|COMMIT|ROLLBACK|SELECT|SET |SHOW", re.IGNORECASE)


class WireOnMySQL(testtools.TestCase):
    backend = "mysql"

    def setUp(self) -> None:
        super().setUp()
        fixture = self.useFixture(database.DatabaseFixture(self.backend))
        self.direct = fixture.db
        self.server = sa.make_url(fixture.url)
        assert self.server.host and self.server.port
        self.line = self.useFixture(proxy.Proxy((self.server.host, self.server.port)))
        self.db = self.connected(self.line.port)
        self.node = database.make_node(self.db, provision_state=states.DEPLOYWAIT)
        self.line.sent.clear()  # from here on the pool has a connection

    def test_single_statements_stand_for_themselves(self) -> None:
        held = nodes.lock(self.db, self.node.uuid, "one", "deploy")
        nodes.write_locked(self.db, held, nodes.UNLOCKED)
        agents.record_heartbeat(self.db, agents.read_for_heartbeat(self.db, self.node.uuid), {})

        self.assertEqual(2, self.line.sent.count(b"SELECT"))
        self.assertEqual(3, self.line.sent.count(b"UPDATE"))
        self.assertEqual([], _TRANSACTION.findall(bytes(self.line.sent)))

    def test_a_transaction_costs_two_round_trips_more(self) -> None:
        with self.db.transaction() as connection:
            connection.execute(nodes.NODES.update().values(description="x"))

        self.assertEqual([b"BEGIN", b"COMMIT"], self.ends_of_transactions())

    def test_a_transaction_that_fails_is_undone_at_once_and_leaves_its_connection_fit(self) -> None:
        def write_and_fail() -> None:
            with self.db.transaction() as connection:
                connection.execute(nodes.NODES.update().values(description="half"))
                raise LookupError

        self.assertRaises(LookupError, write_and_fail)

        self.assertEqual([b"BEGIN", b"ROLLBACK"], self.ends_of_transactions())
        nodes.set_always(self.db, self.node.uuid, {"name": "n"})
        found = nodes.get(self.direct, self.node.uuid)
        self.assertEqual((None, "n"), (found.description, found.name))

    def test_one_more_connection_costs_few_statements_and_reads_no_certificates(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ssl.create_default_context", None))
        with self.db.single():
            self.line.sent.clear()
            with self.db.single():
                sent = _STATEMENT.findall(bytes(self.line.sent))

        self.assertLessEqual(len(sent), 3, sent)

    def test_a_connection_that_was_in_use_just_now_is_not_pinged(self) -> None:
        nodes.get(self.db, self.node.uuid, ("uuid",))
        once = len(self.line.sent)
        self.line.sent.clear()

        for _ in range(10):
            nodes.get(self.db, self.node.uuid, ("uuid",))

        self.assertLessEqual(len(self.line.sent), 10 * once)

    def test_a_connection_that_died_while_idle_is_not_used(self) -> None:
        self.line.cut()
        self.line.restore()
        time.sleep(1.1)

        self.assertEqual(self.node.uuid, nodes.get(self.db, self.node.uuid).uuid)

    def test_an_unavailable_database_is_reported_as_such_and_found_again(self) -> None:
        self.line.cut()
        for _ in range(2):  # the first has a dead connection, the second none
            refusal = self.assertRaises(errors.ServiceUnavailable, nodes.get, self.db, self.node.uuid)
            self.assertNotIn("127.0.0.1", str(refusal))
        self.assertRaises(errors.ServiceUnavailable, nodes.lock, self.db, self.node.uuid, "one", "deploy")

        self.line.restore()
        nodes.lock(self.db, self.node.uuid, "one", "deploy")

    def test_a_line_that_breaks_in_a_transaction_undoes_it(self) -> None:
        def write() -> None:
            with self.db.transaction() as connection:
                connection.execute(nodes.NODES.update().values(description="half"))
                self.line.cut()

        self.assertRaises(errors.ServiceUnavailable, write)

        self.assertIsNone(nodes.get(self.direct, self.node.uuid).description)

    def test_a_line_that_breaks_under_load_breaks_nothing_else(self) -> None:
        stop = threading.Event()
        surprises: list[str] = []

        def read() -> None:
            while not stop.is_set():
                try:
                    nodes.get(self.db, self.node.uuid, ("uuid",))
                except errors.ServiceUnavailable:
                    time.sleep(0.05)
                except Exception as exc:  # noqa: BLE001 - any other error is what the test is about
                    surprises.append(repr(exc))

        threads = [threading.Thread(target=read) for _ in range(6)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            time.sleep(0.2)
            self.line.cut()
            self.line.restore()
        time.sleep(0.3)
        stop.set()
        for thread in threads:
            thread.join()

        self.assertEqual([], surprises)
        self.assertEqual(self.node.uuid, nodes.get(self.db, self.node.uuid).uuid)

    def test_a_server_that_does_not_answer_is_not_waited_for(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.db.drivers.ANSWER_S", 1))
        self.useFixture(fixtures.MonkeyPatch("ingot.db.drivers.CONNECT_S", 1))
        db = self.connected(self.line.port)
        nodes.get(db, self.node.uuid)
        self.line.hold()
        for _ in range(2):  # the first has a connection that is silent, the second none
            self.assertRaises(errors.ServiceUnavailable, nodes.lock, db, self.node.uuid, "one", "deploy")
        self.line.resume()
        nodes.lock(db, self.node.uuid, "one", "deploy", ("one",))  # what was given up may have been done all the same

    def test_a_slow_database_is_waited_for(self) -> None:
        self.line.delay = 0.3
        nodes.lock(self.db, self.node.uuid, "one", "deploy")

    def test_a_primary_that_became_a_replica_is_left(self) -> None:
        """As after a failover: pooled connections are still those to the old one."""
        replica = self.connected(self.line.port, **self.read_only)
        opened: list[object] = []
        sa.event.listen(replica.engine, "connect", lambda connection, _record: opened.append(connection))
        for _ in range(3):
            nodes.get(replica, self.node.uuid)
            self.assertRaises(errors.ServiceUnavailable, nodes.lock, replica, self.node.uuid, "one", "deploy")
        self.assertEqual(3, len(opened))

    def test_a_transaction_of_a_frozen_process_does_not_keep_a_node(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.db.drivers.LOCK_S", 1))
        frozen = self.connected(self.line.port)

        def write() -> None:
            with frozen.transaction() as connection:
                connection.execute(nodes.NODES.update().values(description="half"))
                nodes.set_always(self.direct, self.node.uuid, {"description": "other"})
                connection.execute(nodes.NODES.update().values(description="whole"))

        self.assertRaises(errors.ServiceUnavailable, write)
        self.assertEqual("other", nodes.get(self.direct, self.node.uuid).description)

    read_only: ClassVar[dict[str, str]] = {"init_command": "SET SESSION tx_read_only = 1"}

    def ends_of_transactions(self) -> list[bytes]:
        return [word.upper() for word in _TRANSACTION.findall(bytes(self.line.sent))]

    def connected(self, port: int, **query: str) -> Database:
        url = self.server.set(host="127.0.0.1", port=port).update_query_dict(query)
        db = Database(database.configuration(url.render_as_string(hide_password=False)))
        self.addCleanup(db.dispose)
        return db


class WireOnMySQLByMysqlclient(WireOnMySQL):
    backend = "mysqlclient"


class WireOnPostgreSQL(WireOnMySQL):
    backend = "postgresql"
    read_only: ClassVar[dict[str, str]] = {"options": "-c default_transaction_read_only=on"}
