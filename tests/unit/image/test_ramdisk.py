"""What goes into a ramdisk, and by what a result is found again."""

import dataclasses
import os
import pathlib
import stat

import fixtures
import testtools

from ingot.image import debian, modules, own_files, ramdisk
from ingot.image.builds import BuildError
from ingot.image.order import ARCHITECTURES, ExtraFile, Order
from ingot.image.profiles import load_all


class Orders(testtools.TestCase):
    def test_a_result_is_found_by_everything_that_is_ordered(self) -> None:
        order = Order(load_all()["small"], ARCHITECTURES["amd64"], "")
        others = [
            Order(load_all()["server"], ARCHITECTURES["amd64"], ""),
            Order(load_all()["small"], ARCHITECTURES["arm64"], ""),
            *(
                dataclasses.replace(order, **change)
                for change in (
                    {"arguments": "quiet"},
                    {"packages": ("ledmon",)},
                    {"mirrors": ("http://192.0.2.1/debian",)},
                    {"media": False},
                    {"files": (ExtraFile("/etc/x", b"1"),)},
                    {"files": (ExtraFile("/etc/x", b"2"),)},
                    {"files": (ExtraFile("/etc/x", b"1", 0o755),)},
                )
            ),
        ]
        self.assertEqual(ramdisk.name_result(order), ramdisk.name_result(dataclasses.replace(order)))
        self.assertEqual(len(others) + 1, len({ramdisk.name_result(one) for one in (order, *others)}))

    def test_the_content_of_files_is_in_no_text_of_an_order(self) -> None:
        self.assertNotIn("secret", repr(ExtraFile("/etc/x", b"a secret")))


class Profiles(testtools.TestCase):
    def test_a_profile_has_what_the_one_has_that_it_extends(self) -> None:
        small, server = load_all()["small"], load_all()["server"]
        for field in ("packages", "modules", "prune"):
            self.assertLessEqual(set(getattr(small, field)), set(getattr(server, field)), field)
        self.assertNotEqual(small.kernel, server.kernel)
        self.assertEqual(((), "small"), (small.firmware, small.name))

    def test_every_architecture_has_a_kernel(self) -> None:
        for profile in load_all().values():
            self.assertEqual({*ARCHITECTURES}, {*profile.kernel}, profile.name)


class OwnFiles(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "root"
        self.root.mkdir()

    def test_scripts_may_be_executed_wherever_the_package_came_from(self) -> None:
        own_files.install(self.root)
        modes = {path: stat.S_IMODE((self.root / path).stat().st_mode) for path in ("init", "usr/local/sbin/poweroff")}
        self.assertEqual({0o755}, set(modes.values()))
        self.assertIn("use_stderr", (self.root / "etc/ironic-python-agent.d/agent.conf").read_text())

    def test_files_of_operators(self) -> None:
        (self.root / "etc").mkdir()
        (self.root / "etc" / "linked").symlink_to("/etc/hostname")
        files = [ExtraFile("/opt/tool/run", b"#!", 0o755), ExtraFile("/etc/linked", b"a file")]
        own_files.add(self.root, files)
        self.assertEqual(0o755, stat.S_IMODE((self.root / "opt/tool/run").stat().st_mode))
        self.assertEqual("a file", (self.root / "etc/linked").read_text())
        self.assertFalse((self.root / "etc/linked").is_symlink())

    def test_files_stay_in_the_ramdisk(self) -> None:
        (self.root / "var").mkdir()
        outside = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.root / "var" / "run").symlink_to(outside)
        for place, said in (("/var/run/x", "a folder of it is a link"), ("/var", "is a folder of the ramdisk")):
            error = self.assertRaises(BuildError, own_files.add, self.root, [ExtraFile(place, b"")])
            self.assertIn(said, str(error))
        self.assertEqual([], list(outside.iterdir()))


class Debian(testtools.TestCase):
    def test_what_keeps_debian_from_being_installed_is_said_with_where_it_comes_from(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        program = place / "mmdebstrap"
        program.write_text("#!/bin/sh\necho noise >&2\necho 'E: Unable to locate package nosuch' >&2\nexit 25\n")
        program.chmod(0o755)
        self.useFixture(fixtures.EnvironmentVariable("PATH", f"{place}:{os.environ['PATH']}"))
        order = Order(load_all()["small"], ARCHITECTURES["amd64"], "", mirrors=("http://192.0.2.1/debian",))
        error = self.assertRaises(BuildError, debian.install, place / "root", order)
        said = "Debian cannot be installed from http://192.0.2.1/debian:\n  E: Unable to locate package nosuch"
        self.assertEqual(said, str(error))


class Firmware(testtools.TestCase):
    def test_without_modules_there_is_none(self) -> None:
        place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.assertEqual([], modules.keep_firmware(place / "to", [], place))
