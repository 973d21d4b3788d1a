"""What contracts have in common: a bench, and calls that are made again as the conductor would."""

import copy
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import testtools

from ingot.common import errors
from ingot.driver_kit import patience
from ingot.driver_kit.bench import Bench
from ingot.drivers.interfaces import results

LIMIT = patience.seconds(120)
SLOWNESS = patience.seconds(5)
"""Seconds by which a call may be late on this machine."""


class ContractTest(testtools.TestCase):
    """:cvar bench_class: what the contract is tested on."""

    bench_class: ClassVar[type[Bench]]

    def setUp(self) -> None:
        super().setUp()
        self.bench = self.useFixture(self.bench_class())
        self.task = self.bench.task

    def finish(self, call: Callable[[Any], Any]) -> None:
        """Call again at poll times until the answer is done."""
        self.task.memory.clear()
        deadline = time.monotonic() + LIMIT
        while isinstance(answer := results.parse_result(call(self.task), "under test"), results.PollAfter):
            self.assertLess(time.monotonic(), deadline, "not done")
            time.sleep(min(answer.after, 0.3))
        self.assertIsInstance(answer, results.Done)

    def step(self, interface: str, name: str, kind: str = "clean", **args: Any) -> None:
        """Run a step to its end."""
        link = getattr(self.task.driver, interface)
        step = {"interface": interface, "step": name, "args": args}
        self.finish(lambda task: getattr(link, f"execute_{kind}_step")(task, step))

    def finish_dying(self, interface: str, name: str, **args: Any) -> int:
        """Run a clean step whose calls are all made twice, the first time by a conductor that dies after it.

        What it knew is lost then: the second call has the memory of the answer before.

        :returns: how many calls it took, without those of the dead.
        """
        step = {"interface": interface, "step": name, "args": args}
        link, calls = getattr(self.task.driver, interface), 0
        deadline = time.monotonic() + LIMIT
        memory: dict[str, Any] = {}
        while time.monotonic() < deadline:
            for _times in range(2):
                self.task.memory = copy.deepcopy(memory)
                answer = results.parse_result(link.execute_clean_step(self.task, step), "under test")
            calls += 1
            memory = json.loads(json.dumps(self.task.memory))
            if isinstance(answer, results.Done):
                return calls
            assert isinstance(answer, results.PollAfter)
            time.sleep(min(answer.after, 0.3))
        raise AssertionError("never done")

    def assert_refused(self, call: Callable[[], Any], *parts: str) -> None:
        """Check that a call is refused as a mistake of the user's, with a message that says what is wrong."""
        error = self.assertRaises(errors.Invalid, call)
        for part in parts:
            self.assertIn(part, error.message)

    def assert_silence_ends(self, *calls: Callable[[], Any], closes: bool = False) -> None:
        """Check that calls to a BMC that says nothing end in time and name the BMC.

        :param closes: check it also of the first call and a BMC that is away.
        """
        self.bench.limit_time(1)
        for absence, affected in ((self.bench.silence, calls), (self.bench.close, calls[:1] if closes else ())):
            absence()
            for call in affected:
                began = time.monotonic()
                error = self.assertRaises(errors.HardwareUnreachable, call)
                # What needs many requests may take a few times the limit of one.
                self.assertLess(time.monotonic() - began, 4 * 1 + SLOWNESS)
                self.assertIn(self.task.driver.power.bmc(self.task), error.message)
            self.bench.speak()
        self.bench.limit_time(int(patience.seconds(20)))

    def assert_borne(self, call: Callable[[], Any]) -> None:
        """Check that a call bears all that passes."""
        self.assertTrue(self.bench.troubles)
        for trouble in self.bench.troubles:
            self.bench.disturb(trouble)
            call()
            self.bench.clear()

    def columns(self, rows: list[dict[str, Any]], name: str, key: str) -> Mapping[str, Any]:
        """Return a column of rows, by another one."""
        return {row[name]: row[key] for row in rows}
