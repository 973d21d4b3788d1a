"""Without iPXE scripts: loaders of Debian start by TFTP and ask the API what to boot, by HTTP.

UEFI starts the signed shim and GRUB, with secure boot on; a BIOS starts PXELINUX, which reads what Petitboot reads.
"""

import pathlib
import shutil

import testtools

from tests.gate.real_machine.bench import PLACE, Bench

FIRST = "set timeout=0\nconfigfile (http,{server})/boot/grub/grub.cfg-01-$net_default_mac\n"
"""What an operator has the TFTP server give to every GRUB, at grub/grub.cfg."""

# QEMU's DHCP server has no option 210, by which PXELINUX would find this alone.
_SECOND = "DEFAULT api\nLABEL api\nCONFIG http://{server}/boot/pxelinux/pxelinux.cfg/01-{mac}\n"

_PXELINUX = ("/usr/lib/PXELINUX/lpxelinux.0", "/usr/lib/syslinux/modules/bios/ldlinux.c32")


class LoadersTest(testtools.TestCase):
    def start(self, name: str, boot_file: str) -> Bench:
        """Start a machine's surroundings, with an empty directory for the TFTP server."""
        self.root = PLACE / "runs" / f"{name}-tftp"
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        rack = {"tftp_root": str(self.root), "boot_url": boot_file, "redfish_base_port": 0}
        options = {"pxe": {"kernel_append_params": "console=ttyS0,115200"}}
        return self.useFixture(Bench(name, rack=rack, options=options))

    def inspect(self, bench: Bench, node: str, asked: str) -> None:
        """Have the agent booted and its inventory taken; check what the machine asked for."""
        found = bench.ask(node, "inspect", "manageable")
        self.assertIsNone(found["last_error"])
        self.assertEqual("x86_64", found["properties"]["cpu_arch"])
        log = (bench.directory / "ingot.log").read_text(errors="replace")
        self.assertIn(f"GET {asked}", log)
        self.assertNotIn("/boot/ipxe", log)

    def test_signed_grub_boots_the_agent_with_secure_boot_on(self) -> None:
        bench = self.start("grub", "bootx64.efi")
        shutil.copytree(PLACE / "netboot", self.root, dirs_exist_ok=True)
        (self.root / "grub").mkdir()
        (self.root / "grub" / "grub.cfg").write_text(FIRST.format(server=bench.server))
        info = {
            "redfish_address": bench.machine["redfish"]["address"],
            "redfish_system_id": bench.machine["redfish"]["system"],
            "redfish_username": "admin",
            "redfish_password": "a password",
            "redfish_verify_ca": bench.rack.description["redfish_ca_file"],
            "kernel_append_params": bench.kernel_arguments,
        }
        node = bench.enroll("uefi", driver="redfish", boot_interface="pxe", driver_info=info)
        bench.ask(node, "manage", "manageable")
        bench.user.put(f"/v1/nodes/{node}/states/secure_boot", {"target": True})
        bench.eventually(lambda: bench.user.node(node)["secure_boot"] is True, "secure boot is on")
        self.inspect(bench, node, "/boot/grub/grub.cfg-01-52:54:00:00:00:00")
        self.assertTrue(bench.has_said("Secure boot enabled"), "the kernel was not started securely")

    def test_pxelinux_boots_the_agent(self) -> None:
        bench = self.start("pxe", "lpxelinux.0")
        for file in _PXELINUX:
            shutil.copyfile(file, self.root / pathlib.Path(file).name)
        mac = bench.machine["macs"][0].replace(":", "-")
        (self.root / "pxelinux.cfg").mkdir()
        (self.root / "pxelinux.cfg" / f"01-{mac}").write_text(_SECOND.format(server=bench.server, mac=mac))
        node = bench.enroll("bios", boot_interface="pxe")
        bench.ask(node, "manage", "manageable")
        self.inspect(bench, node, f"/boot/pxelinux/pxelinux.cfg/01-{mac}")
