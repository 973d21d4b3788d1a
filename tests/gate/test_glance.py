"""A machine gets its image, and its agent's kernel, from a real Glance that asks a real Keystone."""

from typing import Any, ClassVar

import requests
import testtools

from tests.functional.deployment import lab
from tests.gate import cloud, imaging


class GlanceTest(testtools.TestCase):
    """The tests share a cloud and a rack; each has a machine of its own."""

    keystone: ClassVar[cloud.Keystone]
    glance: ClassVar[imaging.Glance]
    bench: ClassVar[lab.Lab]
    images: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keystone = cls.enterClassContext(cloud.Keystone())
        cls.glance = cls.enterClassContext(imaging.Glance(cls.keystone))
        login = {**cls.keystone.credentials(cloud.ADMINISTRATOR, "admin"), "region_name": cloud.REGION}
        options = {"glance": {"auth_type": "password", **login}}
        cls.bench = cls.enterClassContext(lab.Lab(machines=2, options=options))
        cls.images = cls.keystone.connect("owner-member").image

    def enroll(self, index: int, **driver_info: Any) -> str:
        access = {**self.bench.access(index), **driver_info}
        uuid = self.bench.enroll(index, driver_info=access)
        self.bench.make_available(uuid)
        return uuid

    def ask(self, uuid: str, source: str) -> requests.Response:
        """Request a deployment with nothing but the name of its image."""
        self.bench.user.patch(f"/v1/nodes/{uuid}", {"/instance_info": {"image_source": source}})
        return self.bench.user.request("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "active"})

    def test_a_machine_boots_the_agent_and_gets_an_image_from_glance(self) -> None:
        image = imaging.upload(self.images, "system", self.bench.image)
        kernel = imaging.upload(self.images, "agent", b"kernel", container_format="aki", disk_format="aki")
        uuid = self.enroll(0, deploy_kernel=f"glance://{kernel}")
        answer = self.ask(uuid, image)
        self.assertEqual(202, answer.status_code, answer.text)
        self.bench.reach(uuid, "active")
        self.assertTrue(self.bench.holds_image(0))
        log = (self.bench.directory / "conductor-0.log").read_text()
        self.assertNotIn(cloud.PASSWORD, log)

    def test_what_glance_has_not_or_not_whole_is_refused(self) -> None:
        uuid = self.enroll(1)
        queued = self.images.create_image("queued", disk_format="raw", container_format="bare", allow_duplicates=True)
        packed = imaging.upload(self.images, "packed", b"x", container_format="ovf")
        for source, said in (
            ("0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c58", "has no image with this id"),
            (queued.id, "is queued"),
            (packed, "container_format is ovf"),
        ):
            answer = self.ask(uuid, source)
            self.assertEqual(400, answer.status_code, answer.text)
            self.assertIn(said, answer.text)
            self.assertIn(f"instance_info.image_source: '{source}'", answer.text)
        self.assertEqual("available", self.bench.user.node(uuid)["provision_state"])
