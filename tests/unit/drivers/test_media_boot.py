"""What the conductor notes for a boot without a network: checked before, and given to the BMC as a link."""

import base64
import gzip
import json
from typing import Any, ClassVar
from unittest import mock

from ingot.common import errors
from ingot.drivers.images import media
from tests.unit.drivers import fakes

FILES = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/ramdisk"}
BMC = {"redfish_address": "https://bmc", "redfish_system_id": "/redfish/v1/Systems/1"}


class MediaBoot(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {
        "enabled_hardware_types": ["redfish"],
        "service_catalog__endpoint_override": "http://10.0.0.1:6385/",
    }

    def boots(self, info: dict[str, Any] | None = None, **columns: Any) -> fakes.MemoryTask:
        given = {"driver": "redfish", "boot_interface": "redfish-virtual-media", **columns}
        return self.task(**given, driver_info={**BMC, **(FILES if info is None else info)})

    def refused(self, info: dict[str, Any] | None = None, **columns: Any) -> str:
        task = self.boots(info, **columns)
        return self.assertRaises(errors.Invalid, task.driver.boot.validate, task).message

    def test_a_node_needs_files_and_uefi_but_no_port(self) -> None:
        for interface in ("redfish-virtual-media", "redfish-https"):
            task = self.boots(boot_interface=interface)
            task.driver.boot.validate(task)
        self.assertIn("deploy_kernel and deploy_ramdisk", self.refused({}))
        self.assertIn("deploy_iso", self.refused(properties={"capabilities": "boot_mode:bios"}))
        task = self.boots({"deploy_iso": "http://files/agent.iso"}, properties={"capabilities": "boot_mode:bios"})
        task.driver.boot.validate(task)

    def test_what_cannot_be_used_is_named(self) -> None:
        for key, value in (
            ("external_http_url", "api"),
            ("external_http_url", "http://[api"),
            ("ramdisk_image_download_source", "swift"),
            ("deploy_iso", "agent.iso"),
            ("rescue_iso", "http://files/a b"),
            ("bootloader", "esp.img"),
            ("config_via_removable", "perhaps"),
            ("vmedia_transport_protocol", "NFS"),
            ("force_persistent_boot_device", "maybe"),
        ):
            self.assertIn(key, self.refused({**FILES, key: value}), key)
        self.assertIn("boot_iso", self.refused(instance_info={"boot_iso": 7}))

    def test_a_medium_has_a_link_of_its_own_until_the_next(self) -> None:
        task = self.boots()
        own = media.build(task, "http://files/kernel", "http://files/ramdisk", ["a=b", "c"], ["kernel"])
        first, second = media.offer(task, "ramdisk", own), media.offer(task, "ramdisk", own)
        self.assertNotEqual(first, second)
        config = task.node.boot_config["media"]
        self.assertEqual(f"http://10.0.0.1:6385/boot/media/{task.node.uuid}/{config['ticket']}/boot.iso", second)
        self.assertEqual(("a=b c", "x86_64", ["kernel"]), tuple(
            config[key] for key in ("arguments", "architecture", "of_user")))  # fmt: skip
        self.assertEqual(2, task.saved, "a BMC may ask at once")

    def test_kernel_parameters_are_the_nodes_or_the_options(self) -> None:
        for own, expected in (({}, "quiet"), ({"kernel_append_params": "debug"}, "debug")):
            task = self.boots({**FILES, **own})
            task.conf.set_override("kernel_append_params", "quiet", group="redfish")
            found = task.driver.boot._describe_ramdisk(task, {})["arguments"].split()
            self.assertEqual([expected], [one for one in found if one in ("quiet", "debug")])

    def test_agents_outside_call_another_address(self) -> None:
        task = self.boots()
        task.conf.set_override("external_callback_url", "https://api.example.org/", group="deploy")
        given = {
            "ipa-inspection-callback-url": "http://10.0.0.1:6385/v1/continue_inspection?node_uuid=1",
            "other": "http://10.0.0.1:63850/x",
        }
        found = task.driver.boot._describe_ramdisk(task, given)["arguments"].split()
        for word in (
            *("ipa-api-url=https://api.example.org", "other=http://10.0.0.1:63850/x"),
            "ipa-inspection-callback-url=https://api.example.org/v1/continue_inspection?node_uuid=1",
        ):
            self.assertIn(word, found)

    def test_an_inspection_asks_for_addresses(self) -> None:
        for option, flow, expected in ((True, "inspect", True), (True, "deploy", None), (False, "inspect", None)):
            task = self.boots(flow=flow)
            task.conf.set_override("force_dhcp", option, group="inspector")
            with mock.patch.object(task.driver.boot, "_give"):
                task.driver.boot.prepare_ramdisk(task, {})
            self.assertIs(expected, task.node.boot_config["media"].get("without_network_data"))

    def test_parameters_that_its_loader_would_change_are_refused(self) -> None:
        for own in ("a='b'", "a=\\b", 'a="b'):
            task = self.boots({**FILES, "kernel_append_params": own})
            refused = self.assertRaises(errors.Invalid, task.driver.boot._describe_ramdisk, task, {})
            self.assertIn("kernel_append_params", str(refused))

    def test_where_bmcs_reach_the_api_is_the_nodes_the_options_or_the_agents_address(self) -> None:
        task = self.boots({**FILES, "external_http_url": "https://node/"})
        task.conf.set_override("external_http_url", "http://option:80/api/", group="deploy")
        own = media.build(task, "http://files/kernel", "http://files/ramdisk", [], [])
        self.assertTrue(media.offer(task, "ramdisk", own).startswith("https://node/boot/media/"))
        task.set(driver_info=FILES)
        self.assertTrue(media.offer(task, "ramdisk", own).startswith("http://option:80/api/boot/media/"))

    def test_finished_images_are_passed_on_unless_bmcs_are_to_fetch_them(self) -> None:
        image = "http://files/live.iso"
        for source, is_direct in ((None, False), ("local", False), ("http", True)):
            task = self.boots({**FILES, "ramdisk_image_download_source": source})
            self.assertIs(is_direct, media.offer(task, "instance", {"image": image}) == image, source)
        self.assertIn("/boot/media/", media.offer(task, "instance", {"image": "file:///srv/live.iso"}))

    def test_the_loader_is_the_nodes_or_that_of_its_architecture(self) -> None:
        task = self.boots(properties={"cpu_arch": "arm64"})
        self.assertEqual((None, False), media.find_bootloader(task))
        task.conf.set_override("bootloader", "http://files/any.img", group="deploy")
        self.assertEqual(("http://files/any.img", False), media.find_bootloader(task))
        task.conf.set_override("bootloader_by_arch", {"aarch64": "http://files/arm.img"}, group="deploy")
        self.assertEqual(("http://files/arm.img", False), media.find_bootloader(task))
        task.set(driver_info={**FILES, "bootloader": "http://files/own.img"})
        self.assertEqual(("http://files/own.img", True), media.find_bootloader(task))

    def test_a_rescue_may_have_files_of_its_own(self) -> None:
        rescue = {"rescue_kernel": "http://files/own-kernel", "rescue_ramdisk": "http://files/own-ramdisk"}
        isos = {"deploy_iso": "http://files/agent.iso", "rescue_iso": "http://files/own.iso"}
        for flow, info, expected in (
            ("deploy", {**FILES, **rescue}, FILES["deploy_kernel"]),
            ("rescue", {**FILES, **rescue}, rescue["rescue_kernel"]),
            ("rescue", FILES, FILES["deploy_kernel"]),
            ("deploy", isos, isos["deploy_iso"]),
            ("rescue", isos, isos["rescue_iso"]),
            ("rescue", {"deploy_iso": isos["deploy_iso"]}, isos["deploy_iso"]),
        ):
            task = self.boots(info, flow=flow)
            found = task.driver.boot._describe_ramdisk(task, {})
            self.assertEqual(expected, found.get("image") or found["kernel"], (flow, info))

    def test_the_agent_has_its_token_from_what_it_is_booted_from(self) -> None:
        iso = {"deploy_iso": "http://files/agent.iso"}
        for info, expected in ((FILES, True), (iso, False), ({**iso, "config_via_removable": "true"}, True)):
            task = self.boots(info)
            self.assertIs(expected, task.driver.boot.brings_token(task), info)
        self.assertFalse((task := self.boots(boot_interface="ipxe")).driver.boot.brings_token(task))

    def test_the_config_drive_of_a_live_image_is_stored_as_it_is_sent(self) -> None:
        task = self.boots(deploy_interface="custom-agent", instance_info={"boot_iso": "http://files/live.iso"})
        task.drive = json.dumps({"meta_data": {"name": "live"}})  # as steps of that interface take it
        with mock.patch.object(task.driver.boot, "_boot") as booted:
            task.driver.boot.prepare_instance(task)
        self.assertEqual("configdrive", booted.call_args.args[2]["second"])
        self.assertIn(b'"name": "live"', gzip.decompress(base64.b64decode(task.drive)))

    def test_a_live_image_needs_a_boot_interface_that_boots_images(self) -> None:
        info = {"boot_iso": "http://files/live.iso"}
        task = self.boots(deploy_interface="ramdisk", instance_info=info)
        task.driver.deploy.validate(task)
        task = self.boots(deploy_interface="ramdisk", instance_info=info, boot_interface="pxe")
        task.ports = [fakes.port()]
        refused = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task)
        self.assertIn("redfish-virtual-media", refused.message)
