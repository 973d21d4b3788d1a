"""The boot interfaces pxe and petitboot: what their loaders can fetch, and what they would misread."""

from typing import Any, ClassVar

from ingot.common import errors
from ingot.db import models
from tests.unit.drivers import fakes

RAMDISK = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files:8080/initrd?v=1"}


class _LoaderCase(fakes.DriverTestCase):
    def check(self, **columns: Any) -> None:
        task = self.prepared(**columns)
        task.driver.boot.validate(task)
        task.driver.boot.prepare_ramdisk(task, {})

    def prepared(self, **columns: Any) -> fakes.MemoryTask:
        task = self.task(**columns)
        task.ports = [fakes.port()]
        return task

    def refuse(self, **columns: Any) -> str:
        return str(self.assertRaises(errors.Invalid, self.check, **columns).message)


class PXETest(_LoaderCase):
    options: ClassVar[dict[str, Any]] = {
        "service_catalog__endpoint_override": "https://10.0.0.1:6385/",
        "enabled_boot_interfaces": ["pxe", "petitboot", "fake"],
        "enabled_storage_interfaces": ["noop", "external"],
        "pxe__kernel_append_params": "quiet",
    }
    columns: ClassVar[dict[str, Any]] = {"boot_interface": "pxe", "driver_info": RAMDISK}

    def test_the_boot_is_noted_as_that_of_ipxe(self) -> None:
        task = self.prepared()
        task.driver.boot.validate(task)
        task.driver.boot.prepare_ramdisk(task, {"ipa-debug": "1"})
        config = task.node.boot_config
        self.assertEqual(("ramdisk", "http://files/kernel"), (config["target"], config["kernel"]))
        self.assertEqual(
            "quiet ipa-api-url=https://10.0.0.1:6385 ipa-debug=1 BOOTIF=01-${mac:hexhyp}", config["kernel_args"]
        )
        self.assertEqual({"boot_device": "pxe", "persistent": False}, task.driver.management.get_boot_device(task))

    def test_addresses_that_grub_has_a_driver_for(self) -> None:
        self.check(driver_info={**RAMDISK, "deploy_kernel": "tftp://10.0.0.1/kernel"})
        for url in ("https://files/kernel", "http://files", "http://u:p@files/k", "http://files/a(b)", "kernel"):
            message = self.refuse(driver_info={**RAMDISK, "deploy_kernel": url})
            self.assertIn("deploy_kernel", message)
            self.assertIn("http or tftp", message)
        self.assertIn("http_root", self.refuse(driver_info={**RAMDISK, "deploy_kernel": "file:///k"}))

    def test_glance_needs_an_api_that_grub_reaches(self) -> None:
        image = "6f6fd6a5-4f6a-4b5c-9d3a-2a9d0a1b2c3d"
        message = self.refuse(driver_info={**RAMDISK, "deploy_ramdisk": image})
        self.assertIn("deploy_ramdisk", message)
        self.assertIn("https://10.0.0.1:6385", message)

    def test_arguments_that_grub_would_change(self) -> None:
        for text in ("a='b'", "a=\\x41", 'a="b c'):
            message = self.refuse(driver_info={**RAMDISK, "kernel_append_params": text})
            self.assertIn("kernel_args", message)
        self.check(driver_info={**RAMDISK, "kernel_append_params": 'a="b c" || $d'})

    def test_volumes_need_ipxe(self) -> None:
        task = self.prepared(storage_interface="external")
        task.volume_targets = [models.VolumeTarget(boot_index=0)]
        error = self.assertRaises(errors.Invalid, task.driver.boot.validate, task)
        self.assertIn("ipxe", error.message)


class PetitbootTest(_LoaderCase):
    options = PXETest.options
    columns: ClassVar[dict[str, Any]] = {"boot_interface": "petitboot", "driver_info": RAMDISK}

    def test_it_fetches_by_more_ways(self) -> None:
        self.check(driver_info={**RAMDISK, "deploy_kernel": "https://files/kernel"})
        self.assertIn("Petitboot", self.refuse(driver_info={**RAMDISK, "deploy_kernel": "nfs://files/kernel"}))

    def test_arguments_name_no_other_ramdisk(self) -> None:
        message = self.refuse(driver_info={**RAMDISK, "kernel_append_params": "a INITRD=x"})
        self.assertIn("initrd=", message)


class IPXEImageTest(_LoaderCase):
    """Images that users have made: ``boot_iso``."""

    options = PXETest.options | {"enabled_boot_interfaces": ["ipxe", "pxe"], "enabled_deploy_interfaces": ["ramdisk"]}
    columns: ClassVar[dict[str, Any]] = {
        "boot_interface": "ipxe",
        "deploy_interface": "ramdisk",
        "driver_info": RAMDISK,
        "instance_info": {"boot_iso": "http://files/live.iso"},
    }

    def test_the_api_passes_the_image_on_until_the_node_is_undeployed(self) -> None:
        task = self.prepared()
        task.driver.deploy.validate(task)
        task.driver.boot.prepare_instance(task)
        config = task.node.boot_config
        self.assertEqual(("image", "http://files/live.iso"), (config["target"], config["media"]["image"]))
        expected = f"https://10.0.0.1:6385/boot/media/{task.node.uuid}/{config['media']['ticket']}/boot.iso"
        self.assertEqual(expected, config["image"])
        self.assertEqual({"boot_device": "pxe", "persistent": True}, task.driver.management.get_boot_device(task))
        task.driver.boot.clean_up_instance(task)
        self.assertEqual({}, task.node.boot_config)

    def test_or_the_machine_fetches_it_from_where_it_is(self) -> None:
        task = self.prepared(driver_info={**RAMDISK, "ramdisk_image_download_source": "http"})
        task.driver.boot.prepare_instance(task)
        self.assertEqual("http://files/live.iso", task.node.boot_config["image"])

    def test_what_is_no_image(self) -> None:
        for value in ("ftp://files/live.iso", "live || reboot", 7):
            task = self.prepared(instance_info={"boot_iso": value})
            error = self.assertRaises(errors.IngotError, task.driver.boot.validate, task)
            self.assertIn("boot_iso", error.message)

    def test_loaders_of_files_start_none(self) -> None:
        task = self.prepared(boot_interface="pxe")
        error = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task)
        self.assertIn("Boot interfaces ipxe, redfish-virtual-media", error.message)
