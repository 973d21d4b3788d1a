"""The circuit breaker of BMCs: when housekeeping asks again, and what ends a silence."""

import testtools

from ingot.common import errors
from ingot.drivers.interfaces.circuit_breakers import CircuitBreakers

SILENCE = errors.HardwareUnreachable(what="BMC", reason="nothing came back")
REFUSAL = errors.HardwareError(what="BMC", reason="wrong password")


class TestCircuitBreakers(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.time = 1000.0
        self.circuit_breakers = CircuitBreakers(60, 300, lambda: self.time)

    def call(self, error: Exception | None = None, node: str = "a node", bmc: str = "a BMC") -> None:
        """Call a BMC; the call ends with this error."""
        try:
            with self.circuit_breakers.observe_call(node, bmc, "fake-hardware"):
                if error is not None:
                    raise error
        except errors.HardwareError as exc:
            self.assertIs(error, exc)

    def pause(self) -> float:
        """Let the time pass until housekeeping may call; return how long that took."""
        began = self.time
        while not self.circuit_breakers.can_call("a BMC"):
            self.time += 1
        return self.time - began

    def test_pauses_become_longer_up_to_a_limit(self) -> None:
        self.assertEqual(0, self.pause())
        pauses = []
        for _again in range(5):
            self.call(SILENCE)
            pauses.append(self.pause())
        self.assertEqual([60, 120, 240, 300, 300], pauses)

    def test_an_answer_ends_the_silence_and_the_next_one_begins_anew(self) -> None:
        for answer in (None, REFUSAL):
            for _again in range(3):
                self.pause()
                self.call(SILENCE)
            self.assertTrue(self.circuit_breakers.is_unresponsive("a node"))
            self.call(answer)
            self.assertEqual((False, 0), (self.circuit_breakers.is_unresponsive("a node"), self.pause()))
            self.call(SILENCE)
            self.assertEqual(60, self.pause())
            self.call()

    def test_what_is_not_called_any_more_is_forgotten(self) -> None:
        self.call(SILENCE)
        self.call(SILENCE, "another", "another BMC")
        self.time += 60 + 300
        self.call(SILENCE, "another", "another BMC")
        self.assertEqual(2, self.circuit_breakers.count_open())
        silent = self.circuit_breakers.list_open(1)
        self.assertEqual([("a BMC", "BMC did not answer: nothing came back")], [(bmc, why) for bmc, _at, why in silent])
        self.time += 61
        self.assertEqual(1, self.circuit_breakers.count_open())
        self.assertFalse(self.circuit_breakers.is_unresponsive("a node"))
        self.assertTrue(self.circuit_breakers.is_unresponsive("another"))

    def test_what_users_try_during_a_pause_makes_it_no_longer(self) -> None:
        self.call(SILENCE)
        self.time += 59
        self.call(SILENCE)
        self.assertEqual(1, self.pause())

    def test_what_fails_for_another_reason_says_nothing(self) -> None:
        self.call(SILENCE)
        self.assertRaises(KeyError, self._breaks)
        self.assertTrue(self.circuit_breakers.is_unresponsive("a node"))

    def _breaks(self) -> None:
        with self.circuit_breakers.observe_call("a node", "a BMC", "fake-hardware"):
            raise KeyError

    def test_machines_of_one_chassis_are_unresponsive_together(self) -> None:
        for node in ("first", "second"):
            self.call(SILENCE, node)
        self.call(SILENCE, "elsewhere", "another BMC")
        self.assertEqual(60, self.pause())
        self.call(None, "first")
        silent = [
            self.circuit_breakers.is_unresponsive(node) for node in ("first", "second", "elsewhere", "never asked")
        ]
        self.assertEqual([False, False, True, False], silent)

    def test_a_node_that_got_another_address_is_not_held_off(self) -> None:
        self.call(SILENCE)
        self.assertFalse(self.circuit_breakers.can_call("a BMC"))
        self.assertTrue(self.circuit_breakers.can_call("the right BMC"))
        self.call(None, bmc="the right BMC")
        self.assertFalse(self.circuit_breakers.is_unresponsive("a node"))
