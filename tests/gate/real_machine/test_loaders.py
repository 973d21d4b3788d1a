"""Without iPXE: a BIOS starts PXELINUX by TFTP, which asks the API what to boot, by HTTP, as Petitboot does.

The machine room has UEFI start the signed shim and GRUB, with secure boot on.
"""

import pathlib
import shutil

import testtools

from tests.gate.real_machine.bench import PLACE, Bench

# QEMU's DHCP server has no option 210, by which PXELINUX would find this alone.
_SECOND = "DEFAULT api\nLABEL api\nCONFIG http://{server}/boot/pxelinux/pxelinux.cfg/01-{mac}\n"

_PXELINUX = ("/usr/lib/PXELINUX/lpxelinux.0", "/usr/lib/syslinux/modules/bios/ldlinux.c32")


class LoadersTest(testtools.TestCase):
    def test_pxelinux_boots_the_agent(self) -> None:
        root = self.empty_directory()
        bench = self.useFixture(Bench("pxe", rack={"tftp_root": str(root), "boot_url": "lpxelinux.0"}))
        for file in _PXELINUX:
            shutil.copyfile(file, root / pathlib.Path(file).name)
        mac = bench.machine["macs"][0].replace(":", "-")
        (root / "pxelinux.cfg").mkdir()
        (root / "pxelinux.cfg" / f"01-{mac}").write_text(_SECOND.format(server=bench.server, mac=mac))
        node = bench.enroll("bios", boot_interface="pxe")
        bench.ask(node, "manage", "manageable")
        found = bench.ask(node, "inspect", "manageable")
        self.assertIsNone(found["last_error"])
        self.assertEqual("x86_64", found["properties"]["cpu_arch"])
        log = (bench.directory / "ingot.log").read_text(errors="replace")
        self.assertIn(f"GET /boot/pxelinux/pxelinux.cfg/01-{mac}", log)
        self.assertNotIn("/boot/ipxe", log)

    def empty_directory(self) -> pathlib.Path:
        """Return the directory of the TFTP server."""
        root = PLACE / "runs" / "pxe-tftp"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        return root
