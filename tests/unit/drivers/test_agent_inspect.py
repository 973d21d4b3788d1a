"""What an in-band inspection leaves behind when it has failed."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import testtools

from ingot.common import errors, states
from ingot.drivers.agent.inspect import AgentInspect


class CleanUp(testtools.TestCase):
    """Whatever part of the surroundings fails, the rest is put back."""

    def clean_up(self, broken: str, disable_power_off: bool = False) -> list[Any]:
        done: list[Any] = []

        def part(name: str) -> Any:
            def do(*given: Any) -> None:
                done.append((name, *given[1:]))
                if name == broken:
                    raise errors.HardwareUnreachable(what=name, reason="silence")

            return do

        task: Any = SimpleNamespace(
            node=SimpleNamespace(disable_power_off=disable_power_off, driver_internal_info={}),
            set=lambda **_columns: None,
            driver=SimpleNamespace(
                power=SimpleNamespace(start_power_change=part("power"), switches=True),
                boot=SimpleNamespace(clean_up_ramdisk=part("boot")),
                network=SimpleNamespace(remove_inspection_network=part("network")),
            ),
        )
        self.assertRaises(
            errors.HardwareUnreachable, AgentInspect(conf=mock.sentinel.conf, name="agent").clean_up, task
        )
        return done

    def test_a_network_that_fails_does_not_leave_the_machine_on(self) -> None:
        for broken in ("boot", "network"):
            self.assertEqual(("power", states.POWER_OFF), self.clean_up(broken)[0])

    def test_an_unresponsive_bmc_does_not_leave_the_boot_and_the_network(self) -> None:
        self.assertEqual(["power", "boot", "network"], [name for name, *_ in self.clean_up("power")])

    def test_a_machine_that_must_stay_on_stays_on(self) -> None:
        self.assertEqual([("boot",), ("network",)], self.clean_up("network", disable_power_off=True))
