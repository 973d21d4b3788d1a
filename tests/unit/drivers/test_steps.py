"""Declaring steps: what the decorators accept, and where priorities come from."""

import testtools

from ingot.common import errors
from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.management import ManagementInterface
from tests.unit.drivers import fakes


class _Management(ManagementInterface):
    @base.clean_step(priority=base.from_option("deploy", "erase_devices_priority"))
    def scrub(self, task: object) -> None:
        """Scrub, with a priority that the operator sets."""


class TestDeclarations(testtools.TestCase):
    def test_an_operators_option_gives_the_priority(self) -> None:
        for configured, expected in ((None, 0), (0, 0), (35, 35)):
            conf = fakes.configuration(deploy__erase_devices_priority=configured)
            (step,) = _Management(conf, "test").declared_steps("clean")
            self.assertEqual(("scrub", expected), (step["step"], step["priority"]))

    def test_wrong_declarations_are_refused_where_they_are_made(self) -> None:
        for priority in (-1, True):
            self.assertRaises(errors.Invalid, base.deploy_step, priority)
        for about in ({}, {"description": "x", "required": "yes"}, {"description": "x", "type": "int"}):
            refused = self.assertRaises(errors.Invalid, base.clean_step, 0, argsinfo={"speed": about})
            self.assertIn("speed", refused.message)
