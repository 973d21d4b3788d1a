"""Machines whose loader is not iPXE: deployed with what GRUB, PXELINUX and Petitboot of the rack read."""

import testtools

from tests.functional.deployment import lab


class TestLoaders(testtools.TestCase):
    def deploy(self, loader: str, boot_interface: str, asked: str) -> None:
        """Clean and deploy a machine, and look at what it asked for."""
        options = {"DEFAULT": {"enabled_boot_interfaces": "ipxe,pxe,petitboot"}}
        bench = self.useFixture(lab.Lab(rack={"boot_loader": loader}, options=options))
        machine = bench.rack.machines[0]
        node = bench.enroll(boot_interface=boot_interface)
        bench.make_available(node)
        bench.set_image(node)
        bench.user.provision(node, "active")
        bench.reach(node, "active")
        bench.eventually(lambda: bench.rack.control.machine(machine["name"])["state"] == "os", "its own system runs")
        log = "\n".join(bench.rack.control.log(machine["name"]))
        self.assertIn(f"GET {bench.url}{asked}", log)
        self.assertNotIn("/boot/ipxe", log)
        self.assertIsNotNone(bench.user.node(node)["driver_internal_info"]["boot_script_at"])

    def test_grub(self) -> None:
        self.deploy("grub", "pxe", "/boot/grub/grub.cfg-01-52:54:00:")

    def test_pxelinux(self) -> None:
        self.deploy("pxelinux", "pxe", "/boot/pxelinux/pxelinux.cfg/01-52-54-00-")

    def test_petitboot(self) -> None:
        self.deploy("petitboot", "petitboot", "/boot/petitboot/pxelinux.cfg/01-52-54-00-")
