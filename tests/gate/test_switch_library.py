"""The network interface switch, with networking-generic-switch's fake switch, in processes of its own."""

import logging

import fixtures

from ingot.common import errors
from ingot.drivers.interfaces import results
from tests.gate import environments, switches
from tests.unit.drivers import test_switch


class WayTest(test_switch.SwitchCase):
    """Each test waits for processes of the library, so there are few, and each walks a whole way."""

    def setUp(self) -> None:
        super().setUp()
        self.python = environments.cached("switch", *switches.REQUIREMENTS) / "python"

    def done(self) -> list[str]:
        """Return what was done with the switch, in this order, and forget it."""
        lines = [line for line in self.log.output.splitlines() if "connected: " in line]
        self.log = self.useFixture(fixtures.FakeLogger("ingot", level=logging.INFO))
        return [line.split(": ", 1)[1] for line in lines]

    def test_a_machine_goes_from_vlan_to_vlan(self) -> None:
        task = self.task()
        network = task.driver.network
        network.validate(task)
        self.assertEqual(results.DONE, network.add_cleaning_network(task))
        self.assertEqual(["connected: port eth1 on switch leaf, VLAN 100"], self.done())
        self.assertEqual([("eth1", 100, "cleaning")], self.noted(task))
        network.add_provisioning_network(task)
        self.assertEqual(
            [
                "disconnected: port eth1 on switch leaf, VLAN 100",
                "connected: port eth1 on switch leaf, VLAN 200",
            ],
            self.done(),
        )
        network.remove_cleaning_network(task)  # it has left it already
        self.assertEqual([], self.done())
        network.remove_provisioning_network(task)
        self.assertEqual(["disconnected: port eth1 on switch leaf, VLAN 200"], self.done())
        self.assertNotIn(test_switch.NOTES, task.node.driver_internal_info)
        self.assertNotIn(test_switch.SECRET, self.log.output)

    def test_a_switch_that_fails_is_named_with_port_and_vlan_and_what_may_be_changed_stays_noted(self) -> None:
        self.describe(leaf={**test_switch.LEAF, "ngs_fake_failure_prob": "1", "ngs_save_configuration": "false"})
        task = self.task()
        said = self.refused(task.driver.network.add_cleaning_network, task, error=errors.SwitchUnavailable)
        for part in ("port eth1", "switch leaf", "VLAN 100", "Random failure!"):
            self.assertIn(part, said)
        self.assertNotIn(test_switch.SECRET, said)
        self.assertEqual([("eth1", 100, "cleaning")], self.noted(task))
        self.describe(leaf=test_switch.LEAF)
        task.driver.network.remove_cleaning_network(task)
        self.assertEqual(["disconnected: port eth1 on switch leaf, VLAN 100"], self.done())

    def test_what_takes_too_long_is_cut_off(self) -> None:
        self.describe(leaf={**test_switch.LEAF, "ngs_fake_sleep_min_s": "600", "ngs_fake_sleep_max_s": "600"})
        task = self.task(switch__timeout=1)
        said = self.refused(task.driver.network.add_cleaning_network, task, error=errors.SwitchUnavailable)
        self.assertIn("it took longer than 1 s", said)
