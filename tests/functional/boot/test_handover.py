"""Lines for an operator's own DHCP server, read by that server."""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess

import fixtures
import testtools

from ingot.boot.cmd import boot
from tests import command_process, patience

OWN = """port=0
interface=lo
dhcp-range=192.0.2.50,192.0.2.99,255.255.255.0,1h
enable-tftp
tftp-root=/
"""
"""What an operator's dnsmasq has besides."""


class PrintedLines(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(command_process.CommandProcess())

    def print_lines(self, chain: str) -> str:
        """Return what ``ingot-boot print dnsmasq`` prints."""
        config = self.folder / "ingot.conf"
        text = f"[DEFAULT]\nmy_ip = 192.0.2.1\nstate_path = {self.folder}\n[boot_services]\nloader = {chain}\n"
        config.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = boot.main(["--config-file", str(config), "print", "dnsmasq"])
        self.assertEqual(0, status)
        return output.getvalue()

    def test_dnsmasq_reads_them_beside_an_operators_own(self) -> None:
        program = shutil.which("dnsmasq", path=f"{os.environ['PATH']}:/usr/sbin")
        if program is None:
            self.skipTest("Debian's dnsmasq-base is not installed")
        for chain in ("ipxe", "grub"):
            lines = self.print_lines(chain)
            self.assertIn("dhcp-boot=", lines)
            for text, status in ((lines, 0), (OWN + lines, 0), (f"{lines}dhcp-boots=x\n", 1)):
                file = self.folder / "dnsmasq.conf"
                file.write_text(text)
                tried = subprocess.run(
                    [program, "--test", f"--conf-file={file}"],
                    capture_output=True,
                    text=True,
                    timeout=patience.seconds(20),
                    check=False,
                )
                self.assertEqual(status, tried.returncode, tried.stderr)
