"""The drivers bring machines of the rack through cleaning and deployments."""

import base64
import gzip
from pathlib import Path
from typing import Any, ClassVar

from ingot.common import errors, states
from ingot.drivers.agent import session
from ingot.drivers.images import configdrive
from ingot.drivers.interfaces import base, results
from ingot.rack import readback
from tests import disk_images
from tests.functional.drivers.base import DriverRackTest

CORE = (
    "deploy",
    "write_image",
    "prepare_instance_boot",
    "tear_down_agent",
    "switch_to_tenant_network",
    "boot_instance",
)
MIRROR = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX", "controller": "software", "is_root_volume": True}]}


class TestDirect(DriverRackTest):
    settings: ClassVar[dict[str, Any]] = {"disks": 2}
    columns: ClassVar[dict[str, Any]] = {"raid_interface": "agent"}

    def setUp(self) -> None:
        super().setUp()
        self.image = disk_images.gpt_image()
        info = self.service.serve_image(self.image)
        self.task.set(
            instance_info={
                "image_source": info["urls"][0],
                "image_checksum": info["os_hash_value"],
            }
        )
        self.task.driver.deploy.validate(self.task)

    def test_a_machine_with_a_mirror_and_a_config_drive_becomes_active(self) -> None:
        self.task.drive = configdrive.build(self.task, {"user_data": "#!/bin/sh"})
        drive = gzip.decompress(base64.b64decode(self.task.drive))
        self.finish(self.task.driver.deploy.prepare)
        self.step("deploy")
        offered = self.task.driver.deploy.get_in_band_steps(self.task, "deploy")
        self.assertIn("erase_devices_metadata", [step["step"] for step in offered])
        built = self.step("apply_configuration", "raid", raid_config=MIRROR)
        for hook in base.find_hooks("deploy", "raid", "apply_configuration"):
            hook(self.task, built.hook_result)
        self.assertEqual("1", self.task.node.raid_config["logical_disks"][0]["raid_level"])
        for name in CORE[1:]:
            self.step(name)
        self.rack.control.wait_for_state(self.name, "os")
        self.assertEqual(states.POWER_ON, self.task.node.power_state)
        self.assertEqual({"boot_device": "disk", "persistent": True}, self._boot_device())
        self.assertNotEqual(self.service.token, self.task.node.agent_token)  # but one of no agent
        self.assertNotIn("agent", self.task.node.driver_internal_info)
        original = Path(self.rack.state_dir, "original.raw")
        original.write_bytes(self.image)
        for path in self.disk_paths():
            self.assertEqual(
                readback.content_digest(original, len(self.image)), readback.content_digest(path, len(self.image))
            )
            self.assertEqual(drive, (readback.config_drive(path) or b"")[: len(drive)])

    def _boot_device(self) -> Any:
        return self.task.driver.management.get_boot_device(self.task)

    def test_another_conductor_goes_on_with_a_command_that_the_first_one_posted(self) -> None:
        self.finish(self.task.driver.deploy.prepare)
        self.step("deploy")
        write = {"interface": "deploy", "step": "write_image"}
        self.task.driver.deploy.execute_deploy_step(self.task, write)
        self.task.memory.clear()  # as after a crash
        self.finish(lambda task: task.driver.deploy.execute_deploy_step(task, write))
        posted = [one for one in self.rack.control.machine(self.name)["commands"] if "prepare" in one["command"]]
        self.assertEqual(1, len(posted))

    def test_a_failed_step_says_what_the_agent_said(self) -> None:
        self.rack.control.order_fault(self.name, "checksum_wrong", times=1)
        self.finish(self.task.driver.deploy.prepare)
        self.step("deploy")
        error = self.assertRaises(errors.StepFailed, self.step, "write_image")
        self.assertIn("checksum", error.message.lower())
        self.assertNotIn(self.service.token, error.message)
        self.assertIsInstance(self.step("write_image"), results.Done)

    def test_an_agent_that_died_is_noticed(self) -> None:
        self.finish(self.task.driver.deploy.prepare)
        self.step("deploy")
        self.rack.control.power(self.name, "reset")
        self.task.await_heartbeat()
        self.task.conf.set_override("command_timeout", 1, "agent")
        self.task.conf.set_override("max_command_attempts", 1, "agent")
        self.rack.control.power(self.name, "off")
        error = self.assertRaises(errors.AgentUnreachable, self.step, "write_image")
        self.assertIn("refused", error.message)

    def test_logs_are_collected(self) -> None:
        self.finish(self.task.driver.deploy.prepare)
        self.assertIsNone(self.task.driver.deploy.collect_logs(self.task))
        self.step("deploy")
        self.assertEqual(b"\x1f\x8b", self.task.driver.deploy.collect_logs(self.task)[:2])

    def test_tear_down_leaves_nothing(self) -> None:
        self.finish(self.task.driver.deploy.prepare)
        self.step("deploy")
        self.finish(self.task.driver.deploy.tear_down)
        self.task.driver.deploy.clean_up(self.task)
        self.assertEqual({}, self.task.node.boot_config)
        self.assertFalse(session.is_alive(self.task))
        self.rack.control.wait_for_state(self.name, "off")


class TestCleaning(DriverRackTest):
    settings: ClassVar[dict[str, Any]] = {
        "steps": [
            {"step": "flash", "interface": "management", "priority": 0, "kinds": ["clean"], "reboot_requested": True}
        ]
    }
    options: ClassVar[dict[str, Any]] = {"deploy__erase_devices_priority": 0}

    def _in_band(self, step: dict[str, Any]) -> Any:
        return self.finish(lambda task: task.driver.deploy.execute_in_band_step(task, "clean", step))

    def test_disks_are_erased_and_the_machine_is_off(self) -> None:
        disk = self.disk_paths()[0]
        with disk.open("r+b") as content:
            content.write(b"secret" * 100)
        self.finish(self.task.driver.deploy.prepare_cleaning)
        offered = {step["step"]: step for step in self.task.driver.deploy.get_in_band_steps(self.task, "clean")}
        self.assertEqual(0, offered["erase_devices"]["priority"])
        self.assertEqual(99, offered["erase_devices_metadata"]["priority"])
        self._in_band(offered["erase_devices_metadata"])
        self.assertNotIn(b"secret", disk.read_bytes()[:4096])
        self.finish(self.task.driver.deploy.tear_down_cleaning)
        self.rack.control.wait_for_state(self.name, "off")
        self.assertIsNone(self.task.node.agent_url)

    def test_a_step_may_ask_for_a_reboot(self) -> None:
        self.finish(self.task.driver.deploy.prepare_cleaning)
        offered = {step["step"]: step for step in self.task.driver.deploy.get_in_band_steps(self.task, "clean")}
        boots = self.rack.control.machine(self.name)["boots"]
        answer = self._in_band(offered["flash"])
        self.assertEqual("flash", answer.hook_result["clean_step"]["step"])
        self.assertEqual(boots + 1, self.rack.control.machine(self.name)["boots"])
        self._in_band(offered["erase_devices_metadata"])

    def test_another_version_after_the_reboot_is_detected(self) -> None:
        self.finish(self.task.driver.deploy.prepare_cleaning)
        offered = {step["step"]: step for step in self.task.driver.deploy.get_in_band_steps(self.task, "clean")}
        self.rack.control.order_fault(self.name, "agent_version_after_reboot", "14.0.0")
        error = self.assertRaises(errors.AgentVersionMismatch, self._in_band, offered["flash"])
        self.assertIn("14.0.0", error.message)
