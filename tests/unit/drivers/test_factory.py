"""What is enabled is loaded, composed and refused as specification 004 says."""

import importlib.metadata
from typing import Any

import testtools

from ingot.common import errors
from ingot.drivers import entry_points, factory, steps
from ingot.drivers.hardware_type import GenericHardwareType
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.vendor import VendorInterface
from ingot.drivers.modules import fake
from tests.unit.drivers import fakes

HERE = __name__


class OldDeploy(DeployInterface):
    """Written before there were deploy steps."""

    def deploy(self, task: Any) -> str:
        return "wait call-back"


class ClashingVendor(VendorInterface):
    @steps.clean_step(priority=5)
    def one(self, task: Any) -> None:
        """First."""

    @steps.clean_step(priority=5)
    def other(self, task: Any) -> None:
        """Second, with the same priority."""


class Machine(GenericHardwareType):
    supported_boot_interfaces = (fake.FakeBoot,)
    supported_deploy_interfaces = (OldDeploy,)
    supported_management_interfaces = (fake.FakeManagement,)
    supported_power_interfaces = (fake.FakePower,)
    supported_vendor_interfaces = (ClashingVendor, fake.FakeVendor)


def with_plugins(**plugins: str) -> Any:
    """Entry points of the product and, as kind_name=target, some of a test's package."""

    def source(group: str) -> list[importlib.metadata.EntryPoint]:
        extra = [
            importlib.metadata.EntryPoint(name.partition("_")[2], target, group)
            for name, target in plugins.items()
            if group.endswith("." + name.partition("_")[0])
        ]
        return [*entry_points.installed(group), *extra]

    return source


class FactoryTest(testtools.TestCase):
    def _refused(self, source: Any = entry_points.installed, **options: Any) -> str:
        conf = fakes.configuration(**{"enabled_hardware_types": ["fake-hardware"], **options})
        return str(self.assertRaises(errors.ConfigurationError, factory.Hardware, conf, source).message)

    def test_everything_that_is_installed_can_be_enabled(self) -> None:
        hardware = factory.Hardware(fakes.configuration())
        self.assertEqual({"ipmi", "fake-hardware"}, set(hardware.hardware_types))
        defaults = {
            (entry.hardware_type, entry.interface_type): entry.interface_name
            for entry in hardware.enabled()
            if entry.default
        }
        self.assertEqual("direct", defaults["ipmi", "deploy"])
        self.assertEqual("ipmitool", defaults["ipmi", "power"])
        self.assertEqual("fake", defaults["fake-hardware", "deploy"])
        self.assertEqual(26, len(defaults))

    def test_an_unknown_name_is_refused_with_the_choices(self) -> None:
        message = self._refused(enabled_power_interfaces=["fake", "magic"])
        self.assertIn("enabled_power_interfaces: 'magic'", message)
        self.assertIn("fake, ipmitool", message)

    def test_an_unknown_hardware_type_is_refused(self) -> None:
        self.assertIn("ipmi", self._refused(enabled_hardware_types=["redfisch"]))

    def test_what_cannot_be_imported_is_refused_with_the_reason(self) -> None:
        source = with_plugins(types_broken="no_such_package.module:Type")
        message = self._refused(source, enabled_hardware_types=["broken"])
        self.assertIn("No module named 'no_such_package'", message)

    def test_what_is_not_a_hardware_type_is_refused(self) -> None:
        source = with_plugins(types_wrong=f"{HERE}:OldDeploy")
        self.assertIn("not a subclass", self._refused(source, enabled_hardware_types=["wrong"]))

    def test_two_packages_with_one_name_are_refused(self) -> None:
        source = with_plugins(power_fake=f"{HERE}:Another")
        self.assertIn("Two installed packages", self._refused(source))

    def test_an_interface_that_no_type_supports_is_not_even_imported(self) -> None:
        source = with_plugins(power_foreign="no_such_package:Power")
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"], enabled_power_interfaces=["foreign", "fake"]
        )
        hardware = factory.Hardware(conf, source)
        self.assertRaises(errors.InterfaceNotFound, hardware.interface, "power", "foreign")

    def test_a_type_without_an_enabled_interface_is_refused(self) -> None:
        message = self._refused(enabled_power_interfaces=["ipmitool"])
        self.assertIn("fake-hardware needs at least one of: fake", message)

    def test_an_explicit_default_must_be_supported(self) -> None:
        conf = fakes.configuration(enabled_hardware_types=["fake-hardware"], default_deploy_interface="direct")
        self.assertEqual("direct", factory.Hardware(conf).default("fake-hardware", "deploy"))
        self.assertIn("default_power_interface: 'ipmitool'", self._refused(default_power_interface="ipmitool"))

    def test_an_interface_without_deploy_steps_runs_as_one(self) -> None:
        hardware = self._machine(enabled_vendor_interfaces=["fake"])
        old = hardware.interface("deploy", "old")
        self.assertEqual([("deploy", 100)], [(step["step"], step["priority"]) for step in old.declared_steps("deploy")])
        self.assertEqual("wait call-back", old.execute_deploy_step(None, {"step": "deploy"}))
        self.assertFalse(old.has_decomposed_deploy_steps())
        self.assertEqual("OldDeploy", type(old).__name__)

    def test_clean_steps_of_one_priority_are_refused_until_the_operator_orders_them(self) -> None:
        error = self.assertRaises(errors.ConfigurationError, self._machine, enabled_vendor_interfaces=["clash"])
        self.assertIn("one, other of vendor interface clash have the same priority 5", error.message)
        self._machine(enabled_vendor_interfaces=["clash"], conductor__clean_step_priority_override={"vendor.one": 6})

    def _machine(self, **options: Any) -> factory.Hardware:
        source = with_plugins(
            types_machine=f"{HERE}:Machine", deploy_old=f"{HERE}:OldDeploy", vendor_clash=f"{HERE}:ClashingVendor"
        )
        conf = fakes.configuration(enabled_hardware_types=["machine"], enabled_deploy_interfaces=["old"], **options)
        return factory.Hardware(conf, source)


class ComposeTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.hardware = factory.Hardware(fakes.configuration(enabled_hardware_types=["fake-hardware"]))

    def test_fields_choose_and_defaults_fill_in(self) -> None:
        driver, reasons = self.hardware.compose(fakes.node(deploy_interface="ramdisk"))
        self.assertEqual({}, reasons)
        self.assertEqual(("ramdisk", "fake"), (driver.deploy.name, driver.power.name))
        again, _reasons = self.hardware.compose(fakes.node())
        self.assertIs(driver.power, again.power)

    def test_an_interface_that_was_disabled_is_missing_with_a_reason(self) -> None:
        driver, reasons = self.hardware.compose(fakes.node(power_interface="ipmitool"))
        self.assertIsNone(driver.power)
        self.assertEqual(["power"], list(reasons))
        self.assertIn("Enabled and supported are: fake", reasons["power"])

    def test_a_node_of_another_type_has_no_driver(self) -> None:
        driver, reasons = self.hardware.compose(fakes.node(driver="ipmi"))
        self.assertEqual([], driver.all_interfaces())
        self.assertIn("enabled_hardware_types", reasons["power"])
