"""Turns, on SQLite; functional tests have the servers."""

from unittest import mock

from ingot.db import engine, turns
from tests import database


class TurnTest(database.TestCase):
    """What only one conductor may do at a time."""

    def test_one_at_a_time(self) -> None:
        other = engine.Database(self.database.conf)
        with turns.take(self.db, "switch leaf", 0):
            with self.assertRaises(TimeoutError), turns.take(other, "switch leaf", 0):
                pass
            with turns.take(other, "switch spine", 0):
                pass
        with turns.take(other, "switch leaf", 0):
            pass

    def test_of_the_threads_of_a_conductor_one_asks_the_database(self) -> None:
        with mock.patch.object(turns, "_wait", wraps=turns._wait) as asked:
            with turns.take(self.db, "switch leaf", 0):
                for patience in (0, 0.3):
                    with self.assertRaises(TimeoutError), turns.take(self.db, "switch leaf", patience):
                        pass
                self.assertEqual(1, asked.call_count)
            with turns.take(self.db, "switch leaf", 0):
                pass
