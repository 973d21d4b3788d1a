"""What is enabled is loaded, composed and refused as specification 004 says."""

import logging
from typing import Any

import fixtures
import testtools

from ingot.common import errors
from ingot.drivers.generic import fake
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.hardware_type import ClassicDriver
from ingot.drivers.interfaces.vendor import VendorInterface
from ingot.drivers.loading import entry_points, factory
from tests.unit.drivers import fakes, plugins
from tests.unit.drivers.plugins import here, with_plugins


class OldDeploy(DeployInterface):
    """Written before there were deploy steps."""

    def deploy(self, task: Any) -> str:
        return "wait call-back"


class ClashingVendor(VendorInterface):
    @base.clean_step(priority=5)
    def one(self, task: Any) -> None:
        """Run first."""

    @base.clean_step(priority=5)
    def other(self, task: Any) -> None:
        """Run second, with the same priority."""


class Machine(GenericHardwareType):
    supported_boot_interfaces = (fake.FakeBoot,)
    supported_deploy_interfaces = (OldDeploy,)
    supported_management_interfaces = (fake.FakeManagement,)
    supported_power_interfaces = (fake.FakePower,)
    supported_vendor_interfaces = (ClashingVendor, fake.FakeVendor)


class Clashing(plugins.FixedFake):
    vendor = ClashingVendor


class Incomplete(ClassicDriver):
    power = fake.FakePower
    management = fake.FakeManagement
    boot = fake.FakeBoot


class Crossed(plugins.FixedFake):
    deploy = fake.FakePower  # type: ignore[assignment]


