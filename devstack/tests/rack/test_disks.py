"""Disks, partition tables, mirrors, hints and what is read back from them."""

import tempfile
from pathlib import Path
from typing import Any

import testtools

from ingot.rack import partitions, raid, readback, root_device
from ingot.rack.config import DiskSpec
from ingot.rack.disks import Disk
from tests import disk_images

SIZE = 128 * 2**20
MIRROR: dict[str, Any] = {"logical_disks": [{"size_gb": "MAX", "raid_level": "1", "controller": "software"}]}


class DiskTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.disks = [self.disk(number) for number in range(2)]
        self.disk_a = self.disks[0]

    def disk(self, number: int, size: int = SIZE, **more: str) -> Disk:
        spec = DiskSpec(f"/dev/sd{'abc'[number]}", size, f"S{number}", f"0x{number}", **more)
        return Disk(spec, self.directory / f"disk{number}")

    def used(self) -> int:
        used: int = self.disk_a.public()["used"]
        return used


class SparseTest(DiskTest):
    def test_zeros_cost_nothing_but_overwrite_what_was_there(self) -> None:
        self.disk_a.write(0, bytes(2**20))
        self.assertEqual(0, self.used())
        self.disk_a.write(0, b"data")
        self.disk_a.write(0, bytes(4))
        self.assertEqual(bytes(8), self.disk_a.read(0, 8))

    def test_erasing(self) -> None:
        self.disk_a.write(0, b"a" * 4096)
        self.disk_a.write(SIZE // 2, b"b" * 4096)
        self.disk_a.erase_metadata()
        self.assertEqual((bytes(4), b"bbbb"), (self.disk_a.read(0, 4), self.disk_a.read(SIZE // 2, 4)))
        self.disk_a.erase()
        self.assertEqual(0, self.used())
        self.assertEqual(SIZE, self.disk_a.path.stat().st_size)

    def test_shredding(self) -> None:
        for offset in (0, SIZE // 2):
            self.disk_a.write(offset, b"a" * 4096)
        used = self.used()
        self.disk_a.shred(zeros=False)
        for offset in (0, SIZE // 2):
            self.assertNotIn(b"a" * 8, self.disk_a.read(offset, 4096))
        self.assertEqual((used, SIZE), (self.used(), self.disk_a.path.stat().st_size))
        self.disk_a.shred(zeros=True)
        self.assertEqual(0, self.used())

    def test_what_is_read_only_stays(self) -> None:
        self.disk_a.write(0, b"kept")
        protected = self.disk(0, state="read-only")
        for change in (lambda: protected.write(0, b"x"), protected.erase, lambda: protected.shred(zeros=False)):
            self.assertRaisesRegex(OSError, "read only", change)
        self.assertEqual(b"kept", protected.read(0, 4))

    def test_the_end_is_the_end(self) -> None:
        self.assertRaisesRegex(OSError, "ends at", self.disk_a.write, SIZE - 1, b"ab")

    def test_content_outlives_the_object(self) -> None:
        self.disk_a.write(100, b"kept")
        self.assertEqual(b"kept", self.disk(0).read(100, 4))


class PartitionTest(DiskTest):
    def test_signatures(self) -> None:
        self.assertIsNone(partitions.boot_signature(self.disk_a))
        self.disk_a.write(0, disk_images.mbr_image())
        self.assertEqual("mbr", partitions.boot_signature(self.disk_a))
        self.disk_a.write(0, disk_images.gpt_image())
        self.assertEqual("gpt", partitions.boot_signature(self.disk_a))
        self.disk_a.write(512 + 40, b"\xff")
        self.assertEqual("mbr", partitions.boot_signature(self.disk_a))

    def test_a_gpt_grows_to_the_disk_and_takes_a_config_drive(self) -> None:
        self.disk_a.write(0, disk_images.gpt_image())
        part = partitions.write_config_drive(self.disk_a, b"drive")
        header = partitions.read_gpt(self.disk_a)
        assert header is not None
        self.assertEqual(SIZE // 512 - 1, header.backup)
        self.assertEqual(b"EFI PART", self.disk_a.read(header.backup * 512, 8))
        self.assertEqual(["root", "config-2"], [found.label for found in partitions.partitions(self.disk_a)])
        self.assertEqual((2, partitions.CONFIG_DRIVE_SIZE), (part.number, part.size))
        self.assertLessEqual(part.start + part.size, (header.last_usable + 1) * 512)
        self.assertEqual(b"drive", (readback.config_drive(self.disk_a.path) or b"")[:5])

    def test_a_second_config_drive_replaces_the_first(self) -> None:
        self.disk_a.write(0, disk_images.gpt_image())
        first = partitions.write_config_drive(self.disk_a, b"first")
        self.assertEqual(first, partitions.write_config_drive(self.disk_a, b"other"))

    def test_an_mbr_takes_a_config_drive(self) -> None:
        self.disk_a.write(0, disk_images.mbr_image())
        part = partitions.write_config_drive(self.disk_a, b"drive")
        self.assertEqual(part, partitions.partitions(self.disk_a)[1])
        self.assertEqual(b"drive", self.disk_a.read(part.start, 5))

    def test_where_no_config_drive_can_go(self) -> None:
        self.assertRaisesRegex(
            partitions.PartitionError, "no partition table", partitions.write_config_drive, self.disk_a, b"x"
        )
        small = self.disk(2, 32 * 2**20)
        small.write(0, disk_images.gpt_image())
        self.assertRaisesRegex(partitions.PartitionError, "no room", partitions.write_config_drive, small, b"x")
        too_large = bytes(partitions.CONFIG_DRIVE_SIZE + 1)
        self.assertRaisesRegex(
            partitions.PartitionError, "larger", partitions.write_config_drive, self.disk_a, too_large
        )

    def test_the_digest_of_an_image_is_that_of_the_disk_it_was_written_to(self) -> None:
        for image in (disk_images.gpt_image(), disk_images.mbr_image()):
            original = self.directory / "original"
            original.write_bytes(image)
            expected = readback.content_digest(original, len(image))
            self.disk_a.erase()
            self.disk_a.write(0, image)
            partitions.move_backup_to_end(self.disk_a)
            partitions.write_config_drive(self.disk_a, b"x")
            self.assertEqual(expected, readback.content_digest(self.disk_a.path, len(image)))
            self.disk_a.write(2**20 + 5, b"!")
            self.assertNotEqual(expected, readback.content_digest(self.disk_a.path, len(image)))


class MirrorTest(DiskTest):
    def test_both_members_get_everything(self) -> None:
        self.assertEqual([], [d for d in raid.block_devices(self.disks) if d.members])
        raid.create(self.disks, MIRROR, delete_existing=True)
        (mirror,) = raid.block_devices(self.disks)
        mirror.write(12345, b"twice")
        for disk in self.disks:
            self.assertEqual(b"twice", disk.read(12345, 5))
        self.assertRaisesRegex(OSError, "ends at", mirror.write, mirror.size - 1, b"ab")

    def test_it_is_found_by_its_superblocks_alone(self) -> None:
        raid.create(self.disks, MIRROR, delete_existing=True)
        first = raid.block_devices([self.disk(0), self.disk(1)])
        self.assertEqual([("/dev/sda", "/dev/sdb")], [tuple(m.name for m in d.members) for d in first])
        raid.delete(self.disks)
        self.assertEqual(["/dev/sda", "/dev/sdb"], [d.name for d in raid.block_devices(self.disks)])

    def test_its_members_may_be_named(self) -> None:
        disk = MIRROR["logical_disks"][0]
        for hints in ([{"name": "/dev/sda"}, {"name": "/dev/sdb"}], [{"name": "s== /dev/SDA"}, {"name": "<in> sdb"}]):
            raid.create(self.disks, {"logical_disks": [{**disk, "physical_disks": hints}]}, delete_existing=True)

    def test_what_cannot_be_built(self) -> None:
        disk = MIRROR["logical_disks"][0]
        for config, text in (
            ({}, "exactly one entry"),
            ({"logical_disks": [disk, disk]}, "exactly one entry"),
            ({"logical_disks": [{**disk, "raid_level": "5"}]}, "raid_level '5'"),
            ({"logical_disks": [{**disk, "controller": "hba"}]}, "controller 'hba'"),
            ({"logical_disks": [{**disk, "size_gb": "big"}]}, "size_gb 'big'"),
            ({"logical_disks": [{**disk, "size_gb": 100}]}, "have room for"),
            ({"logical_disks": [{**disk, "physical_disks": [{"name": "/dev/sda"}]}]}, "takes 2 disks, found 1"),
        ):
            self.assertRaisesRegex(raid.RaidError, text, raid.create, self.disks, config, True)
        raid.create(self.disks, MIRROR, delete_existing=False)
        self.assertRaisesRegex(raid.RaidError, "already in an array", raid.create, self.disks, MIRROR, False)


class RootDeviceTest(DiskTest):
    def choose(self, **hints: Any) -> str:
        return root_device.choose(self.disks, {"properties": {"root_device": hints}}).name

    def test_hints(self) -> None:
        self.disks.append(self.disk(2, 3 * 2**30))
        for hints, name in (
            ({}, "/dev/sda"),
            ({"serial": "S1"}, "/dev/sdb"),
            ({"serial": "s== S1"}, "/dev/sdb"),
            ({"wwn": "0x1"}, "/dev/sdb"),
            ({"size": 3}, "/dev/sdc"),
            ({"size": ">= 2"}, "/dev/sdc"),
            ({"name": "/dev/sdb"}, "/dev/sdb"),
            ({"serial": "s!= S0", "size": "< 1"}, "/dev/sdb"),
        ):
            self.assertEqual(name, self.choose(**hints), hints)

    def test_a_mirror_comes_before_disks(self) -> None:
        self.disks.append(self.disk(2))
        raid.create(self.disks[:2], MIRROR, delete_existing=True)
        devices = raid.block_devices(self.disks)
        self.assertEqual("/dev/md0", root_device.choose(devices, {}).name)

    def test_what_is_not_found(self) -> None:
        for hints, text in (
            ({"serial": "S9"}, "no device fits"),
            ({"colour": "red"}, "hint colour"),
            ({"size": "large"}, "is not a number of GiB"),
        ):
            self.assertRaisesRegex(root_device.DeviceNotFound, text, self.choose, **hints)
