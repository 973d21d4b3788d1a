"""gophercloud, with which Metal3 uses the bare-metal API, against Ingot and a rack of machines."""

import json
import os
import pathlib
import subprocess
from typing import Any, ClassVar

import testtools

from tests.functional.deployment import lab
from tests.functional.metal3 import schemes, test_hosts
from tests.gate import client, environments

SOURCES = [environments.ROOT / "tests" / "gate" / "programs" / name for name in ("metal3.go", "metal3_hosts.go")]
LIBRARIES = pathlib.Path("/usr/share/gocode")
"""Where Debian has the sources of Go packages, golang-github-gophercloud-gophercloud-dev among them."""

HOST = "metal3~worker-0"
PASSWORD = "metal three"


class Metal3Case(testtools.TestCase):
    program: ClassVar[pathlib.Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.program = environments.go_program(SOURCES, LIBRARIES)

    def outcome(self, visit: str, request: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        """Run a visit of the operator to its end, successful or not."""
        return subprocess.run(
            [str(self.program), visit],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=2 * lab.PATIENCE,
            check=False,
            env={"PATH": os.defpath, "NO_PROXY": "*"},
        )

    def refused(self, visit: str, request: dict[str, Any]) -> str:
        """Return the error message of a visit, which must fail."""
        ended = self.outcome(visit, request)
        self.assertEqual(1, ended.returncode, f"{visit}: {ended.stdout}")
        return ended.stderr

    def visit(self, visit: str, request: dict[str, Any]) -> Any:
        """Return what a visit of the operator found, which must succeed without any complaint."""
        return json.loads(environments.read_output(self.outcome(visit, request)))


class TestHost(Metal3Case):
    def setUp(self) -> None:
        super().setUp()
        self.bench = self.useFixture(lab.Lab())
        machine = self.bench.rack.machines[0]
        self.order = {
            "endpoint": f"{self.bench.url}/v1/",
            "name": HOST,
            "driver": "ipmi",
            "driver_info": self.bench.access(0),
            "macs": machine["macs"],
            "image": {
                "image_source": f"{self.bench.files.url}/image.raw",
                "image_os_hash_algo": "sha256",
                "image_os_hash_value": self.bench.checksum,
                "image_disk_format": "raw",
            },
            "configdrive": {
                "meta_data": {"uuid": HOST, "metal3-name": "worker-0"},
                "network_data": {"links": [], "networks": [], "services": []},
                "user_data": "#cloud-config\nhostname: worker-0\n",
            },
        }

    def do(self, visit: str) -> Any:
        return self.visit(visit, self.order)

    def test_a_host_is_enrolled_prepared_provisioned_switched_and_forgotten(self) -> None:
        found = self.do("ready")
        self.assertEqual((["1.1", "1.115"], ["fake-hardware", "ipmi"]), (found["versions"], found["drivers"]))
        self.assertIn("ipmi_address", found["properties"])

        registered = self.do("register")
        node = registered["node"]
        self.assertEqual(("manageable", "power off"), (node["provision_state"], node["power_state"]))
        self.assertEqual(("******", {"managed": "metal3"}), (node["driver_info"]["ipmi_password"], node["extra"]))
        self.assertEqual({mac: True for mac in self.order["macs"]}, registered["ports"])
        self.assertEqual(node["uuid"], registered["found"])
        self.assertIn("not found", self.refused("inventory", self.order), "it was not inspected")

        node = self.do("prepare")
        (array,) = node["raid_config"]["logical_disks"]
        self.assertEqual(("1", "software"), (array["raid_level"], array["controller"]))

        provisioned = self.do("provision")
        self.assertEqual(
            ("active", "power on"), tuple(provisioned["node"][f"{k}_state"] for k in ("provision", "power"))
        )
        self.assertTrue(self.bench.holds_image(0, disk=0) and self.bench.holds_image(0, disk=1))
        for part in (b"metal3-name", b"hostname: worker-0"):
            self.assertIn(part, self.bench.config_drive(0))

        switched = self.do("power")
        self.assertEqual(["power off", "power on", "power on", "power off"], switched["reached"])
        self.assertEqual({"boot_device": "pxe", "persistent": False}, switched["device"])
        self.assertIn("disk", switched["supported"])

        node = self.do("deprovision")
        self.assertEqual(("available", {}), (node["provision_state"], node["instance_info"]))
        self.assertEqual([], self.do("delete")["left"])

    def test_an_unreachable_host_is_reported_with_the_reason(self) -> None:
        self.order["driver_info"]["ipmi_password"] = "wrong"
        complaint = self.refused("register", self.order)
        for words in ("is enroll", "Incorrect password", "manage the node again"):
            self.assertIn(words, complaint)


class TestKinds(test_hosts.HostsCase, Metal3Case):
    """Hosts of all nine kinds at once, each with what its kind can do."""

    settings: ClassVar[list[dict[str, Any]]] = [{"name": "ProcTurboMode", "value": "Disabled"}]

    def describe(self, index: int, scheme: schemes.Scheme) -> dict[str, Any]:
        """Return what the operator knows of a host."""
        machine, files = self.lab.rack.machines[index], self.lab.files.url
        disk = {"size_gb": "MAX", "raid_level": "1", "volume_name": "data"}  # the rack's systems see no arrays of a BMC
        settings = {"interface": "bios", "step": "apply_configuration", "args": {"settings": self.settings}}
        return {
            "name": f"metal3~{scheme.name}",
            "driver": scheme.driver,
            "interfaces": dict(scheme.interfaces),
            "driver_info": schemes.read_access(scheme, self.lab.rack, index),
            "macs": machine["macs"],
            "uid": f"6b1f4f0e-6a1c-4b5b-8f6e-0d6a4c1f2a{index:02d}",
            "agent": {"deploy_kernel": f"{files}/deploy.kernel", "deploy_ramdisk": f"{files}/deploy.initramfs"},
            "fast": scheme.fast,
            "raid": scheme.interfaces["raid_interface"],
            "disks": [{**disk, "number_of_physical_disks": 2}],
            "clean_steps": [
                {"interface": "raid", "step": "delete_configuration"},
                {"interface": "raid", "step": "create_configuration"},
                settings,
                self.update("bios", "bios-2.1.0.bin"),
            ],
            "service_steps": [settings, self.update("bmc", "bmc-3.0.1.bin")],
            "deploy_steps": [{"interface": "deploy", "step": "burn_in", "args": {}, "priority": 80}],
            "image": self.lab.image_info(),
            "iso": f"{files}/live.iso",
            "data": f"{files}/data.iso",
            "events": "https://192.0.2.1/events",
            "configdrive": {"meta_data": {"uuid": scheme.name, "metal3-name": scheme.name}},
        }

    def update(self, component: str, file: str) -> dict[str, Any]:
        """Return the step that writes firmware, which is there to be fetched."""
        (self.lab.directory / "files" / file).write_bytes(b"firmware")
        update = {"component": component, "url": f"{self.lab.files.url}/{file}"}
        return {"interface": "firmware", "step": "update", "args": {"settings": [update]}}

    def send(self, errand: str, hosts: list[dict[str, Any]]) -> dict[str, Any]:
        """Return what an errand gives, by the kind of each host."""
        found = self.visit(f"hosts-{errand}", {"endpoint": f"{self.lab.url}/v1/", "hosts": hosts})
        self.assertEqual({host["name"] for host in hosts}, set(found))
        return {name.partition("~")[2]: answer for name, answer in found.items()}

    def test_all_of_a_hosts_life(self) -> None:
        for name in ("data.iso", "live.iso"):
            test_hosts.write_live_image(self.lab.directory / "files" / name)
        hosts = [self.describe(index, scheme) for index, scheme in enumerate(schemes.SCHEMES)]
        of_redfish = [host for host, scheme in zip(hosts, schemes.SCHEMES, strict=True) if scheme.speaks_redfish]

        for index, (kind, found) in enumerate(self.send("enroll", hosts).items()):
            macs = {way: one["inventory"]["interfaces"][0]["mac_address"] for way, one in found.items()}
            machine = self.lab.rack.machines[test_hosts.NAMES.index(kind)]
            self.assertEqual({machine["macs"][0]}, set(macs.values()), (index, kind))
            self.assertEqual(test_hosts.SWITCH, test_hosts.read_switch(found["agent"]), kind)
        for kind, found in self.send("prepare", of_redfish).items():
            values = {one["name"]: one["value"] for one in found["bios"]}
            versions = {one["component"]: one["current_version"] for one in found["firmware"]}
            self.assertEqual(("Disabled", "2.1.0"), (values["ProcTurboMode"], versions["bios"]), kind)
        deployed = {"state": "active", "power": "power on"}
        for kind, found in self.send("provision", hosts).items():
            self.assertEqual({**deployed, "way": "autodetect"}, found, kind)
        for kind, found in self.send("day-two", of_redfish).items():
            self.assertEqual({"attached": [of_redfish[0]["data"]], "left": []}, found, kind)
        for kind, found in self.send("other", hosts).items():
            self.assertEqual([{**deployed, "way": way} for way in ("ramdisk", "custom-agent")], found, kind)
        self.assertEqual({"power off"}, set(self.send("leave", hosts).values()))
        self.assertEqual([], self.lab.user.get("/v1/nodes")["nodes"])


class TestPasswords(Metal3Case):
    def setUp(self) -> None:
        super().setUp()
        self.ingot = self.useFixture(client.Ingot(PASSWORD))
        self.order = {"endpoint": f"{self.ingot.url}/v1/", "driver": "fake-hardware", "name": HOST, "macs": []}
        self.order |= {"user": client.USER, "password": PASSWORD}

    def test_the_operator_signs_in(self) -> None:
        self.assertIn("fake-hardware", self.visit("ready", self.order)["drivers"])
        for lie in ({"password": "wrong"}, {"user": ""}):
            self.assertIn("Authentication failed", self.refused("ready", self.order | lie))
