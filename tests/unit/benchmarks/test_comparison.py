"""Services are measured in turn, ours once more; a load that fails does not take the others with it."""

import asyncio
import contextlib
import io
from typing import ClassVar

import testtools

from benchmarks import comparison, report, scenarios
from benchmarks.api import Api
from benchmarks.loads import Size, Subject
from benchmarks.scenarios import Found, Load

SIZE = Size(nodes=1000)


class Recorded(Load):
    """Notes what it is asked for."""

    asked: ClassVar[list[tuple[bool, str, str]]] = []

    def __init__(self, name: str) -> None:
        self.operations = (name,)

    async def measure(self, subject: Subject, size: Size) -> Found:
        self.asked.append((size == SIZE, subject.name, self.operations[0]))
        yield self.operations[0], {"p50_ms": 1.0}


class Failing(Load):
    """Fails at the second operation, with Ironic."""

    operations = ("enrol", "delete")

    async def measure(self, subject: Subject, size: Size) -> Found:
        yield "enrol", {"p50_ms": 2.0}
        if subject.name == "Ironic":
            raise ValueError("no conductor")
        yield "delete", {"p50_ms": 2.0}


class ComparisonTest(testtools.TestCase):
    def compare(self, *chosen: str) -> list[list[report.Sample]]:
        """Compare, and return what was kept, each time."""
        Recorded.asked.clear()
        self.patch(scenarios, "LOADS", (Failing(), Recorded("node"), Recorded("GET /")))
        self.subjects = [Subject(name, Api("http://127.0.0.1:1")) for name in ("Ingot", "Ironic")]
        kept: list[list[report.Sample]] = []
        with contextlib.redirect_stderr(io.StringIO()):
            asyncio.run(comparison.compare(self.subjects, chosen, SIZE, 2, lambda samples: kept.append([*samples])))
        return kept

    def test_sides_take_turns_and_ours_comes_again(self) -> None:
        samples = self.compare("node")[-1]
        order = [(0, "Ingot"), (0, "Ironic"), (0, "again"), (1, "Ingot"), (1, "Ironic"), (1, "again")]
        self.assertEqual(order, [(sample.round, sample.side) for sample in samples])
        self.assertEqual({"node"}, {sample.operation for sample in samples})

    def test_nothing_counts_before_each_service_is_warm(self) -> None:
        self.compare("node", "GET /")
        warm = [(False, side, name) for name in ("node", "GET /") for side in ("Ingot", "Ironic")]
        self.assertEqual(warm, Recorded.asked[:4])
        self.assertEqual({True}, {counts for counts, _, _ in Recorded.asked[4:]})

    def test_each_load_of_each_round_is_kept_as_soon_as_it_is_there(self) -> None:
        kept = self.compare("node", "GET /")
        self.assertEqual([3, 6, 9, 12], [len(samples) for samples in kept])

    def test_a_load_that_fails_costs_nothing_but_what_it_had_left_to_find(self) -> None:
        samples = self.compare("enrol", "delete", "GET /")[-1]
        ironic = {sample.operation for sample in samples if sample.side == "Ironic"}
        self.assertEqual({"enrol", "GET /"}, ironic)
        self.assertEqual({"enrol", "delete", "GET /"}, {sample.operation for sample in samples})
        ours, theirs = self.subjects
        self.assertEqual(([], 3), (ours.problems, len(theirs.problems)))
        self.assertEqual("delete was given up: ValueError('no conductor')", theirs.problems[0])
