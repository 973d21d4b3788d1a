"""Keys of driver_info and defaults that nodes of other installations come with: listed, and they do what is said."""

import ssl
import tempfile
from typing import Any, ClassVar

import fixtures

from ingot.common import errors, states
from ingot.drivers.agent import client
from ingot.drivers.images import instance_image
from ingot.drivers.ipmi import base as ipmi
from ingot.drivers.ipmi import session
from ingot.drivers.loading import factory
from tests.unit.drivers import fakes

BMC = {"ipmi_address": "bmc"}
RAMDISK = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
RESCUE = {"rescue_kernel": "http://files/rescue-kernel", "rescue_ramdisk": "http://files/rescue-initrd"}
IMAGE = {"image_source": "http://192.0.2.1/one.raw", "image_checksum": "a" * 64}

LISTED = (
    "deploy_kernel deploy_ramdisk rescue_kernel rescue_ramdisk kernel_append_params force_persistent_boot_device "
    "image_http_proxy image_https_proxy image_no_proxy image_download_source image_pull_secret "
    "deploy_forces_oob_reboot agent_verify_ca external_http_url ramdisk_image_download_source "
    "ipmi_address ipmi_port ipmi_username ipmi_password ipmi_priv_level ipmi_hex_kg_key ipmi_protocol_version "
    "ipmi_cipher_suite ipmi_bridging ipmi_disable_boot_timeout ipmi_force_boot_device "
    "ipmi_target_channel ipmi_target_address ipmi_transit_channel ipmi_transit_address"
).split()


class Composition(fakes.DriverTestCase):
    def test_what_ipmi_nodes_can_have_is_listed(self) -> None:
        hardware = factory.Hardware(fakes.configuration(enabled_hardware_types=["ipmi"]))
        self.assertEqual(set(LISTED), set(hardware.properties("ipmi")))

    def test_raid_and_rescue_are_chosen_not_given(self) -> None:
        hardware = factory.Hardware(fakes.configuration(enabled_hardware_types=["ipmi", "fake-hardware"]))
        for driver, defaults in (("ipmi", ("no-raid", "no-rescue")), ("fake-hardware", ("fake", "fake"))):
            self.assertEqual(defaults, tuple(hardware.default(driver, name) for name in ("raid", "rescue")))

    def test_fake_machines_have_no_power_state_until_one_is_set(self) -> None:
        task = self.task()
        self.assertIsNone(task.driver.power.get_power_state(task))
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual(states.POWER_ON, task.driver.power.get_power_state(task))

    def test_the_inspection_of_fake_machines_leaves_the_properties_alone(self) -> None:
        for properties in ({}, {"cpus": 4}):
            task = self.task(properties=properties)
            task.driver.inspect.inspect_hardware(task)
            self.assertEqual(properties, task.node.properties)


class NetworkBoot(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"service_catalog__endpoint_override": "http://10.0.0.1:6385/"}
    columns: ClassVar[dict[str, Any]] = {"boot_interface": "ipxe"}

    def test_rescues_boot_a_ramdisk_of_their_own_if_there_is_one(self) -> None:
        for info, flow, name in (
            ({**RAMDISK, **RESCUE}, "rescue", "rescue-"),
            ({**RAMDISK, **RESCUE}, "deploy", ""),
            (RAMDISK, "rescue", ""),
        ):
            task = self.task(driver_info=info, flow=flow)
            task.driver.boot.prepare_ramdisk(task, {})
            found = task.node.boot_config["kernel"], task.node.boot_config["initrd"]
            self.assertEqual((f"http://files/{name}kernel", f"http://files/{name}initrd"), found)
        task = self.task(driver_info={**RAMDISK, "rescue_kernel": "a\nboot"})
        task.ports = [fakes.port()]
        self.assertIn("rescue_kernel", self.assertRaises(errors.Invalid, task.driver.boot.validate, task).message)

    def test_how_long_a_boot_device_lasts_can_be_chosen(self) -> None:
        for given, first, last in (
            ("Always", True, True), ("Never", False, False), ("Default", False, True), (True, True, True),
            ("false", False, True),
        ):  # fmt: skip
            task = self.task(driver_info={**RAMDISK, "force_persistent_boot_device": given})
            task.driver.boot.prepare_ramdisk(task, {})
            self.assertIs(first, task.driver.management.get_boot_device(task)["persistent"])
            task.driver.boot.prepare_instance(task)
            self.assertIs(last, task.driver.management.get_boot_device(task)["persistent"])
        task = self.task(driver_info={**RAMDISK, "force_persistent_boot_device": "Sometimes"})
        task.ports = [fakes.port()]
        message = self.assertRaises(errors.Invalid, task.driver.boot.validate, task).message
        for part in ("driver_info.force_persistent_boot_device", "'Sometimes'", "Always, Default, Never"):
            self.assertIn(part, message)


