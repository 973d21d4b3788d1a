"""Turns, on SQLite; functional tests have the servers."""

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
