"""gophercloud, with which Metal3 uses the bare-metal API, against Ingot and a rack of machines."""

import json
import os
import pathlib
import subprocess
from typing import Any, ClassVar

import testtools

from tests.functional.deployment import lab
from tests.gate import client, environments

SOURCE = environments.ROOT / "tests" / "gate" / "programs" / "metal3.go"
LIBRARIES = pathlib.Path("/usr/share/gocode")
"""Where Debian has the sources of Go packages, golang-github-gophercloud-gophercloud-dev among them."""

HOST = "metal3~worker-0"
PASSWORD = "metal three"


class Metal3Case(testtools.TestCase):
    program: ClassVar[pathlib.Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.program = environments.go_program(SOURCE, LIBRARIES)

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
