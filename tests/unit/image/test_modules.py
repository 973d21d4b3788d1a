"""Which of a kernel's modules stay."""

import tempfile
from pathlib import Path

import testtools

from ingot.image.builds import BuildError
from ingot.image.modules import keep_only

DEPENDENCIES = """\
kernel/drivers/md/raid1.ko: kernel/drivers/md/md-mod.ko
kernel/drivers/md/md-mod.ko:
kernel/fs/fat/vfat.ko: kernel/fs/fat/fat.ko
kernel/fs/fat/fat.ko:
kernel/sound/loud.ko:
"""


class KeepOnlyTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.enterContext(tempfile.TemporaryDirectory()), "6.1.0")
        for line in DEPENDENCIES.splitlines():
            path = self.directory / line.partition(":")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (self.directory / "modules.dep").write_text(DEPENDENCIES)
        (self.directory / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
        (self.directory / "build").symlink_to("/usr/src/headers")

    def left(self) -> set[str]:
        return {path.name for path in (self.directory / "kernel").rglob("*.ko")}

    def test_what_is_needed_stays_with_what_it_needs(self) -> None:
        kept = keep_only(self.directory, ["raid1"])
        self.assertEqual({"raid1.ko", "md-mod.ko"}, self.left())
        self.assertEqual(["kernel/drivers/md/md-mod.ko", "kernel/drivers/md/raid1.ko"], kept)
        self.assertEqual(["drivers"], [path.name for path in (self.directory / "kernel").iterdir()])
        self.assertFalse((self.directory / "build").is_symlink())

    def test_dashes_and_underscores_are_the_same(self) -> None:
        keep_only(self.directory, ["md_mod"])
        self.assertEqual({"md-mod.ko"}, self.left())

    def test_what_is_built_in_needs_no_file(self) -> None:
        keep_only(self.directory, ["ext4", "fat"])
        self.assertEqual({"fat.ko"}, self.left())

    def test_what_the_kernel_does_not_have_is_named(self) -> None:
        self.assertRaisesRegex(BuildError, "kernel 6.1.0 has no module zfs", keep_only, self.directory, ["fat", "zfs"])
