"""Machines boot from volumes of a real Cinder; whatever dies or is away on the way, no attachment stays behind."""

import json
import signal
import threading
from typing import Any, ClassVar

import testtools

from tests.functional.deployment import lab
from tests.gate import cloud, networking, volumes

_MACHINES = 2
_INITIATOR = "iqn.2026-01.org.example:machine"
_OPTIONS = {"conductor": {"automated_clean": False}}


class CinderTest(testtools.TestCase):
    """The tests share a cloud and a rack; each has a machine of its own, and none of them leaves an attachment."""

    keystone: ClassVar[cloud.Keystone]
    cinder: ClassVar[volumes.Cinder]
    gateway: ClassVar[networking.Gateway]
    bench: ClassVar[lab.Lab]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.keystone = cls.enterClassContext(cloud.Keystone())
        cls.cinder = cls.enterClassContext(volumes.Cinder(cls.keystone))
        cls.gateway = cls.enterClassContext(networking.Gateway(cls.cinder.url))
        cls.keystone.publish(f"{cls.gateway.url}/v3", "block-storage", "cinder")
        options = {**cls.cinder.options(), **_OPTIONS}
        cls.bench = cls.enterClassContext(lab.Lab(machines=_MACHINES, options=options))

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(self.forget_hooks)
        self.index, self.uuid, self.volume = 0, "", ""

    def forget_hooks(self) -> None:
        self.gateway.before = self.gateway.after = lambda _request: None
        self.gateway.is_away = False

    def enroll(self, index: int = 0) -> str:
        """Enroll a machine that reaches volumes, and make it available; it goes with the test."""
        self.index = index
        self.uuid = self.bench.enroll(index, storage_interface="cinder", properties={"capabilities": "iscsi_boot:true"})
        self.addCleanup(self.delete, self.uuid)
        connector = {"node_uuid": self.uuid, "type": "iqn", "connector_id": f"{_INITIATOR}-{index}"}
        self.bench.user.post("/v1/volume/connectors", connector)
        self.bench.make_available(self.uuid)
        return self.uuid

    def delete(self, uuid: str) -> None:
        """Delete a node whatever its state is, if it is there."""
        hold = [{"op": "add", "path": "/maintenance", "value": True}]
        if self.bench.user.request("PATCH", f"/v1/nodes/{uuid}", hold).status_code != 404:
            self.bench.user.delete(f"/v1/nodes/{uuid}")

    def give_volume(self, ident: str = "", boot_index: int = 0) -> str:
        """Give the node a volume; return its id."""
        ident = ident or self.cinder.create_volume()
        target = {"node_uuid": self.uuid, "volume_type": "iscsi", "volume_id": ident, "boot_index": boot_index}
        self.bench.user.post("/v1/volume/targets", target)
        return ident

    def targets(self) -> list[dict[str, Any]]:
        found = self.bench.user.get(f"/v1/nodes/{self.uuid}/volume/targets?detail=true")["targets"]
        return list(found)

    def undeploy(self) -> None:
        self.bench.user.provision(self.uuid, "deleted")
        self.bench.reach(self.uuid, "available")

    def assert_nothing_left(self, *idents: str) -> None:
        self.assertEqual((0, 0), self.cinder.count())
        for ident in idents:
            self.assertEqual("available", self.cinder.volume(ident)["status"])
        node = self.bench.user.node(self.uuid)
        self.assertNotIn("cinder_instance", node["driver_internal_info"])


class WayTest(CinderTest):
    """What happens when nothing fails."""

    def test_a_machine_boots_from_its_volume_until_it_is_given_back(self) -> None:
        self.enroll()
        boot, data = self.give_volume(), self.give_volume(boot_index=1)
        self.bench.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        self.assertEqual((2, 2), self.cinder.count())
        volume = self.cinder.volume(boot)
        (attachment,) = volume["attachments"]
        self.assertEqual(("in-use", self.uuid, "ironic_mountpoint"), (
            volume["status"], attachment["server_id"], attachment["device"]))  # fmt: skip
        noted = json.loads(volume["metadata"][f"ironic_node_{self.uuid}"])
        self.assertEqual((self.uuid, "attached"), (noted["instance_uuid"], noted["last_action"]))
        name = f"machine-{self.index}"
        self.bench.rack.control.wait_for_state(name, "os")
        started = self.bench.rack.control.machine(name)["boot_volume"]
        target = f"iqn.2010-10.org.openstack:volume-{boot}"
        expected = {"target": target, "portal": volumes.PORTAL, "initiator": f"{_INITIATOR}-0",
                    "username": volumes.USERNAME}  # fmt: skip
        self.assertEqual(expected, {key: started[key] for key in expected})
        shown = {one["volume_id"]: one["properties"] for one in self.targets()}
        self.assertEqual({boot, data}, set(shown))
        self.assertEqual((target, boot, "******"), (
            shown[boot]["target_iqn"], shown[boot]["ironic_volume_uuid"], shown[boot]["auth_password"]))  # fmt: skip
        self.undeploy()
        self.assert_nothing_left(boot, data)
        self.assertEqual([], self.targets())
        noted = json.loads(self.cinder.volume(boot)["metadata"][f"ironic_node_{self.uuid}"])
        self.assertEqual("detached", noted["last_action"])
        self.assertNotIn(volumes.PASSWORD, "".join(log.read_text() for log in self.bench.directory.glob("*.log")))

    def test_one_volume_that_cannot_be_had_leaves_none_attached(self) -> None:
        for wrong, reason in (
            ("5e7f3c1a-0000-4000-8000-000000000000", "could not be found"),
            (self.cinder.create_volume(name="broken"), "Unable to create attachment"),
        ):
            with self.subTest(reason=reason):
                self.enroll(1)
                good = self.give_volume()
                self.give_volume(wrong, boot_index=1)
                self.bench.user.provision(self.uuid, "active")
                node = self.bench.reach(self.uuid, "deploy failed")
                self.assertIn(reason, node["last_error"])
                self.assertEqual((0, 0), self.cinder.count())
                self.undeploy()
                self.assert_nothing_left(good)
                self.delete(self.uuid)

    def test_a_volume_that_goes_while_it_is_used_does_not_keep_the_machine(self) -> None:
        self.enroll(1)
        boot = self.give_volume()
        self.bench.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        self.cinder.delete_attachments()
        self.cinder.delete_volume(boot)
        self.undeploy()
        self.assert_nothing_left()


