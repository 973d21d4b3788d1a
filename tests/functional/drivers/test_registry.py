"""Images come from a registry of another make, whatever login it asks for, and an agent can fetch them there."""

import base64
from typing import Any

import requests

from ingot.common import errors
from ingot.drivers.images import instance_image
from tests import disk_images
from tests.functional import registry
from tests.unit.drivers import fakes

SECRET = f"{registry.USER}:{registry.PASSWORD}"


class RegistryTest(fakes.DriverTestCase):
    def open(self, login: str = "", tls: bool = False) -> registry.Registry:
        found = self.useFixture(registry.Registry(login, tls))
        amd, arm = ({"platform": {"os": "linux", "architecture": name}} for name in ("amd64", "arm64"))
        self.image = disk_images.gpt_image()
        raw = {"annotations": {"disktype": "raw"}}
        found.push("some/os", "v1", (disk_images.mbr_image(), {**arm, **raw}), (self.image, {**amd, **raw}))
        return found

    def of(self, source: registry.Registry, **info: Any) -> fakes.MemoryTask:
        about = {"image_source": f"oci://{source.host}/some/os:v1", **info}
        task = self.task(deploy_interface="direct", instance_info=about, properties={"cpu_arch": "x86_64"})
        task.conf.set_override("permit_fallback_to_http_transport", True, group="oci")
        task.conf.set_override("verify_ca", str(source.ca_file), group="oci")
        return task

    def ready(self, task: fakes.MemoryTask) -> instance_image.ReadyImage:
        image: instance_image.ReadyImage = self.poll(lambda: instance_image.examine(task))
        return image

    def fetched(self, task: fakes.MemoryTask, source: registry.Registry) -> bytes:
        """Return what an agent fetches with what it is given."""
        info = instance_image.build_image_info(task, self.ready(task))
        given = info.get("image_request_authorization")
        headers = {"Authorization": base64.b64decode(str(given)).decode()} if given else {}
        (url,) = info["urls"]  # type: ignore[misc,attr-defined]
        answer = requests.get(url, headers=headers, verify=str(source.ca_file), timeout=60)
        answer.raise_for_status()
        return answer.content

    def test_no_login(self) -> None:
        source = self.open()
        self.assertEqual(self.image, self.fetched(self.of(source), source))

    def test_tls(self) -> None:
        source = self.open("basic", tls=True)
        task = self.of(source, image_pull_secret=SECRET)
        self.assertEqual(self.image, self.fetched(task, source))
        task.conf.set_override("verify_ca", "true", group="oci")
        task.conf.set_override("permit_fallback_to_http_transport", False, group="oci")
        self.assertIn("it cannot be fetched", self.assertRaises(errors.ImageError, self.ready, task).message)

    def test_user_and_password(self) -> None:
        source = self.open("basic")
        self.assertEqual(self.image, self.fetched(self.of(source, image_pull_secret=SECRET), source))
        for secret, said in (("ada:wrong", "refuses it: check"), (None, "has to be user:password")):
            task = self.of(source, image_pull_secret=secret)
            self.assertIn(said, self.assertRaises(errors.ImageError, self.ready, task).message)

    def test_a_token_for_one_repository(self) -> None:
        source = self.open("bearer")
        self.assertEqual(self.image, self.fetched(self.of(source, image_pull_secret=SECRET), source))
        assert source.tokens
        self.assertEqual(["repository:some/os:pull"], source.tokens.asked[-1]["scope"])
        for secret in ("ada:wrong", None):
            task = self.of(source, image_pull_secret=secret)
            message = self.assertRaises(errors.ImageError, self.ready, task).message
            self.assertIn("refuses it: check instance_info.image_pull_secret", message)
            self.assertNotIn("wrong", message)

    def test_by_digest(self) -> None:
        source = self.open("bearer")
        task = self.of(source, image_pull_secret=SECRET)
        index = requests.get(
            f"{source.url}/v2/some/os/manifests/v1",
            headers={"Authorization": f"Bearer {source.tokens.issue('some/os', ['pull'])}",  # type: ignore[union-attr]
                     "Accept": "application/vnd.oci.image.index.v1+json"},
            timeout=60,
        )  # fmt: skip
        for digest in (index.headers["Docker-Content-Digest"], index.json()["manifests"][1]["digest"]):
            task.node.instance_info["image_source"] = f"oci://{source.host}/some/os@{digest}"
            self.assertEqual(self.image, self.fetched(task, source))
        task.node.instance_info["image_source"] = f"oci://{source.host}/some/os:v2"
        self.assertIn("has no such image", self.assertRaises(errors.ImageError, self.ready, task).message)
