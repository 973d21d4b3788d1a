"""``[metrics] state_time_limits``: states that are named get another limit, and mistakes are refused."""

import testtools

from ingot.common import states
from ingot.common.conf import metrics
from tests import database
from tests.unit.common import test_configuration


class TestStateLimits(testtools.TestCase):
    read = metrics.StateLimits()

    def test_states_that_are_not_named_keep_theirs(self) -> None:
        usual = database.configuration("sqlite://").metrics.state_time_limits
        self.assertEqual(usual, self.read(""))
        self.assertEqual(usual | {states.DEPLOYWAIT: 60}, self.read("wait call-back:60"))
        self.assertEqual(set(usual) - {states.DEPLOYING}, set(self.read(" deploying : 0 ,")))
        self.assertEqual(60, self.read("active:60")[states.ACTIVE])

    def test_each_state_of_work_has_a_limit(self) -> None:
        self.assertEqual(set(), (states.WORKING | states.WAITING | states.HELD) - set(self.read("")))

    def test_mistakes_are_named(self) -> None:
        for text, part in (
            ("deployed:60", "'deployed:60' begins with no provision state"),
            ("60", "'60' begins with no provision state"),
            ("deploying:soon", "'deploying:soon' does not end with a number of seconds"),
            ("deploying:-1", "'deploying:-1' does not end with a number"),
        ):
            self.assertIn(part, str(self.assertRaises(ValueError, self.read, text)))


class TestRefusal(test_configuration.FileCase):
    def test_a_command_does_not_start_with_one(self) -> None:
        self.write(f"[metrics]\nstate_time_limits = deployed:60\n[DEFAULT]\nstate_path = {self.folder}\n")
        code, _output, problems = self.run_command("ingot", "--config-file", str(self.file))
        self.assertEqual(78, code)
        self.assertIn("[metrics] state_time_limits", problems)
        self.assertIn("begins with no provision state; there are ", problems)
