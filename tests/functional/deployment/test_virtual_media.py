"""Machines that boot without DHCP and iPXE, from an image that their BMC fetches of the API: on the rack, and as far as
sushy-tools' emulator has it, there."""

import hashlib
import pathlib
import re
import signal
from typing import Any

import fixtures
import testtools

from ingot.common.media import iso
from ingot.common.media.content import Content
from tests.functional import redfish_emulator
from tests.functional.deployment import lab

BODY = {
    "driver": "redfish",
    "resource_class": "baremetal",
    "properties": {"capabilities": "boot_mode:uefi", "cpu_arch": "x86_64"},
}
NETWORK_DATA = {"links": [], "networks": [], "services": []}
ACCESS = {"redfish_username": redfish_emulator.USER, "redfish_password": redfish_emulator.PASSWORD}
LOADERS = ("shim/shimx64.efi.signed", "grub/x86_64-efi-signed/grubx64.efi.signed")


class MediaCase(testtools.TestCase):
    def open_lab(self, **settings: Any) -> lab.Lab:
        """Return a laboratory that has boot loaders."""
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
        return self.useFixture(lab.Lab(rack=settings, options=options))


class EmulatedMedia(MediaCase):
    def test_a_bmc_of_another_make_fetches_the_image(self) -> None:
        bmc = self.useFixture(redfish_emulator.Emulator(machines=1, guarded=True))
        bench = self.open_lab()
        info = {"redfish_address": bmc.url, "redfish_system_id": bmc.systems[0], **ACCESS}
        body = {**BODY, "boot_interface": "redfish-virtual-media", "driver_info": info}
        node = bench.user.post("/v1/nodes", body)["uuid"]
        for verb, state in (("manage", "manageable"), ("provide", "available")):
            bench.user.provision(node, verb)
            bench.reach(node, state)
        bench.set_image(node)
        bench.user.provision(node, "active")
        bench.reach(node, "wait call-back")

        def list_inserted() -> list[Any]:
            return [one for one in bench.user.get(f"/v1/nodes/{node}/vmedia") if one["inserted"]]

        (drive,) = bench.eventually(list_inserted, "the image is in a drive")  # the node may wait before that, too
        self.assertIn(f"/boot/media/{node}/******/", drive["image"])  # the medium has the agent's token

        def boots() -> bool:
            return (bmc.system()["PowerState"], bmc.system()["Boot"]["BootSourceOverrideTarget"]) == ("On", "Cd")

        bench.eventually(boots, "the machine boots from that drive")
        self.assertIn("boot_script_at", bench.user.node(node)["driver_internal_info"], "it has fetched the image")
        link = bmc.get(f"{bmc.system()['VirtualMedia']['@odata.id']}/Cd")["Image"]
        log = (bench.directory / "conductor-0.log").read_text()
        self.assertIn(f"/boot/media/{node}/******/boot.iso", log)
        self.assertNotIn(link.split("/")[-2], log)
        bench.process.stop(signal.SIGKILL)
        bench.process.start()
        bench.eventually(lambda: bench.user.get("/v1/conductors")["conductors"], "Ingot serves again")
        again = bench.user.request("HEAD", link.removeprefix(bench.url))
        self.assertEqual(200, again.status_code, "another process makes the same image")
        bench.user.provision(node, "deleted")
        bench.reach(node, "available")
        self.assertEqual(404, bench.user.request("HEAD", link.removeprefix(bench.url)).status_code)
        self.assertFalse(any(one["inserted"] for one in bench.user.get(f"/v1/nodes/{node}/vmedia")))


