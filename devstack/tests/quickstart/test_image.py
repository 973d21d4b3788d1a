"""The image's parts: partition table and ramdisk, read by code that did not write them."""

import gzip
import pathlib
import tempfile

import testtools
from quickstart import cpio, gpt

from ingot.rack import partitions, readback


class PartitionTableTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.disk = pathlib.Path(directory.name, "disk.img")

    def test_the_rack_finds_the_partition(self) -> None:
        gpt.write(self.disk, 40 * gpt.MEBIBYTE, "boot")
        found = partitions.partitions(readback.DiskFile(self.disk))
        self.assertEqual([partitions.Partition(1, gpt.FIRST_PARTITION, 40 * gpt.MEBIBYTE, "boot")], found)

    def test_the_disk_holds_the_partition_and_both_tables(self) -> None:
        gpt.write(self.disk, 40 * gpt.MEBIBYTE, "boot")
        header = partitions.read_gpt(readback.DiskFile(self.disk))
        assert header is not None
        self.assertEqual(42 * gpt.MEBIBYTE, self.disk.stat().st_size)
        self.assertEqual(self.disk.stat().st_size // gpt.SECTOR - 1, header.backup)
        backup = readback.DiskFile(self.disk).read(header.backup * gpt.SECTOR, 8)
        self.assertEqual(b"EFI PART", backup)

    def test_the_same_name_gives_the_same_bytes(self) -> None:
        gpt.write(self.disk, 2 * gpt.MEBIBYTE, "boot", b"code")
        first = self.disk.read_bytes()
        gpt.write(self.disk, 2 * gpt.MEBIBYTE, "boot", b"code")
        self.assertEqual(first, self.disk.read_bytes())

    def test_boot_code_stands_where_a_bios_runs_it(self) -> None:
        gpt.write(self.disk, 2 * gpt.MEBIBYTE, "boot", b"\xfa\x31\xc0")
        sector = self.disk.read_bytes()[: gpt.SECTOR]
        self.assertTrue(sector.startswith(b"\xfa\x31\xc0"))
        self.assertTrue(sector.endswith(b"\x55\xaa"))

    def test_boot_code_that_would_overwrite_the_table_is_refused(self) -> None:
        error = self.assertRaises(ValueError, gpt.write, self.disk, gpt.MEBIBYTE, "boot", bytes(441))
        self.assertIn("441", str(error))


class RamdiskTest(testtools.TestCase):
    def test_headers_follow_the_format(self) -> None:
        archive = gzip.decompress(cpio.ramdisk((), {"init": b"hello"}))
        self.assertEqual(b"070701", archive[:6])
        mode, size, name_size = (int(archive[at : at + 8], 16) for at in (14, 54, 94))
        self.assertEqual((0o100755, 5, 5), (mode, size, name_size))
        self.assertEqual(b"init\0", archive[110:115])
        self.assertEqual(b"hello", archive[116:121], "content begins at a multiple of four")
        self.assertEqual(0, len(archive) % 4)
        self.assertIn(b"TRAILER!!!\0", archive)

    def test_the_same_content_gives_the_same_bytes(self) -> None:
        self.assertEqual(cpio.ramdisk(("a",), {"b": b"c"}), cpio.ramdisk(("a",), {"b": b"c"}))
