"""Redfish against sushy-tools' emulator: what Ingot does is what another client of the emulator sees."""

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
    def test_power_is_what_another_client_sees(self) -> None:
        power = self.node.driver.power
        self.assertEqual(states.POWER_OFF, power.get_power_state(self.node))
        for target, seen in ((states.POWER_ON, "On"), (states.SOFT_POWER_OFF, "Off")):
            self.finish(lambda target=target: power_control.change(self.node, target))
            self.assertEqual(seen, self.bmc.system()["PowerState"])
            self.node.memory.clear()
        self.assertEqual((states.POWER_OFF, "OK", ()), power.start_reading(self.node).result(LIMIT))

    def test_boot_devices_are_what_another_client_sees(self) -> None:
        management = self.node.driver.management
        seen = {"pxe": "Pxe", "disk": "Hdd", "cdrom": "Cd"}
        for device, target in seen.items():
            management.set_boot_device(self.node, device, persistent=True)
            self.assertEqual(target, self.bmc.system()["Boot"]["BootSourceOverrideTarget"])
            self.assertEqual({"boot_device": device, "persistent": True}, management.get_boot_device(self.node))
        self.assertEqual(["pxe", "disk", "cdrom", "bios", "uefihttp"], management.get_supported_boot_devices(self.node))

    def test_a_boot_device_that_is_not_there_is_refused_with_those_that_are(self) -> None:
        management = self.node.driver.management
        for device, allowed in (("tape", "pxe, disk, cdrom, bios, uefihttp"), ("bios", "pxe, disk, cdrom, uefihttp")):
            error = self.assertRaises(errors.Invalid, management.set_boot_device, self.node, device)
            for part in ("boot_device", repr(device), allowed):
                self.assertIn(part, error.message)

    def test_boot_mode_and_secure_boot_are_read_when_the_node_is_managed(self) -> None:
        management = self.node.driver.management
        for mode, seen, secure in (("uefi", "UEFI", True), ("bios", "Legacy", False)):
            management.set_boot_mode(self.node, mode)
            management.set_secure_boot(self.node, secure)
            self.assertEqual(seen, self.bmc.system()["Boot"]["BootSourceOverrideMode"])
            self.assertIs(secure, self.bmc.get(f"{self.bmc.systems[0]}/SecureBoot")["SecureBootEnable"])
            management.read_boot_mode(self.node)
            self.assertEqual((mode, secure), (self.node.node.boot_mode, self.node.node.secure_boot))

    def test_lights(self) -> None:
        management = self.node.driver.management
        lights = management.get_supported_indicators(self.node)
        self.assertEqual(["system", "chassis"], [light.component for light in lights])
        for light in lights:
            for state in light.states:
                management.set_indicator_state(self.node, light, state)
                self.assertEqual(state, management.get_indicator_state(self.node, light))
        self.assertEqual("Lit", self.bmc.system()["IndicatorLED"])

    def test_virtual_media_are_inserted_replaced_and_ejected(self) -> None:
        management, image = self.node.driver.management, f"{self.bmc.url}/redfish/v1"
        expected = {"media_types": ["CD", "DVD"], "inserted": True, "image": image}
        for url in (f"{image}/", image, image):
            management.attach_virtual_media(self.node, "cdrom", url, "http")
        self.assertIn(expected, management.get_virtual_media(self.node))
        for _again in range(2):
            management.detach_virtual_media(self.node, ["cdrom", "floppy", "disk"])
            self.assertEqual([False, False], [one["inserted"] for one in management.get_virtual_media(self.node)])

    def test_media_that_the_bmc_cannot_fetch_are_refused(self) -> None:
        attach = self.node.driver.management.attach_virtual_media
        error = self.assertRaises(errors.Invalid, attach, self.node, "cdrom", "file:///etc/shadow", None)
        self.assertIn("image_url", error.message)
        error = self.assertRaises(errors.Invalid, attach, self.node, "cdrom", "http://192.0.2.1/x.iso", "swift")
        self.assertIn("image_download_source", error.message)

    def test_what_the_emulator_does_not_have_is_reported_with_bmc_and_resource(self) -> None:
        management = self.node.driver.management
        for call, part in (
            (management.inject_nmi, f"{self.bmc.systems[0]}/Actions/ComputerSystem.Reset was answered 501"),
            (management.reset_bmc, "/redfish/v1/Managers/"),
            (management.clear_secure_boot_keys, f"{self.bmc.systems[0]}/SecureBoot"),
        ):
            error = self.assertRaises(errors.HardwareError, call, self.node)
            self.assertIn(part, error.message)
            self.assertIn(self.bmc.url, error.message)

    def test_the_clock_and_the_queue_of_jobs(self) -> None:
        self.node.conf.set_override("enable_verify_bmc_clock", True, "redfish")
        self.node.driver.management.verify_bmc_clock(self.node)
        self.node.driver.management.set_bmc_clock(self.node)
        self.node.driver.management.clear_job_queue(self.node)
        invalid = {"target_datetime": "tomorrow"}
        error = self.assertRaises(errors.Invalid, self.node.driver.management.set_bmc_clock, self.node, **invalid)
        self.assertIn("target_datetime", error.message)

    def test_a_wrong_password_is_reported_as_such(self) -> None:
        wrong = self.make_task(redfish_password="wrong")
        error = self.assertRaises(errors.HardwareError, wrong.driver.power.get_power_state, wrong)
        self.assertNotIsInstance(error, errors.HardwareUnreachable)
        for part in (self.bmc.url, "401", "redfish_username", "redfish_password"):
            self.assertIn(part, error.message)
        self.assertNotIn("wrong", error.message)


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