class MediaBench(MediaCase):
    """A laboratory with a machine that boots without a network."""

    vendor = "generic"

    def setUp(self) -> None:
        super().setUp()
        self.lab = self.open_lab(redfish_base_port=0, redfish_vendor=self.vendor)
        self.machine = self.lab.rack.machines[0]

    def enroll(
        self, boot_interface: str = "redfish-virtual-media", deploy_interface: str = "direct",
        network_data: Any = None, **more: Any,
    ) -> str:  # fmt: skip
        """Return a node that can be deployed.

        :param more: of driver_info.
        """
        info = {
            "redfish_address": self.machine["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": self.lab.rack.description["redfish_ca_file"],
            **more,
        }
        interfaces = {"boot_interface": boot_interface, "deploy_interface": deploy_interface}
        body = {**BODY, **interfaces, "driver_info": info, "network_data": network_data or {}}
        if not network_data:
            del body["network_data"]
        node: str = self.lab.user.post("/v1/nodes", body)["uuid"]
        for address in self.machine["macs"]:
            self.lab.user.post("/v1/ports", {"node_uuid": node, "address": address, "pxe_enabled": False})
        self.lab.user.provision(node, "manage")
        self.lab.reach(node, "manageable")
        self.lab.user.provision(node, "provide")
        self.lab.reach(node, "available")
        return node

    def deploy(self, node: str) -> None:
        self.lab.user.provision(node, "active")
        self.lab.reach(node, "active")

    def read_log(self) -> str:
        return "\n".join(self.lab.rack.control.log(self.machine["name"]))

    def assert_booted_without_network(self) -> None:
        self.assertIn("media boot", self.read_log())
        self.assertNotIn("network boot", self.read_log())

    def list_inserted(self, node: str) -> list[str]:
        media = self.lab.user.get(f"/v1/nodes/{node}/vmedia")
        return [drive["image"] for drive in media if drive["inserted"]]

    def find_second(self) -> str:
        """Return the link to the second medium, which Ingot shows to the BMC only."""
        media = self.lab.rack.control.machine(self.machine["name"])["media"].values()
        return next(one["image"] for one in media if one["image"].endswith("/config.img"))

    def publish_image(self, arguments: str) -> str:
        """Return the URL of a finished image, whose kernel has these arguments."""
        files = {"/boot/kernel": b"kernel", "/boot/grub/grub.cfg": f"linux /boot/kernel {arguments}\n".encode()}
        image = iso.lay_out({name: Content(content) for name, content in files.items()}, None, "LIVE")
        (self.lab.directory / "files" / "live.iso").write_bytes(b"".join(image.read(0, image.size)))
        return f"{self.lab.files.url}/live.iso"


class VirtualMedia(MediaBench):
    def test_a_machine_is_deployed_and_its_drive_is_empty_afterwards(self) -> None:
        node = self.enroll(network_data=NETWORK_DATA)
        self.lab.set_image(node)
        self.deploy(node)
        self.assertTrue(self.lab.holds_image(0))
        self.assert_booted_without_network()
        self.assertEqual([], self.list_inserted(node))
        self.assertEqual("disk", self.lab.user.get(f"/v1/nodes/{node}/management/boot_device")["boot_device"])

    def test_the_firmware_fetches_the_image_itself(self) -> None:
        node = self.enroll(boot_interface="redfish-https")
        self.lab.set_image(node)
        self.deploy(node)
        self.assertTrue(self.lab.holds_image(0))
        self.assert_booted_without_network()

    def test_a_live_image_is_booted_until_the_node_is_undeployed(self) -> None:
        node = self.enroll(deploy_interface="ramdisk")
        image = self.publish_image("root=/dev/ram0")
        self.lab.user.patch(f"/v1/nodes/{node}", {"/instance_info": {"boot_iso": image}})
        self.deploy(node)
        (inserted,) = self.list_inserted(node)
        self.assertIn(f"/boot/media/{node}/******/", inserted)
        started = re.compile(f"os: started from {re.escape(inserted)}".replace(re.escape("******"), "[^/]+"))
        self.lab.eventually(lambda: started.search(self.read_log()), "the live system")
        self.lab.user.provision(node, "deleted")
        self.lab.reach(node, "available")
        self.assertEqual([], self.list_inserted(node))

    def test_a_finished_image_of_the_agent_is_used_as_it_is(self) -> None:
        image = self.publish_image(f"ipa-api-url={self.lab.url}")
        node = self.enroll(deploy_iso=image, ramdisk_image_download_source="http")
        self.lab.set_image(node)
        self.deploy(node)
        self.assertTrue(self.lab.holds_image(0))
        self.assertIn(f"media boot: {image}", self.read_log())

    def test_the_agent_of_a_finished_image_gets_its_settings_in_a_second_drive(self) -> None:
        image = self.publish_image("boot_method=vmedia")
        node = self.enroll(deploy_iso=image, config_via_removable=True)
        self.lab.set_image(node)
        self.lab.user.provision(node, "active")
        self.lab.eventually(lambda: len(self.list_inserted(node)) == 2, "two media are in drives")
        second = self.find_second()
        self.lab.reach(node, "active")
        self.assertTrue(self.lab.holds_image(0))
        self.assertEqual([], self.list_inserted(node))
        self.assertEqual(404, self.lab.user.request("HEAD", second.removeprefix(self.lab.url)).status_code)

    def test_no_stranger_gets_the_token_of_an_agent_that_has_it_from_its_medium(self) -> None:
        node = self.enroll(force_persistent_boot_device="Always")
        self.lab.set_image(node)
        self.lab.rack.control.order_fault(self.machine["name"], "boot_hang")
        self.lab.user.provision(node, "active")
        self.lab.reach(node, "wait call-back")
        stranger = self.lab.user.get(f"/v1/lookup?addresses={self.machine['macs'][0]}")
        self.assertEqual("******", stranger["config"]["agent_token"])
        self.lab.rack.control.clear_faults(self.machine["name"])
        self.lab.rack.control.power(self.machine["name"], "reset")
        self.lab.reach(node, "active")
        self.assertTrue(self.lab.holds_image(0))

    def test_a_live_image_has_its_config_drive_beside_it(self) -> None:
        node = self.enroll(deploy_interface="ramdisk")
        image = self.publish_image("root=/dev/ram0")
        self.lab.user.patch(f"/v1/nodes/{node}", {"/instance_info": {"boot_iso": image}})
        self.lab.user.provision(node, "active", configdrive={"meta_data": {"name": "live"}})
        self.lab.reach(node, "active")
        content = self.lab.user.request("GET", self.find_second().removeprefix(self.lab.url)).content
        self.assertIn(b"CD001\x01", content)
        self.assertIn(b'"name": "live"', content)
        self.lab.user.provision(node, "deleted")
        self.lab.reach(node, "available")
        self.assertEqual([], self.list_inserted(node))

    def test_a_bmc_that_inserts_nothing_is_named(self) -> None:
        node = self.enroll()
        self.lab.set_image(node)
        self.lab.rack.control.order_fault(self.machine["name"], "redfish_media_ignored")
        self.lab.user.provision(node, "active")
        self.lab.eventually(
            lambda: self.lab.user.node(node)["provision_state"] == "deploy failed", "a refusal of the deployment"
        )
        self.assertIn("shows none in its drives", self.lab.user.node(node)["last_error"])

    def test_what_the_api_lacks_is_known_before_the_machine_boots(self) -> None:
        (self.loaders / LOADERS[1]).unlink()
        node = self.enroll()
        for address, expected in ((self.lab.url, "grub-efi-amd64-signed"), (self.lab.files.url, "external_http_url")):
            self.lab.user.patch(f"/v1/nodes/{node}", {"/driver_info/external_http_url": address})
            self.lab.set_image(node)
            self.lab.user.provision(node, "active")
            self.lab.eventually(lambda: self.lab.user.node(node)["last_error"], "an error")
            self.assertIn(expected, self.lab.user.node(node)["last_error"])
            self.lab.user.provision(node, "deleted")
            self.lab.reach(node, "available")
        self.assertNotIn("media boot", self.read_log())


class MediaOfDell(MediaBench):
    """Their boot target ``Cd`` is a drive in the machine."""

    vendor = "dell"

    def test_a_machine_boots_from_a_virtual_drive_though_no_boot_target_means_it(self) -> None:
        node = self.enroll(vmedia_transport_protocol="http")
        self.lab.set_image(node)
        self.deploy(node)
        self.assertTrue(self.lab.holds_image(0))
        self.assert_booted_without_network()
        self.assertIn("/boot.iso by HTTP", self.read_log())
        self.assertEqual([], self.list_inserted(node))


class MediaOfOneDrive(MediaBench):
    vendor = "supermicro"

    def test_a_bmc_without_a_second_drive_is_named(self) -> None:
        node = self.enroll(deploy_interface="ramdisk")
        image = self.publish_image("root=/dev/ram0")
        self.lab.user.patch(f"/v1/nodes/{node}", {"/instance_info": {"boot_iso": image}})
        self.lab.user.provision(node, "active", configdrive={"meta_data": {"name": "live"}})
        self.lab.eventually(
            lambda: self.lab.user.node(node)["provision_state"] == "deploy failed", "a refusal of the deployment"
        )
        self.assertIn("neither a virtual USB stick nor a virtual floppy disk", self.lab.user.node(node)["last_error"])
