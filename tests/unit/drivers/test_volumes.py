"""Booting from a volume: what its records must say, and what is left out of a deployment."""

from typing import Any, ClassVar

from ingot.common import clock, errors, iscsi, states
from ingot.db import models
from ingot.drivers.interfaces import results
from tests.unit.drivers import fakes

IQN = "iqn.2026-01.org.example:m1"
PROPERTIES = {"target_iqn": "iqn.2026-01.org.example:v1", "target_portal": "192.0.2.5:3260"}
CHAP = {"auth_method": "CHAP", "auth_username": "chap", "auth_password": "sesame"}


def target(**columns: Any) -> models.Record:
    values = {"uuid": "t", "boot_index": 0, "volume_type": "iscsi", "volume_id": "v1", "properties": PROPERTIES}
    return models.Record(**values | columns)


def connector(**columns: Any) -> models.Record:
    return models.Record(**{"uuid": "c", "type": "iqn", "connector_id": IQN} | columns)


class VolumeCase(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {
        "enabled_storage_interfaces": ["noop", "external"],
        "enabled_deploy_interfaces": ["direct", "ramdisk"],
        "enabled_boot_interfaces": ["ipxe"],
        "deploy__deploy_kernel": "http://files/kernel",
        "deploy__deploy_ramdisk": "http://files/initrd",
    }
    columns: ClassVar[dict[str, Any]] = {"storage_interface": "external"}

    def volume_task(self, **properties: Any) -> fakes.MemoryTask:
        task = self.task()
        task.ports = [fakes.port()]
        task.volume_connectors = [connector(type="ip", connector_id="192.0.2.9"), connector()]
        task.volume_targets = [target(properties={**PROPERTIES, **properties})]
        return task


class Records(VolumeCase):
    def refused(self, task: fakes.MemoryTask) -> str:
        return self.assertRaises(errors.Invalid, task.driver.storage.validate, task).message

    def test_where_a_volume_is_is_said_as_rfc_4173_has_it(self) -> None:
        for properties, where in (
            ({}, "iscsi:192.0.2.5::3260:0:iqn.2026-01.org.example:v1"),
            ({"target_portal": "store.example"}, "iscsi:store.example::3260:0:iqn.2026-01.org.example:v1"),
            ({"target_portal": "[2001:db8::1]:860"}, "iscsi:[2001:db8::1]::860:0:iqn.2026-01.org.example:v1"),
            ({"target_lun": 26}, "iscsi:192.0.2.5::3260:1a:iqn.2026-01.org.example:v1"),
        ):
            task = self.volume_task(**properties)
            volume = iscsi.boot_volume(task.volume_targets[0], task.volume_connectors)
            self.assertEqual((where, IQN, None), (volume.uri, volume.initiator, volume.username))

    def test_credentials_are_for_the_machine_only(self) -> None:
        task = self.volume_task(**CHAP)
        volume = iscsi.boot_volume(task.volume_targets[0], task.volume_connectors)
        self.assertEqual(("chap", "sesame"), (volume.username, volume.password))
        self.assertNotIn("sesame", repr(volume))

    def test_a_good_volume_is_valid_and_so_is_a_node_without_one(self) -> None:
        task = self.volume_task(**CHAP)
        task.driver.storage.validate(task)
        task.volume_targets = [target(boot_index=1, volume_type="fibre_channel")]
        task.driver.storage.validate(task)
        self.assertTrue(task.driver.storage.should_write_image(task))

    def test_what_is_missing_is_named(self) -> None:
        task = self.volume_task(target_iqn="", target_portal=None)
        self.assertIn("target_iqn and target_portal", self.refused(task))
        task = self.volume_task()
        task.volume_connectors = [connector(type="wwpn")]
        self.assertIn("one of type iqn", self.refused(task))
        for given, missing in (
            ({"auth_method": "CHAP"}, "auth_username and auth_password"),
            ({"auth_username": "chap"}, "auth_password"),
            ({"auth_password": "sesame"}, "auth_username"),
        ):
            self.assertIn(missing, self.refused(self.volume_task(**given)))

    def test_what_cannot_be_used_is_named(self) -> None:
        for key, value in (
            ("target_iqn", "v1"),
            ("target_iqn", "iqn.2026-01.org.example:v1 || shell"),
            ("target_portal", "a/b"),
            ("target_portal", "u@host"),
            ("target_portal", "host:port"),
            ("target_portal", 7),
            ("target_lun", -1),
            ("target_lun", True),
            ("target_lun", "x"),
            ("auth_method", "KRB5"),
        ):
            self.assertIn(key, self.refused(self.volume_task(**{key: value})))
        task = self.volume_task()
        task.volume_targets = [target(volume_type="fibre_channel")]
        self.assertIn("fibre_channel", self.refused(task))
        task = self.volume_task()
        task.volume_connectors = [connector(connector_id="nonsense")]
        self.assertIn("connector_id", self.refused(task))

    def test_a_secret_that_would_be_another_command_is_refused_and_not_repeated(self) -> None:
        for secret in ("two words", "line\nbreak", "${mac}", "||", "pässword"):
            message = self.refused(self.volume_task(**{**CHAP, "auth_password": secret}))
            self.assertIn("auth_password", message)
            self.assertNotIn(secret, message.replace("not ||,", ""))


class Deploying(VolumeCase):
    def test_nothing_is_written_and_no_agent_is_booted(self) -> None:
        task = self.volume_task()
        task.set(boot_address="192.0.2.66")
        deploy = task.driver.deploy
        deploy.validate(task)
        self.assertFalse(deploy.runs_agent(task, "deploy"))
        self.assertTrue(deploy.runs_agent(task, "clean"))
        self.assertEqual(results.DONE, self.run_to_end(lambda: deploy.prepare(task)))
        for step in deploy.declared_steps("deploy"):
            task.memory.clear()
            answer = self.run_to_end(lambda step=step: deploy.execute_deploy_step(task, step))
            self.assertEqual(results.DONE, answer, step["step"])
        self.assertEqual(({"target": "volume"}, None), (task.node.boot_config, task.node.boot_address))
        self.assertEqual({"boot_device": "pxe", "persistent": True}, task.driver.management.get_boot_device(task))
        self.assertEqual(states.POWER_ON, task.node.power_state)
        deploy.clean_up(task)
        self.assertEqual({}, task.node.boot_config)

    def test_an_agent_that_is_there_already_is_not_used(self) -> None:
        task = self.volume_task()
        task.conf.set_override("fast_track", True, group="deploy")
        task.set(
            agent_url="https://192.0.2.7:9999", agent_token="t", agent_last_heartbeat=clock.now(),
            power_state=states.POWER_ON, boot_config={"target": "ramdisk"},
        )  # fmt: skip
        self.run_to_end(lambda: task.driver.deploy.prepare(task))
        self.assertEqual((states.POWER_OFF, None, {}), (
            task.node.power_state, task.node.agent_url, task.node.boot_config))  # fmt: skip

    def test_an_image_beside_a_volume_is_refused(self) -> None:
        for key in ("image_source", "kernel", "ramdisk"):
            task = self.volume_task()
            task.node.instance_info = {key: "http://files/x"}
            message = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message
            self.assertIn(f"instance_info.{key}", message)
            self.assertIn("boot index 0", message)

    def test_an_interface_that_is_gone_is_said_and_not_a_crash(self) -> None:
        for kind, name in (("storage", "cinder"), ("boot", "pxe")):
            task = self.task(**{f"{kind}_interface": name})
            task.ports = [fakes.port()]
            message = self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message
            self.assertIn(f"does not have the node's {kind} interface", message)
