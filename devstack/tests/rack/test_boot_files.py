"""Reading configurations of loaders that are not iPXE."""

import testtools

from ingot.rack import boot_files

URL = "http://server/boot/x"


class BootFilesTest(testtools.TestCase):
    def test_grub_boots_a_kernel_with_words(self) -> None:
        text = (
            "set timeout=0\nlinux '(http,files:80)/k?a=b' 'x=1' 'y=a b' quiet\ninitrd '(http,files)/i'\nboot\necho no\n"
        )
        expected = {"x": "1", "y": "a b", "quiet": ""}
        plan = boot_files.BootPlan("http://files:80/k?a=b", ("http://files/i",), expected)
        self.assertEqual(plan, boot_files.read_grub(URL, text))
        self.assertIsNone(boot_files.read_grub(URL, "set a=b\nif search x; then boot; fi\nexit\n"))

    def test_grub_stumbles(self) -> None:
        for text, reason in (
            ("boot\n", "load the kernel first"),
            ("linux /k\nboot\n", "no such device"),
            ("linux (https,files)/k\nboot\n", "no such device"),
            ("#!ipxe\nkernel x\n", "can't find command"),
            ("linux 'a\n", "No closing quotation"),
        ):
            self.assertRaisesRegex(boot_files.BootError, reason, boot_files.read_grub, URL, text)

    def test_labels(self) -> None:
        for kernel in ("LINUX", "KERNEL"):
            text = f"DEFAULT a\nAPPEND lost\nLABEL a\n{kernel} http://files/k\nINITRD ../i\nAPPEND x=1 quiet\n"
            plan = boot_files.BootPlan("http://files/k", ("http://server/i",), {"x": "1", "quiet": ""})
            self.assertEqual(plan, boot_files.read_labels(URL, text))
        for text in ("# from disk\n", "LABEL disk\nLOCALBOOT -1\n"):
            self.assertIsNone(boot_files.read_labels(URL, text))
