"""What statements say that every server must understand, one node of a Galera cluster as well as the other."""

import pathlib
import re

import testtools

from ingot.db import engine

_PRODUCT = pathlib.Path(engine.__file__).parent
_LOCKS = re.compile(r"with_for_update|for\s+update|lock\s+in\s+share\s+mode|for\s+share|lock\s+table", re.IGNORECASE)


class Statements(testtools.TestCase):
    def test_lock_nothing_in_advance(self) -> None:
        """Such a lock holds on one node of Galera only. A write that says what it expects to find holds everywhere."""
        locking = [
            f"{path.name}: {found.group()}"
            for path in sorted(_PRODUCT.rglob("*.py"))
            for found in _LOCKS.finditer(path.read_text())
        ]

        self.assertEqual([], locking)
