"""Files out of Debian packages that are not installed."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import testtools
from quickstart import debs


@unittest.skipUnless(shutil.which("dpkg-deb"), "dpkg-deb is not installed")
class PackageFileTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.package = self._package({"boot/vmlinuz-6.1": b"kernel", "lib/modules/6.1/big.ko": bytes(2**20)})

    def _package(self, content: dict[str, bytes]) -> pathlib.Path:
        tree = self.directory / "tree"
        (tree / "DEBIAN").mkdir(parents=True)
        control = "Package: linux\nVersion: 1\nArchitecture: all\nMaintainer: dev <a@example.org>\nDescription: x\n"
        (tree / "DEBIAN" / "control").write_text(control)
        for name, data in content.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        package = self.directory / "linux_1_all.deb"
        subprocess.run(["dpkg-deb", "--build", str(tree), str(package)], check=True, capture_output=True)
        return package

    def test_one_file_is_read_without_unpacking_the_rest(self) -> None:
        self.assertEqual(b"kernel", debs.read_first(self.package, "./boot/vmlinuz-"))

    def test_a_file_that_is_not_there_is_named(self) -> None:
        error = self.assertRaises(debs.PackageError, debs.read_first, self.package, "./boot/Image-")
        self.assertIn("./boot/Image-", str(error))
        self.assertIn("linux_1_all.deb", str(error))

    def test_a_package_is_unpacked(self) -> None:
        debs.unpack(self.package, self.directory / "out")
        self.assertEqual(b"kernel", (self.directory / "out" / "boot" / "vmlinuz-6.1").read_bytes())

    def test_a_damaged_package_is_named(self) -> None:
        damaged = self.directory / "damaged.deb"
        damaged.write_bytes(b"not a package")
        for act in (lambda: debs.unpack(damaged, self.directory), lambda: debs.read_first(damaged, "./boot/")):
            self.assertIn("damaged.deb", str(self.assertRaises(debs.PackageError, act)))
