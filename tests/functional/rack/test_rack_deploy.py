"""A machine's way from bare disks to a booted image, driven over the real protocols."""

from pathlib import Path

from ingot.rack import readback
from tests import disk_images
from tests.functional.rack.base import RackTest, config_drive

MIRROR = {"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}]}


class DeployTest(RackTest):
    def test_mirror_image_config_drive_and_boot_from_disk(self) -> None:
        self.assertEqual(0, self.ipmitool("chassis", "bootdev", "pxe").returncode)
        self.assertEqual(0, self.ipmitool("power", "on").returncode)
        agent = self.service.agent()
        image = disk_images.gpt_image()

        built = agent.step("deploy", "apply_configuration", "raid", raid_config=MIRROR)
        written = agent.step(
            "deploy",
            "write_image",
            image_info=self.service.serve_image(image),
            configdrive=config_drive(b"meta data"),
        )
        self.assertEqual("SUCCEEDED", built["command_status"], built)
        self.assertEqual("SUCCEEDED", written["command_status"], written)
        self.assertIn("/dev/md0", written["command_result"]["deploy_result"]["result"])
        self.assertEqual({"root uuid": "0x00000000"}, agent.run("standby.get_partition_uuids")["command_result"])
        self.assertEqual(
            "SUCCEEDED", agent.run("image.install_bootloader", {"root_uuid": "0x00000000"})["command_status"]
        )
        self.assertEqual("SUCCEEDED", agent.run("standby.sync")["command_status"])
        agent.post("standby.power_off", wait=False)
        self.rack.control.wait_for_state(self.name, "off")

        original = Path(self.rack.state_dir, "original.raw")
        original.write_bytes(image)
        expected = readback.content_digest(original, len(image))
        for path in self.disk_paths():
            self.assertEqual(expected, readback.content_digest(path, len(image)))
            self.assertEqual(b"meta data", (readback.config_drive(path) or b"")[:9])
        self.assertEqual(0, self.ipmitool("chassis", "bootdev", "disk", "options=persistent").returncode)
        self.assertEqual(0, self.ipmitool("power", "on").returncode)
        machine = self.rack.control.wait_for_state(self.name, "os")
        self.assertIn("/dev/sda (gpt)", machine["reason"])
        self.assertEqual(
            ["apply_configuration", "write_image", None, None, None, None],
            [command["step"] for command in machine["commands"]],
        )

    def test_an_mbr_image_on_one_disk_chosen_by_serial(self) -> None:
        serial = self.rack.control.machine(self.name)["disks"][1]["serial"]
        self.service.node = {"properties": {"root_device": {"serial": serial}}}
        agent = self.boot_agent()
        image = disk_images.mbr_image()

        answer = agent.run(
            "standby.prepare_image",
            {"image_info": self.service.serve_image(image), "configdrive": config_drive(b"x" * 2048)},
        )

        self.assertEqual("SUCCEEDED", answer["command_status"], answer)
        first, second = self.disk_paths()
        self.assertEqual(bytes(512), first.read_bytes()[:512])
        self.assertEqual(image[2**20 :], second.read_bytes()[2**20 : len(image)])
        self.assertEqual({"root uuid": "0x12345678"}, agent.run("standby.get_partition_uuids")["command_result"])

    def test_erasing_erases_and_an_empty_disk_does_not_boot(self) -> None:
        agent = self.boot_agent()
        image = self.service.serve_image(disk_images.mbr_image())
        self.assertEqual("SUCCEEDED", agent.run("standby.prepare_image", {"image_info": image})["command_status"])
        self.assertNotEqual(0, self.rack.control.machine(self.name)["disks"][0]["used"])

        self.assertEqual("SUCCEEDED", agent.step("clean", "erase_devices")["command_status"])

        self.assertEqual(0, self.rack.control.machine(self.name)["disks"][0]["used"])
        self.rack.control.set_boot_device(self.name, "disk", persistent=True)
        self.rack.control.power(self.name, "reset")
        machine = self.rack.control.wait_for_state(self.name, "hung")
        self.assertIn("no disk has a boot sector", machine["reason"])

    def test_metadata_of_a_mirror_is_erased_and_the_mirror_stays(self) -> None:
        agent = self.boot_agent()
        agent.step("deploy", "apply_configuration", "raid", raid_config=MIRROR)
        agent.run("standby.prepare_image", {"image_info": self.service.serve_image(disk_images.mbr_image())})
        self.assertEqual("SUCCEEDED", agent.step("clean", "erase_devices_metadata")["command_status"])
        self.assertEqual("1", self.rack.control.machine(self.name)["volumes"][0]["raid_level"])
        self.assertEqual([bytes(512)] * 2, [path.read_bytes()[:512] for path in self.disk_paths()])
        agent.step("clean", "delete_configuration", "raid")
        self.assertEqual([], self.rack.control.machine(self.name)["volumes"])

    def test_disks_and_boot_device_outlive_the_rack(self) -> None:
        agent = self.boot_agent()
        image = self.service.serve_image(disk_images.mbr_image())
        agent.run("standby.prepare_image", {"image_info": image})
        self.rack.control.set_boot_device(self.name, "disk", persistent=True, efi=True)

        self.assertEqual(0, self.rack.stop())
        self.rack.start()

        self.assertEqual("off", self.rack.control.machine(self.name)["power"])
        expected = {"device": "disk", "persistent": True, "efi": True}
        self.assertEqual(expected, self.rack.control.machine(self.name)["boot_device"])
        self.rack.control.power(self.name, "on")
        self.rack.control.wait_for_state(self.name, "os")
