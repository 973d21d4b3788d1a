"""Redfish against sushy-tools' emulator, beside the contracts: which machine a node is, clock and secure boot."""

import time
from collections.abc import Callable
from typing import Any, ClassVar

from ingot.common import errors, states
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.redfish import connection
from tests import patience
from tests.functional import redfish_emulator
from tests.unit.drivers import fakes

LIMIT = patience.seconds(60)

LOGIN = {"redfish_username": redfish_emulator.USER, "redfish_password": redfish_emulator.PASSWORD}


class EmulatorTest(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"enabled_hardware_types": ["redfish"], "redfish__connection_attempts": 1}
    machines = 1

    def setUp(self) -> None:
        super().setUp()
        self.bmc = self.useFixture(redfish_emulator.Emulator(self.machines, guarded=True))
        self.addCleanup(connection.log_out)
        self.node = self.make_task()

    def make_task(self, **info: Any) -> fakes.MemoryTask:
        """Return the task of a node; a value None leaves out what it has otherwise."""
        given = {"redfish_address": self.bmc.url, **LOGIN, **info}
        return self.task(driver="redfish", driver_info={key: value for key, value in given.items() if value})

    def finish(self, call: Callable[[], Any]) -> None:
        """Call again at poll times until the answer is done."""
        deadline = time.monotonic() + LIMIT
        while isinstance(answer := results.parse_result(call(), "under test"), results.PollAfter):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(min(answer.after, 0.5))


class OneMachineTest(EmulatorTest):
    def test_the_clock_and_the_queue_of_jobs(self) -> None:
        self.node.conf.set_override("enable_verify_bmc_clock", True, "redfish")
        self.node.driver.management.verify_bmc_clock(self.node)
        self.node.driver.management.set_bmc_clock(self.node)
        self.node.driver.management.clear_job_queue(self.node)

    def test_secure_boot_is_what_another_client_sees(self) -> None:
        management = self.node.driver.management
        for enabled in (True, False):
            management.set_secure_boot(self.node, enabled)
            self.assertIs(enabled, self.bmc.get(f"{self.bmc.systems[0]}/SecureBoot")["SecureBootEnable"])


class TwoMachinesTest(EmulatorTest):
    machines = 2

    def test_a_node_must_say_which_machine_it_is(self) -> None:
        error = self.assertRaises(errors.HardwareError, self.node.driver.power.get_power_state, self.node)
        for part in ("it has 2", *self.bmc.systems, "redfish_system_id"):
            self.assertIn(part, error.message)
        second = self.make_task(redfish_system_id=self.bmc.systems[1])
        self.finish(lambda: power_control.change(second, states.POWER_ON))
        self.assertEqual(["Off", "On"], [self.bmc.system(index)["PowerState"] for index in range(2)])

    def test_a_machine_that_is_not_there_is_named(self) -> None:
        lost = self.make_task(redfish_system_id="/redfish/v1/Systems/none")
        error = self.assertRaises(errors.HardwareError, lost.driver.power.get_power_state, lost)
        for part in (self.bmc.url, "GET /redfish/v1/Systems/none was answered 404"):
            self.assertIn(part, error.message)
