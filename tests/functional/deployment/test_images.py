"""Images on whole machines: from files and registries, with nothing said of what they are; and what is refused."""

import base64
import hashlib
import json
import pathlib
import shutil
import subprocess
import unittest
from typing import Any

import fixtures
import testtools

from tests.functional import registry
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import ran

MACHINE = "machine-0"
SECRET = f"{registry.USER}:{registry.PASSWORD}"
CUSTOM = ["deploy", "apply_configuration", "prepare_instance_boot", "tear_down_agent"]
CUSTOM += ["switch_to_tenant_network", "boot_instance"]


class ImageCase(testtools.TestCase):
    def open(self, **options: Any) -> None:
        groups = {
            "DEFAULT": {
                "enabled_deploy_interfaces": "autodetect,direct,ramdisk,custom-agent",
                "enabled_hardware_types": "ipmi",
                "default_raid_interface": "agent",
            },
            "conductor": {"automated_clean": False, "permitted_image_formats": "raw,qcow2,vmdk"},
            **options,
        }
        self.lab = self.useFixture(lab.Lab(options=groups))
        self.node = self.lab.enroll()
        self.lab.make_available(self.node)
        self.files = self.lab.directory / "files"

    def deploy(self, info: dict[str, Any], **more: Any) -> None:
        self.lab.user.patch(f"/v1/nodes/{self.node}", {"/instance_info": info})
        self.lab.user.provision(self.node, "active", **more)
        self.lab.reach(self.node, "active")

    def refused(self, info: dict[str, Any]) -> str:
        """Return the error of a deployment that ends before its machine is switched on."""
        before = self.machine()["boots"]
        self.lab.user.patch(f"/v1/nodes/{self.node}", {"/instance_info": info})
        self.lab.user.provision(self.node, "active")
        error = self.lab.reach(self.node, "deploy failed")["last_error"]
        self.assertEqual(before, self.machine()["boots"])
        return str(error)

    def machine(self) -> dict[str, Any]:
        return self.lab.rack.control.machine(MACHINE)

    def tear_down(self) -> None:
        self.lab.user.provision(self.node, "deleted")
        self.lab.reach(self.node, "available")

    def logs(self) -> str:
        return "".join(log.read_text(errors="replace") for log in self.lab.directory.glob("*.log"))


class FromARegistry(ImageCase):
    def test_the_agent_fetches_the_image_with_a_token(self) -> None:
        source = self.useFixture(registry.Registry("bearer"))
        self.open(oci={"permit_fallback_to_http_transport": True})
        place = {"platform": {"os": "linux", "architecture": "amd64"}, "annotations": {"disktype": "raw"}}
        source.push("some/os", "latest", (self.lab.image, place))
        info = {"image_source": f"oci://{source.host}/some/os", "image_pull_secret": SECRET}
        self.deploy(info)
        self.assertTrue(self.lab.holds_image(0))
        shown = self.lab.user.node(self.node)
        self.assertEqual("******", shown["instance_info"]["image_pull_secret"])
        self.assertEqual("autodetect", shown["deploy_interface"])
        for secret in (registry.PASSWORD, base64.b64encode(SECRET.encode()).decode(), "eyJ"):
            self.assertNotIn(secret, self.logs())
            self.assertNotIn(secret, json.dumps(shown))
            self.assertNotIn(secret, json.dumps(self.lab.step_runs(self.node)))
        self.tear_down()
        error = self.refused({**info, "image_pull_secret": "ada:wr0ng"})
        self.assertIn("refuses it: check instance_info.image_pull_secret", error)
        self.assertNotIn("wr0ng", self.logs())


class FromFiles(ImageCase):
    def test_nothing_but_the_file_is_named(self) -> None:
        root = self.useFixture(fixtures.TempDir()).path
        www = self.useFixture(lab.FileServer(pathlib.Path(root)))
        allowed = {"http_root": root, "http_url": www.url, "file_url_allowed_paths": root}
        self.open(deploy=allowed)
        path = pathlib.Path(root, "image")
        path.write_bytes(self.lab.image)
        self.deploy({"image_source": f"file://{path}"})
        self.assertTrue(self.lab.holds_image(0))


@unittest.skipUnless(shutil.which("qemu-img"), "qemu-img is not installed")
class Formats(ImageCase):
    def convert(self, name: str, form: str) -> dict[str, Any]:
        """Make an image of the lab's; return what instance_info says of it, without its format."""
        path = self.files / name
        subprocess.run(
            ["qemu-img", "convert", "-q", "-f", "raw", "-O", form, self.files / "original.raw", path], check=True
        )
        return self.named(name)

    def named(self, name: str) -> dict[str, Any]:
        content = (self.files / name).read_bytes()
        return {
            "image_source": f"{self.lab.files.url}/{name}",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": hashlib.sha256(content).hexdigest(),
        }

    def test_the_format_is_found_out(self) -> None:
        self.open()
        for name, form in (("one.img", "qcow2"), ("two", "vmdk")):
            self.deploy(self.convert(name, form))
            self.assertTrue(self.lab.holds_image(0))
            self.tear_down()

    def test_what_could_do_harm_is_refused_before_the_machine_is_touched(self) -> None:
        self.open()
        subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", "-b", "/etc/passwd", "-F", "raw", "-u", "evil.qcow2", "1M"],
            cwd=self.files,
            check=True,
        )
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "bomb.qcow2", "100T"], cwd=self.files, check=True)
        (self.files / "named.qcow2").write_bytes(self.lab.image)
        for info, said in (
            (self.named("evil.qcow2"), "it is qcow2, and not safe: Image has a backing file"),
            (self.named("bomb.qcow2"), "[deploy] max_image_size allows 65536"),
            ({**self.named("named.qcow2"), "image_disk_format": "qcow2"}, "it is gpt, and is called qcow2"),
            (self.convert("disk", "vdi"), "it is vdi; [conductor] permitted_image_formats has raw, qcow2, vmdk"),
            ({**self.lab.image_info(), "image_source": f"{self.lab.files.url}/gone.raw"}, "it answers HTTP 404"),
        ):
            error = self.refused(info)
            self.assertIn(said, error)
            self.assertIn(info["image_source"], error)
            self.tear_down()
        self.deploy(self.lab.image_info())
        self.assertTrue(self.lab.holds_image(0))


class Custom(ImageCase):
    def test_the_steps_that_are_asked_for_are_all_that_is_done(self) -> None:
        self.open()
        self.lab.user.patch(f"/v1/nodes/{self.node}", {"/deploy_interface": "custom-agent"})
        mirror = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX", "controller": "software"}]}
        step = {"interface": "raid", "step": "apply_configuration", "priority": 80, "args": {"raid_config": mirror}}
        self.deploy({}, deploy_steps=[step])
        self.assertEqual(CUSTOM, [name for name, _priority in ran(self.lab.step_runs(self.node))])
        self.lab.rack.control.wait_for_state(MACHINE, "hung")  # nothing has written what it could boot
        self.assertFalse(self.lab.holds_image(0))

    def test_a_live_image_needs_no_other_interface(self) -> None:
        self.open()
        kernel = {"kernel": f"{self.lab.files.url}/deploy.kernel", "ramdisk": f"{self.lab.files.url}/deploy.initramfs"}
        self.deploy(kernel)
        self.assertEqual("autodetect", self.lab.user.node(self.node)["deploy_interface"])
        self.assertNotIn("write_image", str(ran(self.lab.step_runs(self.node))))
        self.assertFalse(self.lab.holds_image(0))
        self.tear_down()
        self.deploy(self.lab.image_info())
        self.assertTrue(self.lab.holds_image(0))
