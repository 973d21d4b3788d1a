"""Without iPXE: UEFI starts Debian's signed shim and GRUB by TFTP, and GRUB asks the API what to boot, by HTTP."""

import shutil

import testtools

from tests.gate.real_machine.bench import PLACE, Bench

FIRST = "set timeout=0\nconfigfile (http,{server})/boot/grub/grub.cfg-01-$net_default_mac\n"
"""What an operator has the TFTP server give to every GRUB, at grub/grub.cfg."""


class LoadersTest(testtools.TestCase):
    def test_signed_grub_boots_the_agent_with_secure_boot_on(self) -> None:
        root = PLACE / "runs" / "grub-tftp"
        settings = {"tftp_root": str(root), "boot_url": "bootx64.efi", "redfish_base_port": 0}
        bench = self.useFixture(
            Bench("grub", rack=settings, options={"pxe": {"kernel_append_params": "console=ttyS0,115200"}})
        )
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(PLACE / "netboot", root)
        (root / "grub").mkdir()
        (root / "grub" / "grub.cfg").write_text(FIRST.format(server=bench.server))
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
        found = bench.ask(node, "inspect", "manageable")
        self.assertIsNone(found["last_error"])
        self.assertEqual("x86_64", found["properties"]["cpu_arch"])
        self.assertTrue(bench.has_said("Secure boot enabled"), "the kernel was not started securely")
        log = (bench.directory / "ingot.log").read_text(errors="replace")
        self.assertIn("GET /boot/grub/grub.cfg-01-52:54:00:00:00:00", log)
        self.assertNotIn("/boot/ipxe", log)
