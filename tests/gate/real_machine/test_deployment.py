"""From power off to a booted system, over the real agent."""

import pathlib

import testtools

from tests.gate.real_machine.bench import PLACE, Bench, starts_with_a_partition_table

TEMPLATE = "CUSTOM_MIRROR"
MIRROR = {
    "interface": "raid",
    "step": "apply_configuration",
    "priority": 90,
    "args": {
        "raid_config": {
            "logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software", "is_root_volume": True}]
        },
        "delete_existing": True,
    },
}


class DeploymentTest(testtools.TestCase):
    def bench(self, name: str) -> Bench:
        return self.useFixture(Bench(name))

    def make_available(self, bench: Bench, uuid: str) -> None:
        """Puts a partition table on a disk, which cleaning must remove."""
        disk = pathlib.Path(bench.disk(1)["path"])
        with disk.open("r+b") as file:
            file.write((PLACE / "image" / "image.raw").read_bytes()[: 2**20])
        self.assertTrue(starts_with_a_partition_table(str(disk)))
        bench.ask(uuid, "manage", "manageable")
        bench.ask(uuid, "provide", "available")
        self.assertFalse(starts_with_a_partition_table(str(disk)), "cleaning left a partition table")

    def config_drive(self, uuid: str) -> dict[str, object]:
        return {"meta_data": {"uuid": uuid, "name": "real"}}

    def test_bios_one_disk_streamed(self) -> None:
        bench = self.bench("bios")
        uuid = bench.enroll("bios", root_device={"serial": bench.disk(1)["serial"]})
        self.make_available(bench, uuid)
        bench.choose_image(uuid, "image.raw")
        bench.ask(uuid, "active", "active", configdrive=self.config_drive(uuid))
        said = bench.wait_for_image()
        self.assertEqual(("bios", bench.image["marker"]), (said["root"]["firmware"], said["root"]["marker"]))
        self.assertEqual(uuid, said["config"]["instance"])
        self.assertEqual(
            [False, True], [starts_with_a_partition_table(bench.disk(number)["path"]) for number in range(2)]
        )

    def test_uefi_mirror_by_a_template(self) -> None:
        bench = self.bench("uefi")
        uuid = bench.enroll("uefi")
        self.make_available(bench, uuid)
        bench.user.post("/v1/deploy_templates", {"name": TEMPLATE, "steps": [MIRROR]})
        bench.user.put(f"/v1/nodes/{uuid}/traits/{TEMPLATE}", None)
        bench.choose_image(uuid, "image.qcow2", traits=[TEMPLATE])
        node = bench.ask(uuid, "active", "active", configdrive=self.config_drive(uuid))
        said = bench.wait_for_image()
        self.assertEqual(("uefi", bench.image["marker"]), (said["root"]["firmware"], said["root"]["marker"]))
        self.assertRegex(said["root"]["root"], "^/dev/md")
        self.assertEqual(uuid, said["config"]["instance"])
        self.assertEqual("1", node["raid_config"]["logical_disks"][0]["raid_level"])
