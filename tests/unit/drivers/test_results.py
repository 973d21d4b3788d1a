"""What steps answer: typed, or refused; in phases, one after the other across calls."""

from types import SimpleNamespace
from typing import Any

import testtools

from ingot.common import errors, states
from ingot.drivers.interfaces import results


class TypedTest(testtools.TestCase):
    def test_the_answers_of_the_specifications(self) -> None:
        self.assertEqual(results.DONE, results.parse_result(None, "x"))
        self.assertEqual(results.WaitForAgent(again=False), results.parse_result(states.DEPLOYWAIT, "x"))
        for answer in (results.Done(1), results.WaitForAgent(5), results.PollAfter(2)):
            self.assertIs(answer, results.parse_result(answer, "x"))

    def test_anything_else_is_refused_with_the_steps_name(self) -> None:
        for answer in (True, "done", states.ACTIVE, 0):
            self.assertIn(
                "power.on", self.assertRaises(errors.StepFailed, results.parse_result, answer, "power.on").message
            )


class PhasesTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.task = SimpleNamespace(memory={"mine": 1})
        self.calls: list[str] = []

    def _phase(self, name: str, *answers: Any) -> Any:
        left = list(answers)

        def phase(task: Any) -> Any:
            self.calls.append(name)
            task.memory[name] = True
            return left.pop(0)

        return phase

    def test_each_goes_on_where_it_stopped_and_forgets_what_was_its_own(self) -> None:
        phases = (
            self._phase("a", None),
            self._phase("b", results.PollAfter(3), results.WaitForAgent(), None),
            self._phase("c", results.Done("end")),
        )
        self.assertEqual(results.PollAfter(3), results.run_phases(self.task, *phases))
        self.assertNotIn("a", self.task.memory)
        self.assertEqual(results.WaitForAgent(), results.run_phases(self.task, *phases))
        self.assertEqual(results.Done("end"), results.run_phases(self.task, *phases))
        self.assertEqual(["a", "b", "b", "b", "c"], self.calls)
        self.assertEqual({"mine": 1}, self.task.memory)

    def test_a_wait_that_a_heartbeat_ends_leads_to_the_next_phase(self) -> None:
        phases = (self._phase("a", states.CLEANWAIT), self._phase("b", None))
        self.assertEqual(results.WaitForAgent(), results.run_phases(self.task, *phases))
        self.assertEqual(results.DONE, results.run_phases(self.task, *phases))
        self.assertEqual(["a", "b"], self.calls)

    def test_a_phase_may_consist_of_phases(self) -> None:
        inner = (self._phase("b", results.PollAfter(1), None), self._phase("c", results.PollAfter(1), None))
        phases = (self._phase("a", None), lambda task: results.run_phases(task, *inner), self._phase("d", None))
        for _ in range(2):
            self.assertEqual(results.PollAfter(1), results.run_phases(self.task, *phases))
        self.assertEqual(results.DONE, results.run_phases(self.task, *phases))
        self.assertEqual(["a", "b", "b", "c", "c", "d"], self.calls)
        self.assertEqual({"mine": 1}, self.task.memory)
