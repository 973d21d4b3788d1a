"""Percentiles, spreads and factors, by hand."""

import testtools

from benchmarks import figures


class FiguresTest(testtools.TestCase):
    def test_a_percentile_may_lie_between_two_values(self) -> None:
        self.assertEqual([1, 2.5, 4, 3.25], [figures.percentile([4, 1, 3, 2], share) for share in (0, 0.5, 1, 0.75)])
        self.assertEqual(7, figures.percentile([7], 0.99))

    def test_latency_is_in_milliseconds(self) -> None:
        self.assertEqual({"p50_ms": 2000.0, "p95_ms": 2900.0, "p99_ms": 2980.0}, figures.latency([1, 2, 3]))
        self.assertEqual({}, figures.latency([]))

    def test_factors_pair_the_rounds_that_both_sides_have(self) -> None:
        """A drift of the machine cancels only within a round; a figure of nothing has no factor."""
        self.assertEqual([5.0, 2.0], figures.factors({0: 2, 1: 4, 2: 3, 3: 0}, {0: 10, 1: 8, 3: 6, 4: 1}))

    def test_a_spread_shows_one_figure_where_all_are_alike(self) -> None:
        self.assertEqual("1 / 2 / 9", figures.spread([9, 1, 2]))
        self.assertEqual("1 / 1 / 2", figures.spread([1, 1, 2]))
        self.assertEqual("2", figures.spread([2, 2]))
        self.assertEqual("-", figures.spread([]))

    def test_a_figure_has_three_digits_that_matter(self) -> None:
        self.assertEqual(
            ["0", "0.004", "0.12", "1.23", "12.3", "123", "12346"],
            [figures.number(value) for value in (0, 0.0041, 0.12, 1.234, 12.34, 123.4, 12345.6)],
        )
