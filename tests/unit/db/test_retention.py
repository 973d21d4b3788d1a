"""Step runs and history of a node stay bounded."""

import uuid

import sqlalchemy as sa

from ingot.common import clock
from ingot.db import models, node_history
from tests import database

_HISTORY = models.table(models.NodeHistory)
_RUNS = models.table(models.StepRun)


class RetentionOnSQLite(database.TestCase):
    def remember(self, node: models.Node, count: int) -> None:
        moment = clock.now()
        event = {"node_id": node.id, "severity": "INFO", "event_type": "power", "created_at": moment}
        run = {
            "node_id": node.id, "run_id": "r", "flow": "deploy", "attempt": 1, "interface": "deploy", "step": "deploy",
            "args": {}, "priority": 100, "origin": "driver", "state": "done", "started_at": moment,
            "finished_at": moment, "conductor": "one",
        }  # fmt: skip
        numbers = range(count)
        with self.db.transaction() as connection:
            connection.execute(
                sa.insert(_HISTORY), [{**event, "uuid": str(uuid.uuid4()), "event": str(n)} for n in numbers]
            )
            connection.execute(sa.insert(_RUNS), [{**run, "step_index": n} for n in numbers])

    def kept(self, node: models.Node) -> tuple[list[str], list[int]]:
        with self.db.single() as connection:
            events = sa.select(_HISTORY.c.event).where(_HISTORY.c.node_id == node.id).order_by(_HISTORY.c.id)
            runs = sa.select(_RUNS.c.step_index).where(_RUNS.c.node_id == node.id).order_by(_RUNS.c.id)
            return list(connection.execute(events).scalars()), list(connection.execute(runs).scalars())

    def test_the_newest_of_each_node_stay(self) -> None:
        long, short = (database.make_node(self.db) for _ in range(2))
        self.remember(long, 7)
        self.remember(short, 3)

        self.assertEqual(8, node_history.prune(self.db, keep=3))

        self.assertEqual((["4", "5", "6"], [4, 5, 6]), self.kept(long))
        self.assertEqual((["0", "1", "2"], [0, 1, 2]), self.kept(short))
        self.assertEqual(0, node_history.prune(self.db, keep=3))

    def age(self, table: sa.Table, days: int, first: int) -> None:
        """Make the first rows of a table older."""
        moment = "created_at" if table is _HISTORY else "finished_at"
        ids = self.db.read_column(sa.select(table.c.id).order_by(table.c.id).limit(first))
        self.db.write(sa.update(table).where(table.c.id.in_(ids)).values({moment: clock.after(-days * 86_400)}))

    def test_what_is_young_stays_however_much_it_is(self) -> None:
        node = database.make_node(self.db)
        self.remember(node, 6)
        self.age(_HISTORY, 8, first=2)

        self.assertEqual(2, node_history.prune(self.db, keep=1, minimum_days=7))

        self.assertEqual((["2", "3", "4", "5"], [0, 1, 2, 3, 4, 5]), self.kept(node))

    def test_nodes_whose_past_is_young_keep_no_other_waiting(self) -> None:
        old, busy = (database.make_node(self.db) for _ in range(2))
        self.remember(old, 4)
        for table in (_HISTORY, _RUNS):
            self.age(table, 8, first=4)
        self.remember(busy, 5)

        self.assertEqual(2 * 3, node_history.prune(self.db, keep=1, nodes=1, minimum_days=7))

        self.assertEqual((["3"], [3]), self.kept(old))

    def test_what_is_old_goes_even_where_it_is_little(self) -> None:
        node = database.make_node(self.db)
        self.remember(node, 4)
        self.age(_HISTORY, 31, first=3)
        self.age(_RUNS, 29, first=3)

        self.assertEqual(3, node_history.prune_by_age(self.db, 30))

        self.assertEqual((["3"], [0, 1, 2, 3]), self.kept(node))
        self.assertEqual(0, node_history.prune_by_age(self.db, 30))

    def test_a_long_past_goes_in_batches(self) -> None:
        node = database.make_node(self.db)
        self.remember(node, 1203)

        with database.statements(self.db) as sent:
            self.assertEqual(2 * 1200, node_history.prune(self.db, keep=3))

        self.assertEqual(2 * 3, sum(statement.startswith("DELETE") for statement in sent))
        self.assertEqual([1200, 1201, 1202], self.kept(node)[1])

    def test_one_call_takes_care_of_a_limited_number_of_nodes(self) -> None:
        crowd = [database.make_node(self.db) for _ in range(3)]
        for number, node in enumerate(crowd):
            self.remember(node, 2 + number)

        self.assertEqual(2 * 3, node_history.prune(self.db, keep=1, nodes=1))

        self.assertEqual([[0, 1], [0, 1, 2], [3]], [self.kept(node)[1] for node in crowd])

    def test_nothing_is_kept_if_nothing_is_requested(self) -> None:
        node = database.make_node(self.db)
        self.remember(node, 2)

        node_history.prune(self.db, keep=0)

        self.assertEqual(([], []), self.kept(node))
