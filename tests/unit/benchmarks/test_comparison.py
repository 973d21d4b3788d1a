"""Services are measured in turn, ours once more; a load that fails does not take the others with it."""

import asyncio
import contextlib
import io
from collections.abc import Sequence
from typing import ClassVar

import testtools

from benchmarks import comparison, report, scenarios
from benchmarks.api import Api
from benchmarks.loads import Found, Load, Size, Subject

SIZE = Size(nodes=1000)


class Recorded(Load):
    """Notes what it is asked for."""

    operations = ("node", "GET /")
    asked: ClassVar[list[tuple[str, str, str]]] = []

    async def prepare(self, subject: Subject) -> None:
        self.asked.append(("prepare", subject.name, ""))

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        self.asked.append(("measure" if self.size == SIZE else "warm up", subject.name, portion[0]))
        return {name: {"p50_ms": 1.0} for name in portion}


class Failing(Load):
    operations = ("lookup",)

    async def prepare(self, subject: Subject) -> None:
        raise ValueError("no agents")


class ComparisonTest(testtools.TestCase):
    def compare(self, *chosen: str) -> tuple[list[report.Sample], list[Subject]]:
        Recorded.asked.clear()
        self.patch(scenarios, "LOADS", (Failing, Recorded))
        subjects = [Subject(name, Api("http://127.0.0.1:1"), []) for name in ("Ingot", "Ironic")]
        with contextlib.redirect_stderr(io.StringIO()):
            return asyncio.run(comparison.compare(subjects, chosen, SIZE, 2)), subjects

    def test_sides_take_turns_and_ours_comes_again(self) -> None:
        samples, _ = self.compare("node")
        order = [(0, "Ingot"), (0, "Ironic"), (0, "again"), (1, "Ingot"), (1, "Ironic"), (1, "again")]
        self.assertEqual(order, [(sample.round, sample.side) for sample in samples])
        self.assertEqual({"node"}, {sample.operation for sample in samples})

    def test_nothing_counts_before_each_service_is_warm(self) -> None:
        self.compare("node", "GET /")
        begun = [(what, side) for what, side, _ in Recorded.asked[:7]]
        each = ["prepare", "warm up", "warm up"]
        self.assertEqual(
            [*((what, side) for side in ("Ingot", "Ironic") for what in each), ("prepare", "again")], begun
        )
        self.assertEqual({"measure"}, {what for what, _, _ in Recorded.asked[7:]})

    def test_a_load_that_fails_is_reported_and_the_others_go_on(self) -> None:
        samples, (ours, _) = self.compare("lookup", "GET /")
        self.assertEqual({"GET /"}, {sample.operation for sample in samples})
        self.assertEqual(["Failing was given up: ValueError('no agents')"], ours.problems)
