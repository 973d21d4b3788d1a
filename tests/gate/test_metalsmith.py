"""metalsmith, which deploys machines without Nova, against Ingot and a rack of machines.

It runs as in a place that has neither Neutron nor Glance: images come over HTTP, ports are not attached.
"""

import json
import os
import pathlib
import subprocess
from typing import Any, ClassVar

import testtools

from tests import patience
from tests.functional.deployment import lab
from tests.gate import environments

REQUIREMENTS = ("metalsmith>=2.5",)
PROGRAM = environments.ROOT / "tests" / "gate" / "programs" / "metalsmith_api.py"
RESOURCE_CLASS = "metal"
TRAIT = "CUSTOM_SMITHY"


class TestMetalsmith(testtools.TestCase):
    """The tests share a rack; each has machines of its own."""

    bench: ClassVar[lab.Lab]
    programs: ClassVar[pathlib.Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.programs = environments.cached("metalsmith", *REQUIREMENTS)
        cls.bench = cls.enterClassContext(lab.Lab(machines=3))

    def enroll(self, index: int, **fields: Any) -> str:
        """Return an available machine."""
        uuid = self.bench.enroll(index, resource_class=RESOURCE_CLASS, **fields)
        self.bench.make_available(uuid)
        return uuid

    def outcome(self, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program of metalsmith's environment to its end, successful or not."""
        environment = {
            "PATH": os.defpath,
            "HOME": str(self.bench.directory),
            "LC_ALL": "C.UTF-8",
            "NO_PROXY": "*",
            "OS_AUTH_TYPE": "none",
            "OS_ENDPOINT": self.bench.url,
            patience.VARIABLE: str(patience.FACTOR),
        }
        return subprocess.run(
            [str(self.programs / command[0]), *command[1:]],
            input=given,
            capture_output=True,
            text=True,
            timeout=2 * lab.PATIENCE,
            check=False,
            cwd=self.bench.directory,
            env=environment,
        )

    def output(self, *command: str, given: str = "") -> str:
        """Return the output of a command, which must succeed without any complaint."""
        return environments.read_output(self.outcome(*command, given=given), self.bench.logs())

    def ask(self, command: str, **request: Any) -> Any:
        """Return the answer of the program that uses metalsmith from Python."""
        return json.loads(self.output("python", str(PROGRAM), command, given=json.dumps(request)))

    def test_a_machine_is_deployed_and_given_back_on_the_command_line(self) -> None:
        uuid = self.enroll(0)
        key = self.bench.directory / "key.pub"
        key.write_text("ssh-ed25519 AAAA smith\n")
        self.output(
            *("metalsmith", "--quiet", "deploy", "--resource-class", RESOURCE_CLASS, "--wait", "60"),
            *("--candidate", "machine-0", "--hostname", "anvil", "--ssh-public-key", str(key)),
            *("--image", f"{self.bench.files.url}/image.raw", "--image-checksum", self.bench.checksum),
        )
        node = self.bench.user.node(uuid)
        self.assertEqual(("active", "power on"), (node["provision_state"], node["power_state"]))
        self.assertEqual("anvil", self.bench.user.get(f"/v1/allocations/{node['allocation_uuid']}")["name"])
        self.assertTrue(self.bench.holds_image(0))
        for part in (b"anvil", b"ssh-ed25519 AAAA smith"):
            self.assertIn(part, self.bench.config_drive(0))

        self.assertIn("Successfully unprovisioned", self.output("metalsmith", "undeploy", "--wait", "60", "anvil"))
        node = self.bench.user.node(uuid)
        self.assertEqual(("available", None), (node["provision_state"], node["allocation_uuid"]))
        self.assertEqual(({}, {}), (node["instance_info"], node["extra"]))
        self.assertFalse(self.bench.holds_image(0))

    def test_a_machine_is_chosen_deployed_and_given_back_from_python(self) -> None:
        uuid = self.enroll(1, properties={"capabilities": "boot_mode:uefi,forge:hot"})
        self.bench.user.put(f"/v1/nodes/{uuid}/traits/{TRAIT}", None)
        sums = self.bench.directory / "files" / "SHA256SUMS"
        sums.write_text(f"{self.bench.checksum}  image.raw\n")
        answer = self.ask(
            "deploy",
            resource_class=RESOURCE_CLASS,
            capabilities={"forge": "hot"},
            traits=[TRAIT],
            name="machine-1",
            hostname="hammer",
            image=f"{self.bench.files.url}/image.raw",
            checksums=f"{self.bench.files.url}/{sums.name}",
        )
        expected = {"uuid": uuid, "hostname": "hammer", "state": "active", "healthy": True, "allocation": "hammer"}
        self.assertEqual((uuid, "deploying"), (answer["begun"]["uuid"], answer["begun"]["state"]))
        self.assertEqual((expected, expected), (answer["instance"], answer["shown"]))
        self.assertIn(expected, answer["listed"])
        self.assertTrue(self.bench.holds_image(1))
        self.assertIn(b"NOPASSWD", self.bench.config_drive(1))
        self.assertEqual([TRAIT], self.bench.user.node(uuid)["instance_info"]["traits"])

        answer = self.ask("undeploy", hostname="hammer")
        self.assertEqual("available", answer["state"])
        self.assertNotIn("hammer", [one["hostname"] for one in answer["listed"]])

    def test_what_cannot_be_had_is_said_and_leaves_nothing_behind(self) -> None:
        uuid = self.enroll(2)
        deploy = ("metalsmith", "deploy", "--image", f"{self.bench.files.url}/image.raw", "--resource-class")
        refused = self.outcome(*deploy, "none-such", "--image-checksum", self.bench.checksum)
        self.assertIn("none-such", refused.stderr)
        wrong = ("--candidate", "machine-2", "--image-checksum", "0" * 64, "--wait", "60")
        refused = self.outcome(*deploy, RESOURCE_CLASS, *wrong)
        self.assertIn("its sha256 is", refused.stderr)
        self.assertEqual("deploy failed", self.bench.user.node(uuid)["provision_state"])
        self.output("metalsmith", "undeploy", "--wait", "60", uuid)
        self.assertEqual([], self.bench.user.get("/v1/allocations?node=machine-2")["allocations"])
