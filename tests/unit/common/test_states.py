"""The state machine is a table; these are the rules every table of its kind must keep."""

import itertools

import testtools

from ingot.api.nodes import verbs
from ingot.common import states


class TestTable(testtools.TestCase):
    def test_every_state_belongs_to_exactly_one_group(self) -> None:
        groups = (states.STABLE, states.WORKING, states.WAITING, states.HELD, states.FAILED)
        for one, other in itertools.combinations(groups, 2):
            self.assertEqual(set(), one & other)

    def test_transitions_are_sorted_and_unique(self) -> None:
        keys = [(state, event) for state, events in states.TRANSITIONS.items() for event in events]
        self.assertEqual(sorted(set(keys)), keys)

    def test_every_state_can_be_reached(self) -> None:
        reached = {states.ENROLL, states.AVAILABLE}
        while True:
            more = {next_state for state in reached for next_state in states.TRANSITIONS[state].values()} - reached
            if not more:
                break
            reached |= more
        self.assertEqual(states.ALL, reached)

    def test_work_can_always_fail(self) -> None:
        for state in states.WORKING | states.WAITING:
            self.assertIsNotNone(states.next_state(state, "fail"), state)

    def test_a_wait_can_be_resumed(self) -> None:
        for state in states.WAITING:
            self.assertIn(states.next_state(state, "resume"), states.WORKING, state)

    def test_what_is_held_can_be_released_or_aborted(self) -> None:
        for state in states.HELD:
            self.assertIsNotNone(states.next_state(state, "unhold"), state)
            self.assertIsNotNone(states.next_state(state, "abort"), state)

    def test_a_failure_has_a_way_out_for_the_client(self) -> None:
        for state in states.FAILED | {states.ERROR}:
            self.assertNotEqual([], verbs.find_allowed(state), state)

    def test_everything_on_its_way_has_a_target_and_nothing_stable_has(self) -> None:
        self.assertEqual(states.ALL - states.STABLE | {states.ERROR}, set(states.TARGETS))

    def test_clients_cannot_raise_the_events_of_the_conductor(self) -> None:
        for state in states.WORKING:
            self.assertEqual([], verbs.find_allowed(state))

    def test_a_failed_cleaning_may_be_retried(self) -> None:
        self.assertEqual(states.CLEANING, states.requested_state(states.CLEANFAIL, "provide"))
        self.assertEqual(states.CLEANING, states.requested_state(states.CLEANFAIL, "clean"))
