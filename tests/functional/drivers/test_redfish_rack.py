"""Redfish against the rack's own BMCs: settings that take a reboot, events, and what sushy-tools' emulator lacks."""

import time
from typing import Any, ClassVar

from ingot.common import errors, states
from ingot.drivers.interfaces import power_control
from ingot.drivers.interfaces.vendor import OF_NODE, VendorCall, call_method
from ingot.drivers.redfish import connection
from tests import patience
from tests.functional.drivers.base import DriverRackTest, RackTask
from tests.functional.rack.base import RackTest
from tests.unit.drivers import fakes

SETTINGS = [
    {"name": "ProcTurboMode", "value": "Disabled"},
    {"name": "ProcHyperthreading", "value": "false"},
    {"name": "BootRetryCount", "value": "5"},
]


class RedfishRackCase(RackTest):
    """The first machine of a rack as a node of type redfish."""

    settings: ClassVar[dict[str, Any]] = {"redfish_base_port": 0, "redfish_task_time": 0.1}
    driver: ClassVar[str] = "redfish"

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(connection.log_out)
        description, machine = self.rack.description, self.rack.machines[0]
        conf = fakes.configuration(
            enabled_hardware_types=[self.driver],
            api__public_endpoint=self.service.url,
            conductor__power_state_change_timeout=20,
            redfish__bios_settings_timeout=20,
            redfish__read_timeout=20,
            default_inspect_interface="redfish",
        )
        info = {
            "redfish_address": machine["redfish"]["address"],
            "redfish_system_id": machine["redfish"]["system"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": description["redfish_ca_file"],
        }
        self.task = RackTask(conf, fakes.node(driver=self.driver, driver_info=info))
        self.task.service = self.service
        self.assertEqual({}, self.task.missing)

    def step(self, interface: str, name: str, **args: Any) -> None:
        """Run a clean step to its end."""
        link = getattr(self.task.driver, interface)
        DriverRackTest.finish(
            self, lambda task: link.execute_clean_step(task, {"interface": interface, "step": name, "args": args})
        )

    def values(self) -> dict[str, Any]:
        """Return the BIOS settings that are kept with the node."""
        return {one["name"]: one["value"] for one in self.task.bios}

    def power(self) -> Any:
        return self.rack.control.machine(self.name)["power"]

    def call(self, name: str, http_method: str, **arguments: Any) -> Any:
        """Call a method of the vendor interface."""
        return call_method(self.task.driver.vendor, OF_NODE, self.task, VendorCall(name, http_method, arguments))


class RedfishRackTest(RedfishRackCase):
    # Power and management

    def test_power(self) -> None:
        for target, seen in ((states.POWER_ON, "on"), (states.REBOOT, "on"), (states.SOFT_POWER_OFF, "off")):
            DriverRackTest.finish(self, lambda task, target=target: power_control.change(task, target))
            self.assertIn(f"is {seen}", self.ipmitool("power", "status").stdout)
            if seen == "on":  # what boots does not notice the power button
                self.rack.control.wait_for_state(self.name, "agent")

    def test_what_the_bmc_does_beside_the_power(self) -> None:
        management = self.task.driver.management
        for device in ("pxe", "disk", "cdrom", "bios", "uefihttp"):
            for persistent in (True, False):
                management.set_boot_device(self.task, device, persistent)
                expected = {"boot_device": device, "persistent": persistent}
                self.assertEqual(expected, management.get_boot_device(self.task))
        DriverRackTest.finish(self, power_control.power_on)
        management.inject_nmi(self.task)
        self.assertTrue([line for line in self.rack.control.log(self.name) if "non-maskable interrupt" in line])
        self.step("management", "set_bmc_clock")
        self.step("management", "clear_job_queue")
        self.step("management", "reset_secure_boot_keys_to_default")
        self.step("management", "clear_secure_boot_keys")
        for light in management.get_supported_indicators(self.task):
            management.set_indicator_state(self.task, light, "on")
            self.assertEqual("on", management.get_indicator_state(self.task, light))

    def test_a_bmc_that_restarts_comes_back(self) -> None:
        self.step("management", "reset_bmc")
        DriverRackTest.finish(self, power_control.power_on)

    def test_a_change_of_power_survives_what_passes(self) -> None:
        for fault, value, times in (
            ("redfish_busy", {"retry_after": 1}, 2),
            ("redfish_error", {"status": 500}, 2),
            ("redfish_answer_lost", {"method": "POST"}, 1),
            ("redfish_sessions_lost", None, 1),
        ):
            for target in (states.POWER_ON, states.POWER_OFF):
                self.rack.control.order_fault(self.name, fault, value, times)
                DriverRackTest.finish(self, lambda task, target=target: power_control.change(task, target))
                self.assertEqual(target, self.task.driver.power.get_power_state(self.task), fault)
                self.rack.control.clear_faults(self.name)

    def test_a_bmc_that_says_nothing_or_drips_is_unreachable_in_time(self) -> None:
        self.task.conf.set_override("read_timeout", 2, "redfish")
        for fault, value in (
            ("redfish_silent", None),
            ("redfish_drips", {"seconds": 0.2}),
            ("redfish_port_closed", None),
        ):
            self.rack.control.order_fault(self.name, fault, value)
            began = time.monotonic()
            power = self.task.driver.power
            error = self.assertRaises(errors.HardwareUnreachable, power.get_power_state, self.task)
            self.assertLess(time.monotonic() - began, 2 + patience.seconds(5))
            self.assertIn(power.bmc(self.task), error.message)
            self.rack.control.clear_faults(self.name)

    # Inspection

    def test_the_bmc_tells_what_the_machine_is_made_of(self) -> None:
        task, machine = self.task, self.rack.machines[0]
        task.driver.inspect.inspect_hardware(task)
        properties, (found, _) = task.node.properties, task.found
        self.assertEqual(("x86_64", machine["memory_mb"]), (properties["cpu_arch"], properties["memory_mb"]))
        self.assertEqual(machine["macs"], [card["mac_address"] for card in found["interfaces"]])
        self.assertEqual({256 * 1024**2}, {disk["size"] for disk in found["disks"]})
        self.assertEqual(self.name, found["system_vendor"]["serial_number"])
        self.assertIn(found["boot"]["current_boot_mode"], ("uefi", "bios"))

    # BIOS

    def test_settings_are_read_with_what_may_be_written(self) -> None:
        self.task.driver.bios.cache_bios_settings(self.task)
        rows = {one["name"]: one for one in self.task.bios}
        self.assertEqual(
            ("true", "Boolean"), tuple(rows["ProcHyperthreading"][key] for key in ("value", "attribute_type"))
        )
        self.assertEqual(["Enabled", "Disabled"], rows["ProcTurboMode"]["allowable_values"])
        self.assertEqual(
            (0, 10, False), tuple(rows["BootRetryCount"][key] for key in ("lower_bound", "upper_bound", "read_only"))
        )
        self.assertIs(True, rows["SerialNumber"]["read_only"])

    def test_settings_are_set_by_a_reboot_and_set_back(self) -> None:
        self.step("bios", "apply_configuration", settings=SETTINGS)
        found = self.values()
        self.assertEqual([one["value"] for one in SETTINGS], [found[one["name"]] for one in SETTINGS])
        self.assertIn("is off", self.ipmitool("power", "status").stdout)
        boots = len(self.rack.control.log(self.name))
        self.step("bios", "apply_configuration", settings=SETTINGS)
        self.assertEqual(boots, len(self.rack.control.log(self.name)), "nothing differs: no reboot")
        self.step("bios", "factory_reset")
        self.assertEqual(("Enabled", "true", "3"), tuple(self.values()[one["name"]] for one in SETTINGS))

    def test_settings_that_the_machine_would_refuse_are_named_all_at_once(self) -> None:
        settings = [
            {"name": "ProcTurboMode", "value": "Sometimes"},
            {"name": "BootRetryCount", "value": 11},
            {"name": "SerialNumber", "value": "x"},
            {"name": "Sriov", "value": "maybe"},
            {"name": "AssetText", "value": "x" * 33},
            {"name": "Nothing", "value": 1},
        ]
        error = self.assertRaises(errors.Invalid, self.step, "bios", "apply_configuration", settings=settings)
        for part in (
            "Enabled, Disabled",
            "0 to 10",
            "only be read",
            "true or false",
            "32 characters",
            "no such setting",
        ):
            self.assertIn(part, error.message)
        for wrong in ([], {}, [{"name": "x"}]):
            self.assertRaises(errors.Invalid, self.step, "bios", "apply_configuration", settings=wrong)

    def test_settings_that_are_not_taken_over_fail_the_step(self) -> None:
        self.task.conf.set_override("bios_settings_timeout", 1, "redfish")
        bios = self.task.driver.bios
        self.task.memory["requested"], self.task.memory["was_off"] = {"Sriov": "never"}, False
        error = self.assertRaises(
            errors.StepFailed, DriverRackTest.finish, self, lambda task: bios._await(task, {"Sriov": "never"})
        )
        for part in ("Sriov", "bios_settings_timeout"):
            self.assertIn(part, error.message)

    # Vendor methods

    def test_subscriptions(self) -> None:
        made = self.call("create_subscription", "POST", Destination="https://192.0.2.1/events", Context="mine")
        self.assertEqual(
            ("https://192.0.2.1/events", "mine", "Redfish"),
            tuple(made[key] for key in ("Destination", "Context", "Protocol")),
        )
        self.assertEqual(made, self.call("get_subscription", "GET", id=made["Id"]))
        self.assertEqual(1, len(self.call("get_all_subscriptions", "GET")["Members"]))
        self.call("delete_subscription", "DELETE", id=made["Id"])
        self.assertEqual([], self.call("get_all_subscriptions", "GET")["Members"])
        for arguments in ({}, {"Destination": "nowhere"}, {"Destination": "http://x", "Protocol": "smoke"}):
            self.assertRaises(errors.Invalid, self.call, "create_subscription", "POST", **arguments)

    def test_media_are_ejected(self) -> None:
        management = self.task.driver.management
        management.attach_virtual_media(self.task, "cdrom", f"{self.service.url}/kernel", None)
        self.call("eject_vmedia", "POST", boot_device="cdrom")
        self.assertEqual({False}, {one["inserted"] for one in management.get_virtual_media(self.task)})
        error = self.assertRaises(errors.Invalid, self.call, "eject_vmedia", "POST", boot_device="tape")
        self.assertIn("cdrom, floppy, disk", error.message)


class GenericTest(RedfishRackCase):
    """What users do most, with the habits of one vendor's BMC; each subclass has another."""

    vendor = "generic"
    cd_drives = 1

    def setUp(self) -> None:
        self.settings = {**self.settings, "redfish_vendor": self.vendor}  # type: ignore[misc]
        super().setUp()

    def test_its_habits_are_known(self) -> None:
        task, management = self.task, self.task.driver.management
        for device, persistent in (("pxe", False), ("cdrom", True), ("disk", True)):
            management.set_boot_device(task, device, persistent)
            expected = {"boot_device": device, "persistent": persistent}
            self.assertEqual(expected, management.get_boot_device(task))
        for _again in range(2):
            management.attach_virtual_media(task, "cdrom", f"{self.service.url}/kernel", None)
        management.attach_virtual_media(task, "cdrom", f"{self.service.url}/initrd", None)
        images = [one["image"] for one in management.get_virtual_media(task) if one["inserted"]]
        both = [f"{self.service.url}/{name}" for name in ("initrd", "kernel")]
        self.assertEqual(both[: self.cd_drives], sorted(images))
        for _again in range(2):
            management.detach_virtual_media(task, ["cdrom", "floppy", "disk"])
        self.assertEqual({False}, {bool(one["inserted"]) for one in management.get_virtual_media(task)})
        for target in (states.POWER_ON, states.REBOOT, states.POWER_OFF):
            for _again in range(2):
                task.driver.power.start_power_change(task, target)
            DriverRackTest.finish(self, lambda task, target=target: power_control.change(task, target))
        self.step("bios", "apply_configuration", settings=SETTINGS)
        self.assertEqual("Disabled", self.values()["ProcTurboMode"])
        task.driver.inspect.inspect_hardware(task)
        self.assertEqual("x86_64", task.node.properties["cpu_arch"])


class HpeTest(GenericTest):
    vendor = "ilo"


class DellTest(GenericTest):
    vendor = "dell"


class SupermicroTest(GenericTest):
    vendor = "supermicro"


class LenovoTest(GenericTest):
    vendor = "lenovo"
    cd_drives = 2


class CiscoTest(GenericTest):
    vendor = "cisco"


class NvidiaTest(GenericTest):
    vendor = "nvidia"
    cd_drives = 2
