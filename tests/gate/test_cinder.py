"""Machines boot from volumes of a real Cinder; whatever dies or is away on the way, no attachment stays behind."""

import json
import pathlib
import signal
import threading
import uuid
from typing import Any, ClassVar

import fixtures
import testtools
from oslo_config import cfg
from testtools import content

from ingot.common import context
from ingot.common.conf import opts
from ingot.drivers.cinder import connection
from tests.functional.deployment import lab
from tests.gate import cloud, networking, volumes

_MACHINES = 2
_INITIATOR = "iqn.2026-01.org.example:machine"
_OPTIONS = {"conductor": {"automated_clean": False}}
_ATTACH, _COMPLETE, _DETACH = 0, 1, 3
"""Numbers of the changes that a deployment and its tear-down make in Cinder; the others are notes at the volume."""


class CinderTest(testtools.TestCase):
    """The tests share a cloud and a rack; none of them leaves a node or an attachment."""

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
        self.addOnException(lambda _error: self.addDetail("logs", content.text_content(self.logs())))
        self.index, self.uuid = 0, ""

    def logs(self) -> str:
        return f"{self.bench.logs()}\n--- cinder.log\n{self.cinder.last_words()}"

    def forget_hooks(self) -> None:
        self.gateway.before = self.gateway.after = lambda _request: None
        self.gateway.is_away = False

    def enroll(self, index: int = 0) -> None:
        """Enroll a machine that reaches volumes, and make it available; it goes with the test."""
        self.index = index
        self.uuid = self.bench.enroll(index, storage_interface="cinder", properties={"capabilities": "iscsi_boot:true"})
        self.addCleanup(self.delete)
        connector = {"node_uuid": self.uuid, "type": "iqn", "connector_id": f"{_INITIATOR}-{index}"}
        self.bench.user.post("/v1/volume/connectors", connector)
        self.bench.make_available(self.uuid)

    def delete(self) -> None:
        """Delete the node whatever its state is."""
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {"/maintenance": True})
        self.bench.user.delete(f"/v1/nodes/{self.uuid}")

    def give_volume(self, ident: str = "", boot_index: int = 0) -> str:
        """Give the node a volume; return its id."""
        ident = ident or self.cinder.create_volume()
        target = {"node_uuid": self.uuid, "volume_type": "iscsi", "volume_id": ident, "boot_index": boot_index}
        self.bench.user.post("/v1/volume/targets", target)
        return ident

    def targets(self) -> list[dict[str, Any]]:
        found = self.bench.user.get(f"/v1/nodes/{self.uuid}/volume/targets?detail=true")["targets"]
        return list(found)

    def deploy(self, state: str = "active") -> dict[str, Any]:
        """Deploy the machine; return the node when it is in the state where that ends."""
        self.bench.user.provision(self.uuid, "active")
        return self.bench.reach(self.uuid, state)

    def undeploy(self) -> None:
        self.bench.user.provision(self.uuid, "deleted")
        self.bench.reach(self.uuid, "available")

    def assert_nothing_left(self, *idents: str) -> None:
        self.assertEqual((0, 0), self.cinder.count())
        for ident in idents:
            self.assertEqual("available", self.cinder.volume(ident)["status"])
        self.assertNotIn("cinder_instance", self.bench.user.node(self.uuid)["driver_internal_info"])
        self.assertEqual([], self.targets())

    # Nothing fails

    def test_a_machine_boots_from_its_volume_until_it_is_given_back(self) -> None:
        self.enroll()
        boot, data, instance = self.give_volume(), self.give_volume(boot_index=1), str(uuid.uuid4())
        self.bench.user.patch(f"/v1/nodes/{self.uuid}", {"/instance_uuid": instance})
        self.deploy()
        self.assert_attached(boot, instance)
        used = {(one["volume_id"], one["instance"]) for one in self.cinder.list_attachments()}
        self.assertEqual({(boot, instance), (data, instance)}, used)
        self.assertEqual(
            dict.fromkeys([(boot, self.uuid), (data, self.uuid)], f"{_INITIATOR}-0"), self.cinder.exports()
        )
        target = f"iqn.2010-10.org.openstack:volume-{boot}"
        self.assert_booted(target)
        shown = {one["volume_id"]: one["properties"] for one in self.targets()}
        self.assertEqual({boot, data}, set(shown))
        self.assertEqual(
            (target, boot, "******"),
            tuple(shown[boot][key] for key in ("target_iqn", "ironic_volume_uuid", "auth_password")),
        )
        self.undeploy()
        self.assert_nothing_left(boot, data)
        noted = json.loads(self.cinder.volume(boot)["metadata"][f"ironic_node_{self.uuid}"])
        self.assertEqual("detached", noted["last_action"])
        self.assertNotIn(volumes.PASSWORD, "".join(log.read_text() for log in self.bench.directory.glob("*.log")))

    def assert_attached(self, ident: str, instance: str) -> None:
        """Check what Cinder shows of a volume that an instance uses."""
        volume = self.cinder.volume(ident)
        (attachment,) = volume["attachments"]
        shown = (volume["status"], attachment["server_id"], attachment["host_name"], attachment["device"])
        self.assertEqual(("in-use", instance, self.uuid, "ironic_mountpoint"), shown)
        noted = json.loads(volume["metadata"][f"ironic_node_{self.uuid}"])
        self.assertEqual((instance, "attached"), (noted["instance_uuid"], noted["last_action"]))

    def assert_booted(self, target: str) -> None:
        """Check that the machine has started from a volume, as that of its connector."""
        name = f"machine-{self.index}"
        self.bench.rack.control.wait_for_state(name, "os")
        booted = self.bench.rack.control.machine(name)["boot_volume"]
        expected = {
            "target": target,
            "portal": volumes.PORTAL,
            "initiator": f"{_INITIATOR}-{self.index}",
            "username": volumes.USERNAME,
        }
        self.assertEqual(expected, {key: booted[key] for key in expected})

    def test_a_volume_that_goes_while_it_is_used_does_not_keep_the_machine(self) -> None:
        self.enroll(1)
        boot = self.give_volume()
        self.deploy()
        self.cinder.delete_attachments()
        self.cinder.delete_volume(boot)
        self.undeploy()
        self.assert_nothing_left()

    # The conductor is killed

    def test_a_conductor_that_is_killed_leaves_no_attachment(self) -> None:
        self.enroll()
        volume = self.cinder.create_volume()
        for number, moment in (
            (_ATTACH, "before"),
            (_ATTACH, "after"),
            (_COMPLETE, "after"),
            (_DETACH, "before"),
            (_DETACH, "after"),
        ):
            with self.subTest(number=number, moment=moment):
                self.forget_hooks()
                self.give_volume(volume)
                killed = threading.Event()
                setattr(self.gateway, moment, self.kill_at(number, killed))
                self.deploy()
                self.assertEqual((1, 1), self.cinder.count())
                self.undeploy()
                self.assertTrue(killed.is_set())
                self.assert_nothing_left(volume)

    def kill_at(self, number: int, killed: threading.Event) -> networking.Hook:
        """Return a hook that kills the process at the change with a number, once, and starts it again."""
        first = len(self.gateway.writes)

        def hook(request: networking.Request) -> int | None:
            if request.number != first + number:
                return None
            self.bench.process.stop(signal.SIGKILL)
            killed.set()
            threading.Thread(target=self.bench.process.start).start()
            return 0

        return hook

    # Cinder is away, or refuses

    def test_a_cinder_that_is_away_is_asked_again(self) -> None:
        self.enroll()
        volume = self.give_volume()
        self.gateway.is_away = True
        self.bench.user.provision(self.uuid, "active")
        self.bench.eventually(lambda: self.why() == "storage service", "the deployment waits for Cinder")
        self.forget_hooks()
        self.bench.reach(self.uuid, "active")
        self.gateway.is_away = True
        self.bench.user.provision(self.uuid, "deleted")
        self.bench.eventually(lambda: self.why() == "storage service", "the tear-down waits for Cinder")
        self.forget_hooks()
        self.bench.reach(self.uuid, "available")
        self.assert_nothing_left(volume)

    def why(self) -> str:
        """Return what the node waits for."""
        return str(self.bench.user.get(f"/ingot/v1/nodes/{self.uuid}/explanation")["kind"])

    def test_a_cinder_that_stays_away_fails_the_deployment(self) -> None:
        self.enroll(1)
        volume = self.give_volume()
        self.cinder.process.stop(signal.SIGKILL)
        try:
            node = self.deploy("deploy failed")
        finally:
            self.cinder.start()
        self.assertIn("cannot be had from Cinder", node["last_error"])
        self.assertEqual((0, 0), self.cinder.count())
        self.undeploy()
        self.assert_nothing_left(volume)

    def test_one_volume_that_cannot_be_had_leaves_none_attached(self) -> None:
        self.enroll(1)
        good = self.cinder.create_volume()
        for wrong, reason in (
            (str(uuid.uuid4()), "could not be found"),
            (self.cinder.create_volume(name="broken"), "Unable to create attachment"),
        ):
            with self.subTest(reason=reason):
                self.give_volume(good)
                self.give_volume(wrong, boot_index=1)
                self.assertIn(reason, self.deploy("deploy failed")["last_error"])
                self.assertEqual((0, 0), self.cinder.count())
                self.undeploy()
                self.assert_nothing_left(good)

    def test_a_refusal_is_the_reason_and_leaves_nothing(self) -> None:
        self.enroll(1)
        volume = self.cinder.create_volume()
        for status, moment in ((400, "before"), (403, "before"), (409, "after")):
            with self.subTest(status=status, moment=moment):
                self.give_volume(volume)
                refuse = lambda request, code=status: code if request.method == "POST" else None  # noqa: E731
                setattr(self.gateway, moment, refuse)
                error = self.deploy("deploy failed")["last_error"]
                self.assertIn("Cinder refuses", error)
                self.assertIn(volume, error)
                self.forget_hooks()
                self.assertEqual((0, 0), self.cinder.count())
                self.undeploy()
                self.assert_nothing_left(volume)

    def test_a_tear_down_in_vain_fails_with_the_reason_and_is_repeated(self) -> None:
        self.enroll(1)
        volume = self.give_volume()
        self.deploy()
        self.gateway.before = lambda request: 409 if request.method == "DELETE" else None
        self.bench.user.provision(self.uuid, "deleted")
        node = self.bench.reach(self.uuid, "error")
        self.assertIn("Cinder refuses", node["last_error"])
        self.assertEqual((1, 1), self.cinder.count())
        self.forget_hooks()
        self.undeploy()
        self.assert_nothing_left(volume)

    # Keystone is away

    def forget_token(self) -> None:
        """Have a conductor that has to log in."""
        self.bench.process.stop(signal.SIGKILL)
        self.bench.process.start()
        self.bench.wait_until_served()

    def test_a_keystone_that_is_slow_or_away_leaves_nothing(self) -> None:
        self.enroll(1)
        volume = self.give_volume()
        self.forget_token()
        self.keystone.process.send(signal.SIGSTOP)
        try:
            self.bench.user.provision(self.uuid, "active")
            self.bench.eventually(lambda: self.bench.user.node(self.uuid)["reservation"], "a step logs in")
        finally:
            self.keystone.process.send(signal.SIGCONT)
        self.bench.reach(self.uuid, "active")
        for verb, end, count in (("deleted", "error", (1, 1)), ("active", "deploy failed", (0, 0))):
            with self.subTest(verb=verb):
                self.forget_token()
                self.keystone.process.stop(signal.SIGKILL)
                try:
                    self.bench.user.provision(self.uuid, verb)
                    node = self.bench.reach(self.uuid, end)
                finally:
                    self.keystone.restart()
                self.assertIn(self.keystone.url, node["last_error"])
                self.assertIsNone(node["reservation"])
                self.assertEqual(count, self.cinder.count())
                self.undeploy()
                self.assert_nothing_left(volume)
                self.give_volume(volume)

    # How it is found

    def test_it_is_found_by_the_catalog_or_by_its_address(self) -> None:
        volume, url = self.cinder.create_volume(), self.cinder.url
        for place in ("", url, f"{url}/v3"):
            with self.subTest(place=place):
                self.check(volume, self.cinder.options(place)["cinder"])

    def test_it_is_found_without_keystone(self) -> None:
        cinder = self.useFixture(volumes.Cinder())
        volume = cinder.create_volume()
        login = {"auth_type": "http_basic", "username": "admin", "password": "of the gate"}
        for place in (cinder.url, f"{cinder.url}/v3"):
            for how in ({"auth_type": "none"}, login):
                with self.subTest(place=place, how=how["auth_type"]):
                    self.check(volume, {**cinder.options(place)["cinder"], **how})

    def check(self, volume: str, options: dict[str, Any]) -> None:
        """Ask a Cinder for a volume, and for its attachments, as conductors with these options do."""
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "ingot.conf")
        file.write_text("\n".join(["[cinder]", *(f"{name} = {value}" for name, value in options.items())]))
        conf = cfg.ConfigOpts()
        conf(["--config-file", str(file)])
        opts.use_service(conf, "cinder")
        cinder = connection.Cinder(conf, lambda: connection.SERVICE.connect(conf), context.RequestContext())
        found = cinder.find_volume(volume)
        self.assertEqual(volume, found and found["id"])
        self.assertEqual([], cinder.list_attachments(volume))
