"""How cost grows, which limit a site meets first, how fair a burst was: the arithmetic of the reports."""

import testtools

from benchmarks import bursts, figures, site


class Slopes(testtools.TestCase):
    def test_growth_for_each_thousand(self) -> None:
        self.assertAlmostEqual(2.0, figures.slope([0, 1000, 5000], [7, 9, 17]))

    def test_what_is_constant_does_not_grow(self) -> None:
        self.assertEqual(0.0, figures.slope([100, 1000, 10000], [3, 3, 3]))

    def test_one_size_says_nothing_of_growth(self) -> None:
        self.assertEqual(0.0, figures.slope([100], [3]))


class Limits(testtools.TestCase):
    def test_the_part_with_the_least_to_give_comes_first(self) -> None:
        deployment = {"API, ms": 10.0, "database, ms": 5.0}
        minute = {"API, ms": 0.0, "database, ms": 600.0}  # of each of the 20 groups
        found = site.first_limits(deployment, minute, {"API": 8, "database": 2})
        self.assertEqual(["database", "API"], [row["part"] for row in found])
        self.assertAlmostEqual((2 - 0.2) * 1000 / 5, found[0]["deployments a second"])
        self.assertAlmostEqual(0.2, found[0]["used when idle"])

    def test_a_group_has_conductors_of_its_own(self) -> None:
        [found] = site.first_limits({"conductors, ms": 10.0}, {"conductors, ms": 6000.0}, {"conductors": 1})
        self.assertAlmostEqual(0.1, found["used when idle"])
        self.assertAlmostEqual(20 * 90.0, found["deployments a second"])


class Fairness(testtools.TestCase):
    def test_places_that_nodes_have_moved(self) -> None:
        self.assertEqual(0, bursts.fairness(["a", "b", "c"], ["a", "b", "c"])["places moved, p99"])
        self.assertEqual(1, bursts.fairness(["a", "b", "c"], ["b", "a", "c"])["places moved, median"])
