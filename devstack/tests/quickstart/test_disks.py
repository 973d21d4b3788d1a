"""The proofs must not be blind: each is shown what it must accept, and what it must refuse."""

import hashlib
import io
import json
import os
import pathlib
import tempfile

import pycdlib
import testtools
from quickstart import disks, gpt
from quickstart.failure import Failure

from ingot.rack import partitions

DRIVE = {"meta_data": {"uuid": "u"}, "user_data": "#cloud-config\n", "network_data": {"links": []}}
SIZE = 256 * 2**20


class FileStorage:
    """A disk's file, as the rack's partition code writes it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.size = path.stat().st_size

    def read(self, offset: int, length: int) -> bytes:
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def write(self, offset: int, data: bytes) -> None:
        with self.path.open("r+b") as file:
            file.seek(offset)
            file.write(data)


def iso(files: dict[str, bytes]) -> bytes:
    """Return a config drive with these files below openstack/latest."""
    image, out = pycdlib.PyCdlib(), io.BytesIO()
    image.new(joliet=3, vol_ident="config-2", interchange_level=4)
    for folder in ("/openstack", "/openstack/latest"):
        image.add_directory(folder.upper(), joliet_path=folder)
    for name, data in files.items():
        path = f"/openstack/latest/{name}"
        image.add_fp(io.BytesIO(data), len(data), f"{path.upper()};1", joliet_path=path)
    image.write_fp(out)
    return out.getvalue()


def drive_files() -> dict[str, bytes]:
    return {
        "meta_data.json": json.dumps(DRIVE["meta_data"]).encode(),
        "user_data": str(DRIVE["user_data"]).encode(),
        "network_data.json": json.dumps(DRIVE["network_data"]).encode(),
    }


class DiskTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.disk = pathlib.Path(directory.name, "disk.img")
        self.disk.touch()
        os.truncate(self.disk, SIZE)
        self.image = pathlib.Path(directory.name, "image.img")

    def _write_image(self) -> None:
        """Write an image to the disk as an agent does, its partition table made to fit."""
        gpt.write(self.image, 4 * gpt.MEBIBYTE, "boot", b"code")
        FileStorage(self.image).write(gpt.FIRST_PARTITION + 1000, b"kernel")
        self.sha256 = hashlib.sha256(self.image.read_bytes()).hexdigest()
        FileStorage(self.disk).write(0, self.image.read_bytes())


class ErasedTest(DiskTest):
    def test_a_new_disk_is_empty(self) -> None:
        disks.check_erased(self.disk)

    def test_zeros_that_were_written_are_empty_too(self) -> None:
        FileStorage(self.disk).write(5 * 2**20, bytes(2**20))
        disks.check_erased(self.disk)

    def test_rubbish_is_found_wherever_it_is(self) -> None:
        disks.fill_with_rubbish(self.disk)
        for kept in (0, SIZE // 2, SIZE - 1):
            os.truncate(self.disk, 0)
            os.truncate(self.disk, SIZE)
            FileStorage(self.disk).write(kept, b"x")
            error = self.assertRaises(Failure, disks.check_erased, self.disk)
            self.assertIn(f"at byte {kept} ", str(error))

    def test_rubbish_is_written(self) -> None:
        self.assertEqual(3 * 2**20, disks.fill_with_rubbish(self.disk))
        self.assertRaises(Failure, disks.check_erased, self.disk)
        self.assertEqual(SIZE, self.disk.stat().st_size)


class ImageTest(DiskTest):
    def test_a_larger_disk_with_the_image_is_accepted(self) -> None:
        self._write_image()
        partitions.move_backup_to_end(FileStorage(self.disk))
        disks.check_image(self.disk, self.image, self.sha256)

    def test_one_changed_byte_is_noticed(self) -> None:
        self._write_image()
        FileStorage(self.disk).write(gpt.FIRST_PARTITION + 1000, b"K")
        self.assertRaises(Failure, disks.check_image, self.disk, self.image, self.sha256)

    def test_a_lost_partition_is_noticed(self) -> None:
        self._write_image()
        FileStorage(self.disk).write(gpt.SECTOR, bytes(gpt.SECTOR))
        self.assertRaises(Failure, disks.check_image, self.disk, self.image, self.sha256)


class ConfigDriveTest(DiskTest):
    def _deploy(self, files: dict[str, bytes]) -> None:
        self._write_image()
        partitions.write_config_drive(FileStorage(self.disk), iso(files))

    def test_what_was_given_is_accepted(self) -> None:
        self._deploy(drive_files())
        compared = disks.check_config_drive(self.disk, DRIVE)
        self.assertEqual(["meta_data.json", "user_data", "network_data.json"], compared)

    def test_different_content_is_named(self) -> None:
        self._deploy({**drive_files(), "meta_data.json": b"{}"})
        error = self.assertRaises(Failure, disks.check_config_drive, self.disk, DRIVE)
        self.assertIn("meta_data.json", str(error))

    def test_a_missing_file_is_named(self) -> None:
        self._deploy({name: data for name, data in drive_files().items() if name != "user_data"})
        error = self.assertRaises(Failure, disks.check_config_drive, self.disk, DRIVE)
        self.assertIn("user_data", str(error))

    def test_a_disk_without_config_drive_is_refused(self) -> None:
        self._write_image()
        self.assertRaises(Failure, disks.check_config_drive, self.disk, DRIVE)
