"""Each contract on each implementation; ``lacks`` has what one of them cannot do."""

import testtools

from ingot.driver_kit.contracts import suites
from tests.functional.contract import lacks
from tests.functional.contract.benches import BENCHES

globals().update(suites.build(__name__, BENCHES, lacks.LACKS))


class LacksTest(testtools.TestCase):
    def test_each_row_is_about_a_test_and_says_why(self) -> None:
        self.assertEqual([], suites.list_idle(BENCHES, lacks.LACKS))
        self.assertEqual([], [row for row in lacks.LACKS if len(row.reason.split()) < 4])
