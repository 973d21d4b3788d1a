"""The page of differences from Ironic: every row is proven, and its table of status codes is the measured one.

``python -m tests.unit.test_differences`` writes that table anew from what the replay of measured requests intends.
"""

import pathlib
import re
from collections.abc import Iterator

import testtools

from tests import spec_tables
from tests.functional.api import intended_differences
from tests.functional.api.measured import MEASURED

FOLDER = pathlib.Path(__file__).parents[2] / "doc" / "source" / "operator"
PAGE = FOLDER / "differences-from-ironic.rst"
TABLE = FOLDER / "status-codes.txt"

HEAD = """.. Written by python -m tests.unit.test_differences; do not edit.

.. list-table::
   :header-rows: 1
   :widths: 45 10 10 35

   * - Request
     - Ironic 39
     - Ingot
     - Why
"""


def differences() -> Iterator[tuple[str, int, int, str]]:
    """Yield (request, measured status, our status, reason), but for what only a real conductor decides."""
    for case in MEASURED:
        request = f"{case['method']} {case['url']}"
        found = intended_differences.difference(case["area"], case["case"], request, case["status"])
        if found and found[0] != case["status"] and found[1] != intended_differences.CONDUCTOR:
            expected, reason = found
            what = case["case"] if case["case"] and case["case"] not in request else ""
            yield f"``{request}``{f' ({_plain(what)})' if what else ''}", case["status"], expected, reason


def _plain(text: str) -> str:
    """Return text that reStructuredText takes as it is."""
    return re.sub(r"([*`_|\\])", r"\\\1", text)


def table() -> str:
    rows = (
        f"   * - {request}\n     - {theirs}\n     - {ours}\n     - {_plain(reason)}\n"
        for request, theirs, ours, reason in differences()
    )
    return HEAD + "".join(dict.fromkeys(rows))


class DifferencesTest(testtools.TestCase):
    def test_every_difference_is_proven(self) -> None:
        rows = spec_tables.rows_of(PAGE.read_text())
        self.assertGreater(len(rows), 25)
        proof = {row.ident: re.findall(r"``(tests\..+?)``", row.otherwise) for row in rows}
        self.assertEqual([], [what for what, tests in proof.items() if not tests])
        missing = [test for tests in proof.values() for test in tests if not spec_tables.exists(test)]
        self.assertEqual([], missing)

    def test_the_table_of_status_codes_is_up_to_date(self) -> None:
        self.assertGreater(table().count("   * - "), 40)
        self.assertEqual(table(), TABLE.read_text(), "write it anew: python -m tests.unit.test_differences")


if __name__ == "__main__":
    TABLE.write_text(table())