class KillTest(CinderTest):
    """A conductor is killed at each of its changes in Cinder, before and after Cinder has made it."""

    def play(self) -> None:
        self.bench.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        self.undeploy()

    def kill_at(self, number: int) -> networking.Hook:
        """Return a hook that kills the process at the change with a number, once, and starts it again."""
        first = len(self.gateway.writes)

        def hook(request: networking.Request) -> int | None:
            if request.number != first + number:
                return None
            self.bench.process.stop(signal.SIGKILL)
            threading.Thread(target=self.bench.process.start).start()
            return 0

        return hook

    def test_no_attachment_stays_behind(self) -> None:
        volume = self.cinder.create_volume()
        before = len(self.gateway.writes)
        self.enroll()
        self.give_volume(volume)
        self.play()
        self.delete(self.uuid)
        count = len(self.gateway.writes) - before
        self.assertEqual(5, count)  # attach, complete, metadata, detach, metadata
        for number in range(count):
            for moment in ("before", "after"):
                with self.subTest(number=number, moment=moment):
                    self.forget_hooks()
                    self.enroll()
                    self.give_volume(volume)
                    setattr(self.gateway, moment, self.kill_at(number))
                    self.play()
                    self.assert_nothing_left(volume)
                    self.delete(self.uuid)


class AwayTest(CinderTest):
    """Cinder does not answer for a while, or refuses."""

    def answer_with(self, method: str, *statuses: int) -> None:
        """Have the next requests of a method fail, before Cinder gets them."""
        left = list(statuses)
        self.gateway.before = lambda request: left.pop(0) if left and request.method == method else None

    def test_each_step_is_tried_again(self) -> None:
        volume = self.cinder.create_volume()
        for method, statuses in (("POST", (503, 0)), ("DELETE", (503, 0)), ("DELETE", (409, 400))):
            with self.subTest(method=method, statuses=statuses):
                self.enroll()
                self.give_volume(volume)
                self.answer_with(method, *statuses)
                self.bench.user.provision(self.uuid, "active")
                self.bench.reach(self.uuid, "active")
                self.undeploy()
                self.assert_nothing_left(volume)
                self.delete(self.uuid)

    def test_a_refusal_is_the_reason_and_leaves_nothing(self) -> None:
        volume = self.cinder.create_volume()
        for status in (400, 401, 403, 404, 409):
            for hook in ("before", "after"):
                with self.subTest(status=status, hook=hook):
                    self.forget_hooks()
                    self.enroll(1)
                    self.give_volume(volume)
                    refuse = lambda request, code=status: code if request.method == "POST" else None  # noqa: E731
                    setattr(self.gateway, hook, refuse)
                    self.bench.user.provision(self.uuid, "active")
                    node = self.bench.reach(self.uuid, "deploy failed")
                    self.assertIn("Cinder refuses", node["last_error"])
                    self.assertIn(volume, node["last_error"])
                    self.forget_hooks()
                    self.assertEqual((0, 0), self.cinder.count())
                    self.undeploy()
                    self.assert_nothing_left(volume)
                    self.delete(self.uuid)

    def test_a_tear_down_in_vain_fails_with_the_reason_and_is_repeated(self) -> None:
        self.enroll(1)
        volume = self.give_volume()
        self.bench.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        self.gateway.before = lambda request: 409 if request.method == "DELETE" else None
        self.bench.user.provision(self.uuid, "deleted")
        node = self.bench.reach(self.uuid, "error")
        self.assertIn("Cinder refuses", node["last_error"])
        self.assertEqual((1, 1), self.cinder.count())
        self.forget_hooks()
        self.undeploy()
        self.assert_nothing_left(volume)