class Agent(fakes.DriverTestCase):
    def build(self, **info: Any) -> dict[str, object]:
        task = self.task(deploy_interface="direct", driver_info=info, instance_info=IMAGE)
        image = instance_image.ReadyImage(IMAGE["image_source"], "raw", "sha256", "a" * 64)
        return instance_image.build_image_info(task, image)

    def test_images_come_through_a_proxy(self) -> None:
        self.assertNotIn("proxies", self.build(image_no_proxy="a"))
        info = self.build(image_http_proxy="http://p:1", image_https_proxy="https://q:2", image_no_proxy="a,.b")
        self.assertEqual({"http": "http://p:1", "https": "https://q:2"}, info["proxies"])
        self.assertEqual("a,.b", info["no_proxy"])
        task = self.task(deploy_interface="direct", driver_info={"image_http_proxy": "p:1"}, instance_info=IMAGE)
        message = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message
        for part in ("driver_info.image_http_proxy", "'p:1'", "http or https"):
            self.assertIn(part, message)

    def test_what_verifies_an_agent_can_be_chosen(self) -> None:
        place = tempfile.gettempdir()
        for given, found in ((None, True), ("True", True), (False, False), ("no", False), (place, place)):
            self.assertEqual(found, client.read_authorities(self.task(driver_info={"agent_verify_ca": given})))
        task = self.task(deploy_interface="direct", driver_info={"agent_verify_ca": "/nowhere/ca"})
        message = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message
        for part in ("driver_info.agent_verify_ca", "/nowhere/ca", "true, false"):
            self.assertIn(part, message)
        for authorities, mode in ((False, ssl.CERT_NONE), (place, ssl.CERT_REQUIRED)):
            context = client.open_pool("https://192.0.2.1:9999", None, authorities).conn_kw["ssl_context"]
            self.assertEqual((mode, bool(authorities)), (context.verify_mode, context.check_hostname))


class IPMI(fakes.DriverTestCase):
    columns: ClassVar[dict[str, Any]] = {"driver": "ipmi", "boot_mode": "bios"}
    options: ClassVar[dict[str, Any]] = {"enabled_hardware_types": ["ipmi"]}

    def start(self, **info: Any) -> tuple[fakes.MemoryTask, list[list[tuple[int, ...]]]]:
        """Return the task of a node, and a list that gets the data of the requests of each call to its BMC."""
        calls: list[list[tuple[int, ...]]] = []

        def call(_address: Any, _timeout: float, *requests: session.Request) -> list[bytes]:
            calls.append([request.data for request in requests])
            return [b""] * len(requests)

        self.useFixture(fixtures.MonkeyPatch("ingot.drivers.ipmi.session.call", call))
        return self.task(driver_info={**BMC, **info}), calls

    def test_whether_the_bmc_is_to_keep_the_boot_device_can_be_chosen(self) -> None:
        for given, sent in ((None, 2), ("true", 2), (False, 1)):
            task, calls = self.start(ipmi_disable_boot_timeout=given)
            task.driver.management.set_boot_device(task, "pxe")
            self.assertEqual([sent], list(map(len, calls)))

    def test_a_boot_device_that_is_lost_is_set_again(self) -> None:
        task, calls = self.start(ipmi_force_boot_device=True)
        management, power = task.driver.management, task.driver.power
        lasting = (0x05, 0xC0, 2 << 2, 0, 0, 0)
        management.set_boot_device(task, "disk", persistent=True)
        management.set_boot_device(task, "pxe")
        calls.clear()
        for target in (states.POWER_ON, states.POWER_OFF, states.POWER_ON, states.REBOOT):
            power.start_power_change(task, target)
        self.assertEqual([False, False, True, True], [lasting in call for call in calls])
        self.assertEqual([(1,), (0,), (1,), (3,)], [call[-1] for call in calls])
        task, calls = self.start()
        task.driver.management.set_boot_device(task, "disk", persistent=True)
        task.driver.power.start_power_change(task, states.POWER_ON)
        self.assertEqual([(1,)], calls[-1])

    def test_options_are_for_nodes_that_say_nothing(self) -> None:
        task, calls = self.start()
        task.conf.set_override("disable_boot_timeout", False, "ipmi")
        task.driver.management.set_boot_device(task, "pxe")
        self.assertEqual([1], list(map(len, calls)))
        for chosen, of_node, expected in (
            ([], None, (17, 3)),
            ([1, 3], None, (3,)),
            ([3, 17], None, (17, 3)),
            ([3], "17", (17,)),
        ):
            task.conf.set_override("cipher_suite_versions", chosen, "ipmi")
            info = {**BMC, "ipmi_cipher_suite": of_node}
            self.assertEqual(expected, ipmi.read_address(info, task.conf).suites)

    def test_where_requests_are_bridged_to(self) -> None:
        target = {"ipmi_target_channel": "6", "ipmi_target_address": "0x72"}
        transit = {"ipmi_transit_channel": 7, "ipmi_transit_address": "130"}
        for kind, keys, expected in (
            ("no", target, ()),
            ("single", target, ((6, 0x72),)),
            ("dual", {**target, **transit}, ((7, 130), (6, 0x72))),
        ):
            self.assertEqual(expected, ipmi.read_address({**BMC, **keys, "ipmi_bridging": kind}).route)
        error = self.assertRaises(
            errors.MissingParameter, ipmi.read_address, {**BMC, **target, "ipmi_bridging": "dual"}
        )
        self.assertIn("ipmi_transit_channel, ipmi_transit_address", error.message)
        for key, bad in (("ipmi_target_channel", 16), ("ipmi_target_address", "0x100"), ("ipmi_target_address", "x")):
            info = {**BMC, **target, "ipmi_bridging": "single", key: bad}
            self.assertIn(f"driver_info.{key}", self.assertRaises(errors.Invalid, ipmi.read_address, info).message)

    def test_what_would_not_be_reached_is_refused(self) -> None:
        for key, good, bad in (
            ("ipmi_protocol_version", (None, "2.0", 2.0), "1.5"),
            ("ipmi_cipher_suite", ("17", 3), "0"),
            ("ipmi_bridging", ("no",), "triple"),
        ):
            for value in good:
                ipmi.read_address({**BMC, key: value})
            error = self.assertRaises(errors.Invalid, ipmi.read_address, {**BMC, key: bad})
            for part in (f"driver_info.{key}", repr(bad), str(good[-1])):
                self.assertIn(part, error.message)
