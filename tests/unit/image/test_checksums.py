"""Images as ironic-python-agent's projects publish them are verified by the checksum files beside them."""

import hashlib
import pathlib

import fixtures
import testtools

from ingot.image import checksums
from ingot.image.builds import BuildError

LAYOUTS = {
    "diskimage-builder": ("ipa-centos9-master.kernel", "ipa-centos9-master.initramfs"),
    "tinyipa": ("tinyipa-master.vmlinuz", "tinyipa-master.gz"),
    "metal3": ("ironic-python-agent.kernel", "ironic-python-agent.initramfs"),
    "ingot": ("vmlinuz", "initrd.img"),
}
CONTENT = b"kernel or ramdisk"
SUM = hashlib.sha256(CONTENT).hexdigest()


class ChecksumsTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def write(self, name: str, content: str | bytes) -> None:
        (self.place / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def faults(self) -> dict[str, str | None]:
        return {check.name: check.fault for check in checksums.verify(self.place)}

    def test_layouts_of_published_images(self) -> None:
        for kernel, ramdisk in LAYOUTS.values():
            for name in (kernel, ramdisk):
                self.write(name, CONTENT)
                self.write(f"{name}.sha256", f"{SUM}  {name}\n")
        self.assertEqual({None}, set(self.faults().values()))
        self.assertEqual(sorted(LAYOUTS.values()), sorted(checksums.list_pairs(set(self.faults()))))

    def test_forms_of_sums(self) -> None:
        """A sum alone, the path of a file where it was built, one marked as binary, and capital letters."""
        self.write("image", CONTENT)
        for form in (SUM, f"{SUM}  /home/builder/out/image\n", f"{SUM} *image\n\n", f"{SUM.upper()}  ./image"):
            self.write("image.sha256", form)
            self.assertEqual({"image": None}, self.faults(), form)

    def test_lists_of_sums(self) -> None:
        long = hashlib.sha512(CONTENT).hexdigest()
        self.write("one", CONTENT)
        self.write("other", CONTENT)
        self.write("SHA256SUMS", f"{SUM}  one\n{SUM}  ./other\n")
        self.assertEqual({"one": None, "other": None}, self.faults())
        (self.place / "SHA256SUMS").rename(self.place / "sha512sums.txt")
        self.write("sha512sums.txt", f"{long}  one\n{long}  other\n")
        self.assertEqual({"one": None, "other": None}, self.faults())

    def test_files_that_are_not_what_they_should_be(self) -> None:
        self.write("changed", b"something else")
        self.write("changed.sha256", SUM)
        self.write("missing.sha256", SUM)
        self.write("unknown", CONTENT)
        faults = self.faults()
        self.assertIn(f"changed.sha256 has {SUM}", str(faults["changed"]))
        self.assertIn("it is missing", str(faults["missing"]))
        self.assertEqual("no checksum file has its sum", faults["unknown"])

    def test_checksum_files_that_are_none(self) -> None:
        self.assertIn("no checksum file", str(self.assertRaises(BuildError, self.faults)))
        for content in (
            "",
            "<html>not found</html>",
            f"{SUM}\n{SUM}",
            SUM[:-1],
            "d41d8cd98f00b204e9800998ecf8427e  image",
        ):
            self.write("image.sha256", content)
            self.assertRaises(BuildError, self.faults)
        self.write("image.sha256", b"0" * (2**20 + 1))
        self.assertIn("too large", str(self.assertRaises(BuildError, self.faults)))

    def test_lists_do_not_lead_out_of_the_directory(self) -> None:
        for name in ("/etc/passwd", "../other", ""):
            self.write("SHA256SUMS", f"{SUM}  {name}\n")
            self.assertIn("no name of a file beside it", str(self.assertRaises(BuildError, self.faults)))