class FactoryTest(testtools.TestCase):
    def _refused(self, source: Any = entry_points.list_installed, **options: Any) -> str:
        conf = fakes.configuration(**{"enabled_hardware_types": ["fake-hardware"], **options})
        return str(self.assertRaises(errors.ConfigurationError, factory.Hardware, conf, source).message)

    def test_all_that_is_refused_is_in_one_message(self) -> None:
        conf = fakes.configuration(
            enabled_hardware_types=["ipmi", "irmc", "xclarity"],
            enabled_bios_interfaces=["irmc", "no-bios"],
            enabled_power_interfaces=["irmc"],
            default_deploy_interface="autodetect",
        )
        refusal = self.assertRaises(errors.ConfigurationError, factory.Hardware, conf)
        for part in (
            "enabled_hardware_types: 'irmc, xclarity'",
            "enabled_bios_interfaces: 'irmc'",
            "enabled_power_interfaces: 'irmc'",
            "Hardware type ipmi needs at least one of: ipmitool",
            "default_deploy_interface: 'autodetect'",
        ):
            self.assertIn(part, refusal.message)

    def test_what_no_operator_has_written_is_not_logged(self) -> None:
        logger = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        factory.Hardware(fakes.configuration())
        self.assertNotIn("is not loaded", logger.output)
        factory.Hardware(fakes.configuration(enabled_bios_interfaces=["no-bios", "fake"]))
        self.assertIn("enabled_bios_interfaces fake is not loaded", logger.output)

    def test_everything_that_is_installed_can_be_enabled(self) -> None:
        hardware = factory.Hardware(fakes.configuration(enabled_hardware_types=["ipmi", "fake-hardware"]))
        self.assertEqual({"ipmi", "fake-hardware"}, set(hardware.hardware_types))
        defaults = {
            (entry.hardware_type, entry.interface_type): entry.interface_name
            for entry in hardware.list_enabled()
            if entry.default
        }
        self.assertEqual("direct", defaults["ipmi", "deploy"])
        self.assertEqual("ipmitool", defaults["ipmi", "power"])
        self.assertEqual("fake", defaults["fake-hardware", "deploy"])
        self.assertEqual(26, len(defaults))

    def test_an_unknown_name_is_refused_with_the_choices(self) -> None:
        message = self._refused(enabled_power_interfaces=["fake", "magic"])
        self.assertIn("enabled_power_interfaces: 'magic'", message)
        self.assertIn("fake, idrac-redfish, ipmitool", message)

    def test_an_unknown_hardware_type_is_refused(self) -> None:
        self.assertIn("ipmi", self._refused(enabled_hardware_types=["redfisch"]))

    def test_a_type_that_is_gone_is_named_with_what_its_machines_have_instead(self) -> None:
        self.assertIn("irmc have the hardware type redfish here", self._refused(enabled_hardware_types=["irmc"]))

    def test_what_cannot_be_imported_is_refused_with_the_reason(self) -> None:
        source = with_plugins(types_broken="no_such_package.module:Type")
        message = self._refused(source, enabled_hardware_types=["broken"])
        self.assertIn("No module named 'no_such_package'", message)

    def test_what_is_not_a_hardware_type_is_refused(self) -> None:
        source = with_plugins(types_wrong=here(OldDeploy))
        self.assertIn("not a subclass", self._refused(source, enabled_hardware_types=["wrong"]))

    def test_two_packages_with_one_name_are_refused(self) -> None:
        source = with_plugins(power_fake=here(OldDeploy))
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

    def test_the_order_of_preference_is_the_types_and_not_the_options(self) -> None:
        options = {"enabled_hardware_types": ["ipmi"], "enabled_deploy_interfaces": ["ramdisk", "fake", "direct"]}
        hardware = factory.Hardware(fakes.configuration(**options))
        offered = [entry.interface_name for entry in hardware.list_enabled() if entry.interface_type == "deploy"]
        self.assertEqual((["direct", "ramdisk"], "direct"), (offered, hardware.default("ipmi", "deploy")))

    def test_a_default_must_be_enabled(self) -> None:
        message = self._refused(default_deploy_interface="ramdisk", enabled_deploy_interfaces=["fake"])
        self.assertIn("default_deploy_interface: 'ramdisk'", message)
        self.assertIn("Enabled and supported by hardware type fake-hardware: fake.", message)

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

    def test_an_override_for_what_cannot_be_a_step_is_refused(self) -> None:
        for kind in ("clean", "deploy", "verify"):
            name = f"{kind}_step_priority_override"
            for key in ("erase_devices", "disk.erase", "deploy."):
                message = self._refused(**{f"conductor__{name}": {key: 5}})
                self.assertIn(f"[conductor] {name}: '{key}:5'", message)
                self.assertIn("interface.step:priority", message)

    def test_a_core_step_can_only_be_moved_to_0(self) -> None:
        message = self._refused(conductor__deploy_step_priority_override={"deploy.write_image": 75})
        self.assertIn("[conductor] deploy_step_priority_override: 'deploy.write_image:75'", message)
        self.assertIn("can only be 0", message)
        for allowed in ({"deploy.write_image": 0}, {"raid.apply_configuration": 75}):
            conf = fakes.configuration(conductor__deploy_step_priority_override=allowed)
            factory.Hardware(conf)

    def test_a_class_under_two_names_is_one_interface_and_both_names_can_be_used(self) -> None:
        source = with_plugins(power_alias=here(fake.FakePower))
        options = {"enabled_hardware_types": ["fake-hardware"], "enabled_power_interfaces": ["fake", "alias"]}
        hardware = factory.Hardware(fakes.configuration(**options), source)
        self.assertIs(hardware.interface("power", "fake"), hardware.interface("power", "alias"))
        driver, reasons = hardware.compose(fakes.node(power_interface="alias"))
        self.assertEqual((hardware.interface("power", "fake"), {}), (driver.power, reasons))

    def _machine(self, **options: Any) -> factory.Hardware:
        source = with_plugins(
            types_machine=here(Machine), deploy_old=here(OldDeploy), vendor_clash=here(ClashingVendor)
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
        self.assertIsNot(driver, again)
        self.assertRaises(AttributeError, setattr, driver, "remembers", "a node")

    def test_an_interface_that_was_disabled_is_missing_with_a_reason(self) -> None:
        driver, reasons = self.hardware.compose(fakes.node(power_interface="ipmitool"))
        self.assertIsNone(driver.power)
        self.assertEqual(["power"], list(reasons))
        self.assertIn("Enabled and supported are: fake", reasons["power"])

    def test_a_node_of_another_type_has_no_driver(self) -> None:
        driver, reasons = self.hardware.compose(fakes.node(driver="ipmi"))
        self.assertEqual((), driver.all_interfaces)
        self.assertIn("enabled_hardware_types", reasons["power"])


class ClassicTest(testtools.TestCase):
    def _hardware(self, source: Any = plugins.CLASSIC, **options: Any) -> factory.Hardware:
        defaults = {"enabled_hardware_types": ["fake-hardware"], "enabled_drivers": ["fixed"]}
        return factory.Hardware(fakes.configuration(**{**defaults, **options}), source)

    def _refused(self, source: Any, **options: Any) -> str:
        refused = self.assertRaises(errors.ConfigurationError, self._hardware, source, **options)
        return str(refused.message)

    def test_none_is_enabled_unless_named(self) -> None:
        self.assertEqual([], fakes.configuration().enabled_drivers)
        self.assertEqual({}, self._hardware(enabled_drivers=[]).classic_drivers)

    def test_its_nodes_are_composed_of_what_the_code_says(self) -> None:
        driver, reasons = self._hardware().compose(fakes.node(driver="fixed"))
        self.assertEqual(({}, "fixed"), (reasons, driver.name))
        self.assertEqual(("fake", "fake", "no-raid"), (driver.power.name, driver.deploy.name, driver.raid.name))
        self.assertEqual(13, len(driver.all_interfaces))

    def test_what_stands_in_a_node_does_not_change_it(self) -> None:
        hardware = self._hardware()
        driver, _reasons = hardware.compose(fakes.node(driver="fixed", deploy_interface="direct"))
        self.assertIs(hardware.interface("deploy", "fake"), driver.deploy)

    def test_interfaces_are_the_singletons_that_hardware_types_have_too(self) -> None:
        hardware = self._hardware()
        fixed, _reasons = hardware.compose(fakes.node(driver="fixed"))
        dynamic, _reasons = hardware.compose(fakes.node(driver="fake-hardware"))
        self.assertIs(dynamic.power, fixed.power)

    def test_its_interfaces_need_not_be_enabled(self) -> None:
        conf = {"enabled_hardware_types": ["ipmi"], "enabled_power_interfaces": ["ipmitool"]}
        driver, _reasons = self._hardware(**conf).compose(fakes.node(driver="fixed"))
        self.assertEqual("fake", driver.power.name)

    def test_a_conductor_may_have_nothing_else(self) -> None:
        hardware = self._hardware(enabled_hardware_types=[])
        self.assertEqual(({"fixed"}, []), (set(hardware.drivers), hardware.list_enabled()))
        self.assertIn(
            "enabled_hardware_types",
            self._refused(plugins.CLASSIC, enabled_drivers=[], **{"enabled_hardware_types": []}),
        )

    def test_its_properties_are_those_of_its_interfaces(self) -> None:
        self.assertEqual({"fake_power_fault"}, set(self._hardware().properties("fixed")))
        self.assertIn("ipmi_address", self._hardware(enabled_hardware_types=["ipmi"]).properties("ipmi"))
        self.assertRaises(errors.NotFound, self._hardware().properties, "moon")

    def test_a_name_that_a_hardware_type_has_too_is_refused(self) -> None:
        source = with_plugins(**{"classic_fake-hardware": here(plugins.FixedFake)})
        message = self._refused(source, enabled_drivers=["fake-hardware"])
        self.assertIn("enabled_drivers: 'fake-hardware'", message)
        self.assertIn("Classic driver fake-hardware and hardware type fake-hardware of enabled_hardware_types", message)

    def test_what_cannot_be_loaded_is_refused_with_the_reason(self) -> None:
        for target, expected in (
            ("no_such_package:Driver", "No module named 'no_such_package'"),
            (here(Machine), "not a subclass of ClassicDriver"),
            (here(Incomplete), "Incomplete.deploy must be a class of deploy interfaces"),
            (here(Crossed), "Crossed.deploy must be a class of deploy interfaces"),
        ):
            message = self._refused(with_plugins(classic_fixed=target))
            self.assertIn("enabled_drivers: 'fixed'", message)
            self.assertIn(expected, message)
        message = self._refused(plugins.CLASSIC, enabled_drivers=["moon"])
        self.assertRegex(message, "enabled_drivers: 'moon'. Installed are: .*fixed")

    def test_clean_steps_of_one_priority_are_refused(self) -> None:
        source = with_plugins(classic_fixed=here(Clashing))
        self.assertIn("one, other of vendor interface ClashingVendor", self._refused(source))
        self.assertIn(
            "have the same priority 7",
            self._refused(source, conductor__clean_step_priority_override={"vendor.one": 7, "vendor.other": 7}),
        )
        self._hardware(source, conductor__clean_step_priority_override={"vendor.one": 6})
