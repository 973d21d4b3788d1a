"""Lines for an operator's own DHCP server, read by that server."""

import contextlib
import io
import os
import pathlib
import shutil
import subprocess
from typing import NamedTuple

import fixtures
import testtools

from ingot.boot.cmd import boot
from tests import command_process, patience


class Server(NamedTuple):
    """
    :param package: of Debian.
    :param command: what has it read a file, without running.
    :param own: what an operator's server has besides; ``{}`` is where the lines go.
    :param word: what the lines have.
    :param unknown: what the server does not know in its place.
    """

    package: str
    command: tuple[str, ...]
    own: str
    word: str
    unknown: str


SERVERS = {
    "dnsmasq": Server(
        "dnsmasq-base",
        ("dnsmasq", "--test", "-C"),
        "port=0\ninterface=lo\ndhcp-range=192.0.2.50,192.0.2.99,255.255.255.0,1h\nenable-tftp\ntftp-root=/\n{}",
        "dhcp-boot=",
        "dhcp-boots=",
    ),
    "kea": Server("kea-dhcp4-server", ("kea-dhcp4", "-t"), '{{"Dhcp4":\n{}\n}}', '"test"', '"tests"'),
    "dhcpd": Server(
        "isc-dhcp-server",
        ("dhcpd", "-t", "-cf"),
        "subnet 192.0.2.0 netmask 255.255.255.0 {{ range 192.0.2.50 192.0.2.99; }}\n{}",
        "filename ",
        "filenames ",
    ),
}


class PrintedLines(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(command_process.CommandProcess())

    def print_lines(self, server: str, chain: str) -> str:
        """Return what ``ingot-boot print`` prints for a DHCP server."""
        config = self.folder / "ingot.conf"
        text = f"[DEFAULT]\nmy_ip = 192.0.2.1\nstate_path = {self.folder}\n[boot_services]\nloader = {chain}\n"
        config.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = boot.main(["--config-file", str(config), "print", server])
        self.assertEqual(0, status)
        return output.getvalue()

    def check(self, name: str) -> None:
        """Check that a server reads what is printed for it, and refuses what it does not know."""
        server = SERVERS[name]
        path = f"{os.environ['PATH']}:/usr/sbin"
        if shutil.which(server.command[0], path=path) is None:
            self.skipTest(f"Debian's {server.package} is not installed")
        for chain in ("ipxe", "grub"):
            lines = self.print_lines(name, chain)
            self.assertIn(server.word, lines)
            unknown = lines.replace(server.word, server.unknown)
            self.assertEqual((0, 1), (self.read(server, lines, path), self.read(server, unknown, path)))

    def read(self, server: Server, lines: str, path: str) -> int:
        """Return the exit status of a server that reads a configuration."""
        file = self.folder / "server.conf"
        file.write_text(server.own.format(lines))
        command = ["env", f"PATH={path}", *server.command, str(file)]
        limit = patience.seconds(20)
        tried = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
        self.addDetail("said", testtools.content.text_content(tried.stdout + tried.stderr))
        return tried.returncode

    def test_dnsmasq_reads_them(self) -> None:
        self.check("dnsmasq")

    def test_kea_reads_them(self) -> None:
        self.check("kea")

    def test_dhcpd_reads_them(self) -> None:
        self.check("dhcpd")
