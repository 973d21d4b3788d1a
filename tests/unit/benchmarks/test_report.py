"""The table says what was found, and judges it by the middle of the rounds."""

import json
import pathlib
from typing import Any

import fixtures
import testtools

from benchmarks import operations, report, sides
from benchmarks.report import Sample

CPU = "server_cpu_per_op_ms"
SIDES = ("Ingot", "Ironic", "last release", report.AGAIN)


def samples(operation: str, metric: str, **values: list[float]) -> list[Sample]:
    return [
        Sample(operation, side, number, {metric: value})
        for side, found in values.items()
        for number, value in enumerate(found)
    ]


class TableTest(testtools.TestCase):
    def table(self, *found: Sample) -> dict[str, Any]:
        return {row["operation"]: row for row in report.list_tables(found, SIDES)["What is judged"]}

    def test_an_operation_is_judged_by_its_median_factor(self) -> None:
        node = samples("node", CPU, Ingot=[1, 1, 2], Ironic=[6, 7, 8])
        delete = samples("delete", CPU, Ingot=[1, 1, 1], Ironic=[9, 7, 7])
        found = self.table(*node, *delete)
        self.assertEqual(["node", "delete"], list(found))
        self.assertEqual("1 / 1 / 2", found["node"]["ours"])
        self.assertEqual(("4 / 6 / 7", "6 times", "yes"), tuple(
            found["node"][head] for head in ("less than Ironic", "target", "reached")
        ))  # fmt: skip
        self.assertEqual(("7 / 7 / 9", "no"), (found["delete"]["less than Ironic"], found["delete"]["reached"]))

    def test_a_factor_is_of_one_round(self) -> None:
        """The machine became twice as slow: both sides did, and nothing between them has changed."""
        found = self.table(*samples("node", CPU, Ingot=[1, 2], again=[1, 2]))
        self.assertEqual("1", found["node"]["less than again"])

    def test_memory_has_a_limit_of_its_own(self) -> None:
        for used, reached in ((219.0, "yes"), (221.0, "no")):
            memory = self.table(*samples("memory", "rss_mib", Ingot=[used], Ironic=[500.0]))["memory"]
            self.assertEqual(("at most 220", reached), (memory["target"], memory["reached"]))

    def test_without_ironic_nothing_is_judged(self) -> None:
        node = self.table(*samples("node", CPU, Ingot=[1.0], again=[1.1]))["node"]
        self.assertEqual(("-", "-", "1.1"), (node["of Ironic"], node["reached"], node["less than again"]))


class FilesTest(testtools.TestCase):
    def test_a_page_and_all_figures_are_left_under_date_and_commit(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "results"
        facts = {"command": "python -m benchmarks", "date": "2026-11-23T02:00:59+00:00", "commit": "abc", "cores": 2}
        found = report.list_tables(samples("node", CPU, Ingot=[1.0], Ironic=[6.0]), SIDES)
        more = {"packages": {"Ironic": {"ironic": "39.0.0"}}}
        page = report.keep(directory, "cluster", facts, {**found, "Problems": []}, **more)
        self.assertEqual("2026-11-23T0200-abc-cluster.md", page.name)
        text = page.read_text()
        self.assertIn(f"\n| node | {CPU} | 1 | 6 | 6 | - | - | - | - | 6 times | yes |\n", text)
        for line in ("| cores | 2 |", "## Problems\n\nnone", "    python -m benchmarks"):
            self.assertIn(f"\n{line}\n", text)
        everything = json.loads(page.with_suffix(".json").read_text())
        self.assertEqual(more["packages"], everything["packages"])

    def test_rows_may_differ_in_what_they_have(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        facts = {"command": "x", "date": "2026-11-23T02:00", "commit": "abc"}
        page = report.keep(
            directory, "growth", facts, {"By": [{"nodes": 1}, {"nodes": 2, "ms": 0.5}], "One": {"a": {}}}
        )
        text = page.read_text()
        self.assertIn("| nodes | ms |\n| --- | --- |\n| 1 |  |\n| 2 | 0.5 |", text)
        self.assertIn("| a | none |", text)


class ChoiceTest(testtools.TestCase):
    def test_operations_are_chosen_by_words_in_their_names(self) -> None:
        self.assertEqual(["heartbeat", "lookup"], operations.choose("lookup, Heart"))
        self.assertEqual(["fake deploy", "fake undeploy"], operations.choose("fake deploy,fake und"))
        self.assertEqual(list(operations.OPERATIONS), operations.choose(None))
        for setup in sides.SETUPS.values():
            self.assertIn("fake deploy", operations.choose(setup.only))
        self.assertIn("levitate", str(self.assertRaises(ValueError, operations.choose, "node,levitate")))
