"""Without DHCP and iPXE: a BMC inserts an image that the API makes; secure boot stays on to the deployed system."""

import pathlib

import testtools

from tests.gate.real_machine import traffic
from tests.gate.real_machine.bench import PLACE, STORY, Bench

ARGUMENTS = "console=ttyS0,115200"  # and not quiet: the kernel is to say how it was started
DEPLOY = {
    **STORY,
    "deploy_kernel": f"file://{PLACE}/deploy/vmlinuz",
    "deploy_ramdisk": f"file://{PLACE}/deploy/initrd.img",
    "file_url_allowed_paths": str(PLACE / "deploy"),
    "signed_loader_path": str(PLACE / "deploy/loaders"),
}
ADDRESS = "10.0.2.15"  # to which QEMU forwards the agent's port
ROUTER = "10.0.2.2"


class VirtualMediaTest(testtools.TestCase):
    """One machine, act by act: a boot of the agent takes most of a minute without KVM."""

    def setUp(self) -> None:
        super().setUp()
        self.bench = self.useFixture(
            Bench("media", deploy=DEPLOY, rack={"redfish_base_port": 0, "record_traffic": True})
        )
        (self.mac,) = self.bench.machine["macs"]

    def test_cleaned_and_deployed_on_a_mirror_with_secure_boot_and_static_addresses(self) -> None:
        self.uuid = self.enroll()
        self.bench.ask(self.uuid, "manage", "manageable")
        self.set_secure_boot()
        self.provide()
        self.deploy_on_a_mirror()
        self.check_traffic()

    def enroll(self) -> str:
        bench = self.bench
        info = {
            "redfish_address": bench.machine["redfish"]["address"],
            "redfish_system_id": bench.machine["redfish"]["system"],
            "redfish_username": "admin",
            "redfish_password": "a password",
            "redfish_verify_ca": bench.rack.description["redfish_ca_file"],
            "kernel_append_params": f"{ARGUMENTS} {bench.machine['kernel_arguments']}",
        }
        link = {"id": "card", "type": "phy", "ethernet_mac_address": self.mac}
        route = {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": ROUTER}
        network = {
            "id": "provisioning",
            "type": "ipv4",
            "link": "card",
            "network_id": "provisioning",
            "routes": [route],
        }
        network |= {"ip_address": ADDRESS, "netmask": "255.255.255.0"}
        interfaces = {"driver": "redfish", "boot_interface": "redfish-virtual-media", "inspect_interface": "no-inspect"}
        data = {"links": [link], "networks": [network], "services": []}
        uuid = bench.enroll("uefi", driver_info=info, network_data=data, **interfaces)
        for port in bench.user.get(f"/v1/nodes/{uuid}/ports")["ports"]:
            bench.user.patch(f"/v1/ports/{port['uuid']}", {"/pxe_enabled": False})
        return uuid

    def set_secure_boot(self) -> None:
        self.bench.user.put(f"/v1/nodes/{self.uuid}/states/secure_boot", {"target": True})
        self.bench.eventually(lambda: self.bench.user.node(self.uuid)["secure_boot"], "secure boot is on")

    def provide(self) -> None:
        """Provide the machine; check how its agent was booted, and that the first who asks does not get its token."""
        self.bench.start(self.uuid, "provide")
        self.bench.eventually(lambda: self.bench.user.node(self.uuid)["provision_state"] == "clean wait", "it boots")
        stranger = self.bench.user.get(f"/v1/lookup?addresses={self.mac}")
        self.assertEqual("******", stranger["config"]["agent_token"])
        self.bench.agent(self.uuid)
        self.assertTrue(self.bench.has_said("Secure boot enabled"), "the kernel was not started securely")
        self.assertTrue(self.bench.has_said("network is up as the node's network_data says"))
        self.assertFalse(self.bench.has_said("ipa-agent-token"), "the console shows the agent's token")
        self.bench.reach(self.uuid, "available")

    def deploy_on_a_mirror(self) -> None:
        bench = self.bench
        bench.request_mirror(self.uuid)
        bench.choose_image(self.uuid, "image.qcow2", traits=[bench.MIRROR])
        bench.ask(self.uuid, "active", "active", configdrive={"meta_data": {"uuid": self.uuid, "name": "media"}})
        system = bench.wait_for_image()
        bench.check_facts(system, self.uuid, "uefi")
        bench.check_mirror(system)
        self.assertEqual("yes", system.facts["secure_boot"])

    def check_traffic(self) -> None:
        """Check that from the first boot on the machine has asked no one for an address or a file to boot."""
        directory = pathlib.Path(self.bench.rack.control.machine(self.bench.name)["console"]).parent
        sent = traffic.count_sent(directory, self.mac)
        self.bench.say(f"the machine sent {dict(sent)}")
        self.assertLess(10, sum(count for (protocol, _), count in sent.items() if protocol == "tcp"))
        self.assertEqual(set(), {port for protocol, port in sent if protocol == "udp"} & {*traffic.DHCP, traffic.TFTP})
        self.assertNotIn("/boot/ipxe/", (self.bench.directory / "ingot.log").read_text(errors="replace"))
