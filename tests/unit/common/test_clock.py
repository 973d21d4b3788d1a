"""Spans of time in words."""

import testtools

from ingot.common import clock


class Spell(testtools.TestCase):
    def test_spans_have_their_two_largest_units(self) -> None:
        spans = {
            -3: "0 s", 0.04: "0 s", 0.44: "0.4 s", 9.97: "10 s", 59.6: "1 min", 61: "1 min 1 s", 3600: "1 h",
            3725: "1 h 2 min", 86_400: "1 day", 86_460: "1 day", 200_000: "2 days 7 h",
        }  # fmt: skip
        self.assertEqual(spans, {seconds: clock.spell(seconds) for seconds in spans})
