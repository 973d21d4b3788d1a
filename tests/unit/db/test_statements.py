"""What statements say that every server must understand, one node of a Galera cluster as well as the other."""

import ast
import pathlib
import re
from collections.abc import Iterator

import testtools

from ingot.db import engine

_PRODUCT = pathlib.Path(engine.__file__).parent
_LOCKS = re.compile(r"with_for_update|for\s+update|lock\s+in\s+share\s+mode|for\s+share|lock\s+table", re.IGNORECASE)
_CONNECTS = re.compile(r"\b(db|self)\.(transaction|single)\(\)")
_WRITES = re.compile(
    r"\bsa\.(insert|update|delete|UpdateBase)\b|\b(insert|write|remove|append)\(connection|_change_node\("
)
_AGAIN = {"retry_transaction", "retry_numbering", "events.retry_numbering"}


def _writers() -> Iterator[tuple[str, set[str]]]:
    """Yield functions that open a connection and write on it, each with its decorators."""
    for path in sorted(_PRODUCT.glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                text = ast.unparse(function)
                if _CONNECTS.search(text) and _WRITES.search(text):
                    yield f"{path.stem}.{function.name}", {ast.unparse(name) for name in function.decorator_list}


class Statements(testtools.TestCase):
    def test_lock_nothing_in_advance(self) -> None:
        """Such a lock holds on one node of Galera only. A write that says what it expects to find holds everywhere."""
        locking = [
            f"{path.name}: {found.group()}"
            for path in sorted(_PRODUCT.rglob("*.py"))
            for found in _LOCKS.finditer(path.read_text())
        ]

        self.assertEqual([], locking)

    def test_that_write_are_tried_again_after_a_deadlock(self) -> None:
        writers = dict(_writers())

        self.assertIn("engine.write", writers)  # which a dozen functions use
        self.assertLess(20, len(writers))
        self.assertEqual([], [name for name, decorators in writers.items() if decorators.isdisjoint(_AGAIN)])
