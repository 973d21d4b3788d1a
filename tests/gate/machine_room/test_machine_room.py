"""From the push of a button to a system on the disk: DHCP, TFTP and HTTP are Ingot's, loaders Debian's."""

import re

import testtools

from tests.gate import switches
from tests.gate.machine_room import room
from tests.gate.machine_room.room import BIOS, HTTP, SECURE, UEFI, Room


class MachineRoomTest(testtools.TestCase):
    """Four machines without any setting in their firmware, each from its first boot to the system on its disk.

    Two are booted twice by the network, before and after they are enrolled; the others by the agent that discovered
    them, as a boot of the agent takes most of a minute without KVM.
    """

    def setUp(self) -> None:
        super().setUp()
        self.room = self.useFixture(Room())

    def test_discovered_accepted_cleaned_deployed_and_booted(self) -> None:
        self.uefi()
        self.bios()
        self.uefi_http_boot()
        self.secure_boot()

    def uefi(self) -> None:
        """Walk the whole way, with an inspection; its agent goes on, and cleans and deploys the machine."""
        uuid, mac = self.discover(UEFI, "uefi")
        self.assertIn("/tftp/snponly.efi to", self.room.boot_log())
        self.room.eventually(lambda: f"{mac},set:enrolled" in room.MACHINES.read_text(), "dnsmasq learns of the node")
        self.room.ask(uuid, "manage", "manageable")
        self.room.switch_off(UEFI)  # the agent that discovered it is not used again
        node = self.room.ask(uuid, "inspect", "manageable")
        self.assertIsNone(node["last_error"])
        self.assertIn("boot_mode:uefi", node["properties"]["capabilities"])
        self.room.agent(uuid)
        self.deploy(UEFI, uuid, "uefi", boots=3)

    def bios(self) -> None:
        uuid, _ = self.discover(BIOS, "bios")
        self.room.ask(uuid, "manage", "manageable")
        self.room.agent(uuid)
        self.deploy(BIOS, uuid, "bios", boots=2)

    def uefi_http_boot(self) -> None:
        uuid, _ = self.discover(HTTP, "uefi")
        log = (self.room.directory / "ingot.log").read_text(errors="replace")
        self.assertIn("GET /boot/loaders/ipxe.efi 200", log)
        self.room.ask(uuid, "manage", "manageable")
        self.room.agent(uuid)
        self.deploy(HTTP, uuid, "uefi", boots=2)

    def secure_boot(self) -> None:
        """Walk the way of a machine that starts only what is signed, shim and GRUB; it goes from VLAN to VLAN."""
        self.room.serve_boot("loader = grub")
        uuid, mac = self.discover(SECURE, "uefi", boot_interface="pxe", network_interface="switch")
        self.assertIn("/tftp/bootx64.efi to", self.room.boot_log())
        self.assertIn("Secure boot enabled", self.room.console_of(SECURE))
        self.assert_served(mac, room.NEW)
        self.connect(uuid)
        self.room.ask(uuid, "manage", "manageable")
        self.room.switch_off(SECURE)  # the agent that discovered it is not used again
        self.room.start(uuid, "provide")
        self.assert_served_by_agent(uuid, mac, room.CLEANING)
        self.room.reach(uuid, "available")
        self.room.switch_off_by_ingot(uuid)  # an agent stays on its VLAN
        self.room.user.post(f"/v1/nodes/{uuid}/vifs", {"id": "web"})
        self.start_deployment(uuid)
        self.assert_served_by_agent(uuid, mac, room.PROVISIONING)
        self.room.reach(uuid, "active")
        self.assertEqual({room.TENANT}, self.room.hear(mac))
        self.check_system(SECURE, uuid, "uefi", boots=4)
        way = [room.NEW, room.CLEANING, None, room.PROVISIONING, None, room.TENANT]
        self.assertEqual(way, self.room.switch.tags(room.PORT))

    def connect(self, uuid: str) -> None:
        """Say to which port of the switch the machine's cable leads."""
        link = {"switch_id": switches.MAC, "switch_info": switches.NAME, "port_id": room.PORT}
        for port in self.room.user.get(f"/v1/nodes/{uuid}/ports")["ports"]:
            self.room.user.patch(f"/v1/ports/{port['uuid']}", {"/local_link_connection": link})

    def assert_served(self, mac: str, vlan: int) -> None:
        """Check that the port is on a VLAN, and that the machine has got its last address there."""
        self.assertEqual(vlan, self.room.switch.tag(room.PORT))
        served = re.findall(rf"DHCPACK\((\w+)\) \S+ {mac}", self.room.boot_log())
        self.assertEqual(f"vlan{vlan}", served[-1])

    def assert_served_by_agent(self, uuid: str, mac: str, vlan: int) -> None:
        """Wait for a new agent; check that it is on a VLAN, as the port is."""
        self.room.wait_for_agent(uuid, f"//10.77.{vlan}.")
        self.assert_served(mac, vlan)

    def discover(self, number: int, boot_mode: str, **fields: str) -> tuple[str, str]:
        """Switch a machine on, and accept it from the inbox.

        :param fields: of the node.
        :return: its UUID and its MAC address.
        """
        mac = self.room.switch_on(number)
        entry = self.room.wait_for_entry(mac)
        self.assertEqual((boot_mode, "x86_64", mac), tuple(entry[f] for f in ("boot_mode", "cpu_arch", "boot_address")))
        node = self.room.user.post(
            f"/ingot/v1/inbox/{entry['uuid']}/accept",
            {
                "name": self.room.rack.machines[number]["name"],
                "driver_info": self.room.bmc_of(number),
                "resource_class": "baremetal",
                "deploy_interface": "direct",
                "inspect_interface": "agent",
                **fields,
            },
        )
        self.assertEqual((entry["uuid"], "enroll"), (node["uuid"], node["provision_state"]))
        self.assertEqual([], self.room.user.get("/ingot/v1/inbox")["inbox"])
        return node["uuid"], mac

    def deploy(self, number: int, uuid: str, firmware: str, boots: int) -> None:
        """Clean a machine, deploy it, and check what boots from its disk; then switch it off.

        :param boots: how often it has been booted then, from its first boot on.
        """
        self.room.ask(uuid, "provide", "available")
        self.start_deployment(uuid)
        self.room.reach(uuid, "active")
        self.check_system(number, uuid, firmware, boots)

    def start_deployment(self, uuid: str) -> None:
        self.room.choose_image(uuid, "image.raw")
        self.room.start(uuid, "active", configdrive={"meta_data": {"uuid": uuid, "name": "real"}})

    def check_system(self, number: int, uuid: str, firmware: str, boots: int) -> None:
        """Check what boots from a machine's disk; then switch it off."""
        system = self.room.wait_for_image()
        self.room.check_facts(system, uuid, firmware)
        self.assertEqual("yes" if number == SECURE else "no", system.facts["secure_boot"])
        self.assertEqual(boots, self.room.rack.control.machine(self.room.name)["boots"])
        self.room.switch_off(number)
