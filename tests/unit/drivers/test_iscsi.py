"""Deploy interface ``iscsi``: what a machine says does not decide where is written, and a registry is asked once."""

import hashlib
import json
import subprocess
import sys
from typing import Any, ClassVar

import fixtures
import testtools

from ingot.common import errors
from ingot.drivers.agent import iscsi
from ingot.drivers.images import instance_image
from ingot.drivers.interfaces import children, results
from ingot.rack import ports
from tests import http_handler
from tests.unit.drivers import fakes
from tests.unit.drivers.file_server import HandledServer
from tests.unit.drivers.registry import IMAGE, Registry
from tests.unit.drivers.test_agent_deploy import SUCCEEDED, AgentDeployTestCase

START = "iscsi.start_iscsi_target"


class IscsiTest(AgentDeployTestCase):
    options: ClassVar[dict[str, Any]] = {
        **AgentDeployTestCase.options,
        "enabled_deploy_interfaces": ["direct", "iscsi"],
    }
    columns: ClassVar[dict[str, Any]] = {**AgentDeployTestCase.columns, "deploy_interface": "iscsi"}

    def setUp(self) -> None:
        super().setUp()
        self.registry = Registry("Bearer")
        self.addCleanup(self.registry.stop)
        self.registry.tags["latest"] = json.dumps(self.registry.manifest(IMAGE)).encode()

    def deploying(self) -> fakes.MemoryTask:
        """Return a node whose agent runs; nothing listens where it would export its disk."""
        task = self.machine(instance_info={"image_source": f"oci://{self.registry.host}/some/os"})
        self.call_in(task)
        for group, name, value in (
            ("oci", "permit_fallback_to_http_transport", True),
            ("iscsi", "portal_port", ports.tcp()),
            ("iscsi", "verify_attempts", 600),
            ("iscsi", "images_path", self.useFixture(fixtures.TempDir()).path),
        ):
            task.conf.set_override(name, value, group=group)
        self.exported_as(f"iqn.2008-10.org.openstack:{task.node.uuid}")
        self.addCleanup(children.end, task)
        return task

    def exported_as(self, name: str) -> None:
        self.agent.outcomes[START] = {**SUCCEEDED, "command_result": {"iscsi_target_iqn": name}}

    def write(self, task: fakes.MemoryTask) -> results.Result:
        for _ in range(30):
            result: results.Result = task.driver.deploy.write_image(task)
            if self.agent.posted:
                return result
        raise AssertionError("it never began")

    def test_a_registry_is_not_asked_while_the_image_is_written(self) -> None:
        task = self.deploying()
        self.write(task)
        asked = self.manifests()
        self.assertEqual(2, asked, "without and with a token")
        for _ in range(3):
            self.assertIn("(iSCSI)", str(task.driver.deploy.write_image(task).waits_for))
        self.assertEqual(asked, self.manifests())
        self.assertEqual([START], [name for name, _params in self.agent.posted])
        children.end(task)  # as after a takeover: the token is not kept
        task.driver.deploy.write_image(task)
        self.assertEqual(2 * asked, self.manifests())

    def manifests(self) -> int:
        return sum("/manifests/" in path for path, _ in self.registry.asked)

    def test_a_machine_names_no_other_target(self) -> None:
        for name in ("iqn.2008-10.org.openstack:other", "x,driver=qcow2"):
            task = self.deploying()
            self.exported_as(name)
            self.agent.posted.clear()
            error = self.assertRaises(errors.AgentError, self.write, task)
            self.assertIn(f"'{name}' as iscsi_target_iqn", error.message)
            self.assertIsNone(children.find(task, "ingot.drivers.images.disk_writer"))

    def test_an_agent_that_is_busy_is_asked_again(self) -> None:
        task = self.deploying()
        self.agent.refusals.append((409, "Agent is busy"))
        self.write(task)
        self.assertEqual([START], [name for name, _params in self.agent.posted])
        self.assertIn("(iSCSI)", str(task.driver.deploy.write_image(task).waits_for))

    def test_what_verifies_a_registry_verifies_it_for_the_writer(self) -> None:
        task = self.deploying()
        task.conf.set_override("verify_ca", "/etc/registry.pem", group="oci")
        self.assertEqual("/etc/registry.pem", self.verified_by(task, "http://registry/v2/blob"))
        self.assertIs(True, self.verified_by(task, None))

    def verified_by(self, task: fakes.MemoryTask, url: str | None) -> object:
        source = "oci://registry/os" if url else "http://files/image.raw"
        task.node.instance_info = {"image_source": source, "image_checksum": "0" * 64}
        image = instance_image.ReadyImage(source, "raw", "sha256", "0" * 64, url)
        return iscsi._describe_image(task, image)["verify"]


class WriterTest(testtools.TestCase):
    """The program that writes, up to where it would connect to a disk."""

    def failed(self, length: str, checksum: str = "0" * 64) -> str:
        """Return why an image of three bytes is not written."""

        class Handler(http_handler.Handler):
            def do_GET(self) -> None:
                self.close_connection = True
                self.answer(200, b"abc", **{"Content-Length": length})

        server = HandledServer(Handler)
        self.addCleanup(server.stop)
        image = {"urls": [server.url], "path": "", "disk_format": "qcow2", "algorithm": "sha256", "checksum": checksum}
        fetched = {"scratch": self.useFixture(fixtures.TempDir()).path, "authorization": None, "verify": True}
        target = dict.fromkeys(("portal", "target", "initiator", "username", "password"), "")
        job = {**image, **fetched, **target, "denied": [], "allowed": [], "sparse": False, "attempts": 1}
        command = [sys.executable, "-P", "-m", "ingot.drivers.images.disk_writer"]
        run = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, check=False)
        self.assertEqual((1, b""), (run.returncode, run.stderr))
        failed: str = json.loads(run.stdout.splitlines()[-1])["failed"]
        return failed

    def test_what_servers_say_of_lengths(self) -> None:
        for length, said in (("3", "the sha256 of the image is"), ("x", "the sha256 of"), ("9", "breaks off")):
            self.assertIn(said, self.failed(length))

    def test_what_is_not_what_it_is_called(self) -> None:
        checksum = hashlib.sha256(b"abc").hexdigest()
        self.assertEqual("the image is raw; image_disk_format says qcow2", self.failed("3", checksum))
