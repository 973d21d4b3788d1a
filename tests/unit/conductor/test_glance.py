"""Deployments of images of Glance, and what becomes of them when it is away."""

from ingot.common import states
from ingot.db import models
from tests import image_service, scripted


class GlanceAway(scripted.ScriptedCase):
    def configure(self) -> None:
        super().configure()
        self.glance = self.useFixture(image_service.ImageService())
        self.glance.configure(self.conf)

    def begun(self) -> models.Node:
        """Return a deployment during which Glance was unavailable when the image was to be written."""
        self.ident = self.glance.add()
        node = self.machine(instance_info={"image_source": self.ident})
        self.glance.status = 500
        self.asked(node, "deploy", states.DEPLOYING)
        now = self.take_turns(node, until=lambda now: now.step_attempt == 2)
        self.assertEqual(("polling", "deploying"), (now.step_state, now.provision_state))
        return node

    def test_the_image_is_written_when_it_is_back(self) -> None:
        node = self.begun()
        self.glance.status = None
        self.assertEqual(states.ACTIVE, self.take_turns(node).provision_state)
        (image_info,) = [
            params["image_info"] for name, params in self.agent(node).posted if name == "standby.prepare_image"
        ]
        self.assertTrue(image_info["urls"][0].endswith(f"/{self.ident}"))
        self.assertEqual(("sha512", "ab" * 64), (image_info["os_hash_algo"], image_info["os_hash_value"]))
        self.assertNotIn("image", self.now(node).boot_config.get("links", {}))

    def test_what_could_not_be_checked_before_is_checked_with_the_rights_of_who_asked(self) -> None:
        ident = self.glance.add(visibility="private", owner="theirs")
        for roles, ended in ((["member"], states.DEPLOYFAIL), (["service"], states.ACTIVE)):
            node = self.machine(instance_info={"image_source": ident})
            self.asked(node, "deploy", states.DEPLOYING, unchecked={"project": "mine", "roles": roles})
            now = self.take_turns(node)
            self.assertEqual(ended, now.provision_state, now.last_error)
            self.assertEqual(ended == states.DEPLOYFAIL, "another project's" in (now.last_error or ""))

    def test_a_deployment_does_not_wait_for_ever(self) -> None:
        node = self.begun()
        now = self.take_turns(node)
        self.assertEqual(states.DEPLOYFAIL, now.provision_state)
        self.assertIn(f"image {self.ident} cannot be had from Glance: it answers HTTP 500", now.last_error)
        self.free(node)
