"""From the push of a button to a system on the disk: DHCP, TFTP and HTTP are Ingot's, loaders Debian's."""

import testtools

from tests.gate.machine_room import room
from tests.gate.machine_room.room import BIOS, HTTP, SECURE, STORY, Room


class MachineRoomTest(testtools.TestCase):
    """The story of one machine; beside it, while that one is busy, three others boot the agent in their ways."""

    def test_discovered_accepted_inspected_cleaned_deployed_and_booted(self) -> None:
        self.room = self.useFixture(Room())
        self.discover()
        self.inspect_while_another_boots_by_http()
        self.clean_while_another_boots_securely()
        self.deploy()

    def discover(self) -> None:
        mac, other = self.room.switch_on(STORY), self.room.switch_on(BIOS)
        entry = self.room.wait_for_entry(mac)
        self.assertEqual(("uefi", "x86_64"), (entry["boot_mode"], entry["cpu_arch"]))
        self.assertEqual(mac, entry["boot_address"])
        self.assertIn("/tftp/snponly.efi to", self.room.boot_log())
        bios = self.room.wait_for_entry(other)
        self.assertEqual("bios", bios["boot_mode"])
        self.room.switch_off(BIOS)
        self.room.user.request("DELETE", f"/ingot/v1/inbox/{bios['uuid']}")
        node = self.room.user.post(
            f"/ingot/v1/inbox/{entry['uuid']}/accept",
            {
                "name": self.room.name,
                "driver_info": self.room.bmc_of(STORY),
                "resource_class": "baremetal",
                "deploy_interface": "direct",
                "inspect_interface": "agent",
            },
        )
        self.assertEqual((entry["uuid"], "enroll"), (node["uuid"], node["provision_state"]))
        self.assertEqual([], self.room.user.get("/ingot/v1/inbox")["inbox"])
        self.uuid = node["uuid"]
        self.room.eventually(lambda: f"{mac},set:enrolled" in self.machines(), "dnsmasq learns of the node")

    def machines(self) -> str:
        """Return the machines that dnsmasq answers as enrolled ones."""
        return room.MACHINES.read_text()

    def inspect_while_another_boots_by_http(self) -> None:
        self.room.ask(self.uuid, "manage", "manageable")
        mac = self.room.switch_on(HTTP)
        self.room.start(self.uuid, "inspect")
        self.room.wait_for_entry(mac)
        self.room.switch_off(HTTP)
        log = (self.room.directory / "ingot.log").read_text(errors="replace")
        self.assertIn("GET /boot/loaders/ipxe.efi 200", log)
        node = self.room.reach(self.uuid, "manageable")
        self.assertIsNone(node["last_error"])
        self.assertIn("boot_mode:uefi", node["properties"]["capabilities"])

    def clean_while_another_boots_securely(self) -> None:
        """Boot a machine that starts only what is signed: its node has the boot interface pxe."""
        machine = self.room.rack.machines[SECURE]
        secure = self.room.user.post(
            "/v1/nodes",
            {
                "name": machine["name"],
                "driver": "ipmi",
                "driver_info": self.room.bmc_of(SECURE),
                "properties": {"capabilities": "boot_mode:uefi"},
                "boot_interface": "pxe",
                "inspect_interface": "agent",
            },
        )["uuid"]
        self.room.user.post("/v1/ports", {"node_uuid": secure, "address": machine["macs"][0]})
        self.room.ask(secure, "manage", "manageable")
        self.room.start(self.uuid, "provide")
        self.room.ask(secure, "inspect", "manageable")
        self.assertIn("/tftp/bootx64.efi to", self.room.boot_log())
        self.assertIn("Secure boot enabled", self.room.console_of(SECURE))
        self.room.reach(self.uuid, "available")

    def deploy(self) -> None:
        self.room.choose_image(self.uuid, "image.raw")
        drive = {"meta_data": {"uuid": self.uuid, "name": "real"}}
        self.room.ask(self.uuid, "active", "active", configdrive=drive)
        self.room.check_facts(self.room.wait_for_image(), self.uuid, "uefi")
