"""The table says what was found, and judges it by the middle of the rounds."""

import json
import pathlib

import fixtures
import testtools

from benchmarks import operations, report, sides
from benchmarks.report import Sample

SIDES = ("Ingot", "Ironic", "last release", report.AGAIN)


def samples(operation: str, metric: str, **values: list[float]) -> list[Sample]:
    return [
        Sample(operation, side, number, {metric: value})
        for side, found in values.items()
        for number, value in enumerate(found)
    ]


class TableTest(testtools.TestCase):
    def table(self, *found: Sample) -> dict[str, dict[str, str]]:
        heads, *lines = report.target_table(found, SIDES)
        return {line[0]: dict(zip(heads, line, strict=True)) for line in lines}

    def test_an_operation_is_judged_by_its_median_factor(self) -> None:
        node = samples("node", operations.CPU, Ingot=[1, 1, 2], Ironic=[6, 7, 8])
        delete = samples("delete", operations.CPU, Ingot=[1, 1, 1], Ironic=[9, 7, 7])
        found = self.table(*node, *delete)
        self.assertEqual(["node", "delete"], list(found))
        self.assertEqual("1 / 1 / 2", found["node"]["ours"])
        self.assertEqual(("4 / 6 / 7", "6 times", "yes"), tuple(
            found["node"][head] for head in ("less than Ironic", "target", "reached")
        ))  # fmt: skip
        self.assertEqual(("7 / 7 / 9", "no"), (found["delete"]["less than Ironic"], found["delete"]["reached"]))

    def test_a_factor_is_of_one_round(self) -> None:
        """The machine became twice as slow: both sides did, and nothing between them has changed."""
        found = self.table(*samples("node", operations.CPU, Ingot=[1, 2], again=[1, 2]))
        self.assertEqual("1", found["node"]["less than again"])

    def test_memory_has_a_limit_of_its_own(self) -> None:
        for used, reached in ((219.0, "yes"), (221.0, "no")):
            memory = self.table(*samples("memory", operations.MEMORY, Ingot=[used], Ironic=[500.0]))["memory"]
            self.assertEqual(("at most 220", reached), (memory["target"], memory["reached"]))

    def test_without_ironic_nothing_is_judged(self) -> None:
        node = self.table(*samples("node", operations.CPU, Ingot=[1.0], again=[1.1]))["node"]
        self.assertEqual(("-", "-", "1.1"), (node["of Ironic"], node["reached"], node["less than again"]))


class FilesTest(testtools.TestCase):
    def test_a_page_and_all_figures_are_left_under_date_and_commit(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "results"
        facts = {"command": "python -m benchmarks", "date": "2026-11-23T02:00:00+00:00", "commit": "abc", "cores": 2}
        page = report.Report(
            name="cluster",
            title="Ingot beside Ironic",
            sides=SIDES,
            facts=facts,
            packages={"Ironic": {"ironic": "39.0.0"}},
            samples=samples("node", operations.CPU, Ingot=[1.0], Ironic=[6.0]),
            problems={"Ironic": ["HTTP 500", "HTTP 500"], "Ingot": []},
        ).write(directory)
        self.assertEqual("2026-11-23-abc-cluster.md", page.name)
        text = page.read_text()
        for line in ("| cores | 2 |", "Problems: 1", "- Ironic: HTTP 500", "    python -m benchmarks"):
            self.assertIn(f"\n{line}\n", text)
        everything = json.loads(page.with_suffix(".json").read_text())
        self.assertEqual({operations.CPU: 6.0}, everything["samples"][1]["metrics"])
        self.assertEqual({"ironic": "39.0.0"}, everything["packages"]["Ironic"])


class ChoiceTest(testtools.TestCase):
    def test_operations_are_chosen_by_words_in_their_names(self) -> None:
        self.assertEqual(["lookup"], operations.choose("lookup"))
        self.assertEqual(["fake deploy", "agent deploy", "heartbeat"], operations.choose("heartbeat, deploy"))
        self.assertEqual(
            ["list of 1000", "node"], operations.choose("node,list of"), "a whole name is no part of others"
        )
        self.assertEqual(list(operations.OPERATIONS), operations.choose(None))
        for setup in sides.SETUPS.values():
            self.assertIn("fake deploy", operations.choose(setup.only))
        self.assertIn("levitate", str(self.assertRaises(ValueError, operations.choose, "node,levitate")))
