"""Nodes are counted with one statement, once in an interval, and only where Prometheus asks."""

import threading
import uuid
from collections import Counter

import fixtures
import sqlalchemy as sa

from ingot.common import clock, errors, metrics, states
from ingot.db import census, conductors, nodes, rows
from tests import database, metric_values, patience, sql_counter

PATIENCE = patience.seconds(30)
LIMITS = {states.DEPLOYING: 60, states.CLEANWAIT: 3600}


class CensusCase(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf = self.database.conf
        self.useFixture(fixtures.MonkeyPatch("ingot.db.census._PATIENCE_S", PATIENCE))
        self.addCleanup(metrics.ask, "nodes", list)

    def make(self, state: str, seconds: float = 0, **values: object) -> str:
        values = {"provision_state": state, "provision_updated_at": clock.after(-seconds), **values}
        return database.make_node(self.db, **values).uuid

    def series(self) -> dict[tuple[str, ...], float]:
        """Return the counts that Prometheus gets, by name of the metric and labels."""
        text = metrics.render(metrics.Part.API).decode()
        prefixes = ("ingot_nodes", "ingot_conductor_online")
        found = [sample for sample in metric_values.parse(text) if sample.name.startswith(prefixes)]
        return {(sample.name, *sorted(sample.labels.values())): sample.value for sample in found}


class CensusOnSQLite(CensusCase):
    def test_nodes_are_counted_by_state_fault_and_maintenance(self) -> None:
        for _ in range(3):
            self.make(states.ACTIVE)
        self.make(states.ACTIVE, maintenance=True, fault="power failure")
        self.make(states.ENROLL, maintenance=True)
        self.make(states.DEPLOYING, reservation="conductor-1")
        census.Census(self.db, self.conf).serve()
        series = self.series()
        read_at = series.pop(("ingot_nodes_read_timestamp_seconds",))
        self.assertGreater(read_at, 0)
        expected = {
            ("ingot_nodes", states.ACTIVE, "false"): 3,
            ("ingot_nodes", states.ACTIVE, "true"): 1,
            ("ingot_nodes", states.ENROLL, "true"): 1,
            ("ingot_nodes", states.DEPLOYING, "false"): 1,
            ("ingot_nodes_faulty", "power failure"): 1,
            ("ingot_nodes_locked",): 1,
            **{("ingot_nodes_overdue", state): 0 for state in (states.ACTIVE, states.ENROLL, states.DEPLOYING)},
        }
        self.assertEqual({(name, *sorted(labels)): count for (name, *labels), count in expected.items()}, series)

    def test_nodes_are_overdue_after_the_limit_of_their_state(self) -> None:
        late = [self.make(states.DEPLOYING, 61), self.make(states.CLEANWAIT, 4000)]
        self.make(states.DEPLOYING, 50)
        self.make(states.CLEANWAIT, 61)
        self.make(states.ACTIVE, 10**6)
        self.make(states.DEPLOYING, provision_updated_at=None)
        counted = {group.provision_state: group.overdue for group in census.count_nodes(self.db, LIMITS)}
        self.assertEqual({states.DEPLOYING: 1, states.CLEANWAIT: 1, states.ACTIVE: 0}, counted)
        found = census.list_overdue(self.db, LIMITS, 10)
        self.assertEqual(late[::-1], [node.uuid for node in found])
        self.assertEqual(late[1:], [node.uuid for node in census.list_overdue(self.db, LIMITS, 1)])

    def test_without_limits_no_node_is_overdue(self) -> None:
        self.make(states.DEPLOYING, 10**6)
        self.assertEqual([0], [group.overdue for group in census.count_nodes(self.db, {})])
        self.assertEqual([], census.list_overdue(self.db, {}, 10))

    def test_ten_thousand_nodes_cost_as_many_statements_and_series_as_ten(self) -> None:
        for number in range(10):
            self.make(sorted(states.ALL)[number])
        before = self.cost()
        table, fields = nodes.NODES, rows.json_defaults(nodes.NODES)
        made = [
            {**fields, "uuid": str(uuid.uuid4()), "driver": "x", "provision_state": sorted(states.ALL)[number % 10]}
            for number in range(10_000)
        ]
        with self.db.transaction() as connection:
            connection.execute(sa.insert(table), made)
        self.assertEqual(before, self.cost())
        self.assertEqual(2, before[0])  # the other one reads the conductors

    def cost(self) -> tuple[int, int]:
        """Return how many statements a new count takes, and how many series there are then."""
        census.Census(self.db, self.conf).serve()
        with sql_counter.counting(self.db) as counted:
            series = self.series()
            return len(counted), len(series)

    def test_a_count_is_served_again_until_it_is_old(self) -> None:
        counter = census.Census(self.db, self.conf)
        counter.serve()
        with sql_counter.counting(self.db) as counted:
            for _ in range(5):
                self.series()
            self.assertEqual(2, len(counted))
            with fixtures.MonkeyPatch("time.monotonic", lambda: float(10**9)):
                self.series()
            self.assertEqual(4, len(counted))

    def test_a_database_that_is_away_leaves_the_last_count(self) -> None:
        self.make(states.ACTIVE)
        counter = census.Census(self.db, self.conf)
        counter.serve()
        before = self.series()

        def fail(*_args: object) -> None:
            raise errors.ServiceUnavailable(what="The database", reason="it is away")

        with fixtures.MonkeyPatch("ingot.db.census.count_nodes", fail):
            with fixtures.MonkeyPatch("time.monotonic", lambda: float(10**9)):
                self.assertEqual(before, self.series())

    def test_a_database_that_hangs_keeps_no_scrape(self) -> None:
        hangs = threading.Event()
        self.addCleanup(hangs.set)
        self.useFixture(fixtures.MonkeyPatch("ingot.db.census._PATIENCE_S", 0.01))
        self.useFixture(fixtures.MonkeyPatch("ingot.db.census.count_nodes", lambda *_args: hangs.wait() and []))
        census.Census(self.db, self.conf).serve()
        for _ in range(3):
            self.assertEqual({}, self.series())
        names = Counter(thread.name for thread in threading.enumerate())
        self.assertEqual(1, names["node count"])

    def test_conductors_that_stopped_in_order_are_not_missing(self) -> None:
        about = {"conductor_group": "", "release": "0.3", "rpc_version": "1.1"}
        entries = {name: conductors.register(self.db, name, about, []) for name in ("up", "gone", "killed")}
        conductors.unregister(self.db, entries["gone"])
        silent = sa.update(conductors.CONDUCTORS).where(conductors.CONDUCTORS.c.hostname == "killed")
        self.db.write(silent.values(heartbeat_at=clock.after(-1000)))
        census.Census(self.db, self.conf).serve()
        online = {labels[0]: value for (name, *labels), value in self.series().items() if "conductor" in name}
        self.assertEqual({"up": 1, "killed": 0}, online)
