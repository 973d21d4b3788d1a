"""Machines of the rack that boot without DHCP and iPXE: from an image that their BMC fetches of the API."""

import hashlib
import pathlib
from typing import Any

import fixtures
import testtools

from tests.functional.deployment import lab

BODY = {
    "driver": "redfish",
    "resource_class": "baremetal",
    "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
    "network_data": {"links": [], "networks": [], "services": []},
}
LOADERS = ("shim/shimx64.efi.signed", "grub/x86_64-efi-signed/grubx64.efi.signed")


class VirtualMedia(testtools.TestCase):
    boot_interface = "redfish-virtual-media"

    def setUp(self) -> None:
        super().setUp()
        self.loaders = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in LOADERS:
            path = self.loaders / name
            path.parent.mkdir(parents=True)
            path.write_bytes(hashlib.sha512(name.encode()).digest() * 5000)
        options = {
            "DEFAULT": {"enabled_hardware_types": "redfish"},
            "deploy": {"signed_loader_path": str(self.loaders)},
            "conductor": {"automated_clean": False},
        }
        self.lab = self.useFixture(lab.Lab(rack={"redfish_base_port": 0}, options=options))
        self.machine = self.lab.rack.machines[0]

    def enroll(self, **given: Any) -> str:
        info = {
            "redfish_address": self.machine["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": self.lab.rack.description["redfish_ca_file"],
        }
        body = {**BODY, "boot_interface": self.boot_interface, **given, "driver_info": info}
        node: str = self.lab.user.post("/v1/nodes", body)["uuid"]
        for address in self.machine["macs"]:
            self.lab.user.post("/v1/ports", {"node_uuid": node, "address": address, "pxe_enabled": False})
        self.lab.user.provision(node, "manage")
        self.lab.reach(node, "manageable")
        self.lab.user.provision(node, "provide")
        self.lab.reach(node, "available")
        return node

    def assert_booted_from_media(self) -> None:
        log = "\n".join(self.lab.rack.control.log(self.machine["name"]))
        self.assertIn("media boot", log)
        self.assertNotIn("network boot", log)

    def test_a_machine_is_deployed_without_a_network_that_boots(self) -> None:
        node = self.enroll()
        self.lab.set_image(node)
        self.lab.user.provision(node, "active")
        self.lab.reach(node, "active")
        self.assertTrue(self.lab.holds_image(0))
        self.assert_booted_from_media()
        media = self.lab.user.get(f"/v1/nodes/{node}/vmedia")
        self.assertEqual({False}, {drive["inserted"] for drive in media}, media)
