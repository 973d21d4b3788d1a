"""The deploy interface ``bootc``: containers whose own system is installed."""

import base64
import json
import pathlib
from typing import Any, ClassVar

import fixtures

from ingot.common import errors
from ingot.drivers.agent import bootc, direct
from ingot.drivers.interfaces import results
from tests.unit.drivers import fakes
from tests.unit.drivers.test_agent_deploy import SUCCEEDED, AgentDeployTestCase

IMAGE = "oci://registry.example.org/os/server:1"
INTERFACES = ["autodetect", "bootc", "direct", "ramdisk", "custom-agent"]


class BootcTest(AgentDeployTestCase):
    options: ClassVar[dict[str, Any]] = {**AgentDeployTestCase.options, "enabled_deploy_interfaces": INTERFACES}
    columns: ClassVar[dict[str, Any]] = {**AgentDeployTestCase.columns, "deploy_interface": "bootc"}

    def deploying(self, offered: str = "execute_bootc_install", **info: Any) -> fakes.MemoryTask:
        task = self.machine(instance_info={"image_source": IMAGE, **info})
        self.call_in(task)
        self.offer("deploy", {"step": offered, "interface": "deploy", "priority": 0, "reboot_requested": False})
        task.driver.deploy.get_in_band_steps(task, "deploy")
        self.agent.posted.clear()
        answer = {"deploy_result": "written", "deploy_step": {"args": {"oci_pull_secret": "secret"}}}
        self.agent.outcomes["deploy.execute_deploy_step"] = {**SUCCEEDED, "command_result": answer}
        return task

    def install(self, task: fakes.MemoryTask) -> dict[str, Any]:
        """Return the arguments that the agent's step gets."""
        self.assertEqual(results.DONE, task.driver.deploy.execute_deploy_step(task, {"step": "execute_bootc_install"}))
        ((_name, params),) = self.agent.posted
        self.assertEqual(("deploy", "execute_bootc_install"), (params["step"]["interface"], params["step"]["step"]))
        args: dict[str, Any] = params["step"]["args"]
        return args

    def test_the_steps_are_those_of_custom_agent_and_the_installation(self) -> None:
        task = self.machine()
        listed = [(step["step"], step["priority"]) for step in task.driver.deploy.get_deploy_steps(task)]
        self.assertEqual(
            [("deploy", 100), ("execute_bootc_install", 80), ("prepare_instance_boot", 60), ("tear_down_agent", 40)],
            listed[:4],
        )

    def test_the_agent_installs_the_container(self) -> None:
        task = self.deploying()
        task.drive = "ZHJpdmU="
        expected = {"image_source": IMAGE, "configdrive": "ZHJpdmU=", "oci_pull_secret": None}
        self.assertEqual(expected, self.install(task))
        self.assertNotIn("secret", json.dumps(task.memory))

    def test_the_secret_is_what_stands_in_a_file_of_secrets(self) -> None:
        auth = base64.b64encode(b"me:hush").decode()
        given = self.install(self.deploying(image_pull_secret="me:hush"))["oci_pull_secret"]
        self.assertEqual(auth, base64.b64decode(given).decode())
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, "auth.json")
        file.write_text(json.dumps({"auths": {"registry.example.org": {"auth": auth}}}))
        task = self.deploying()
        task.conf.set_override("authentication_config", str(file), group="oci")
        self.assertEqual(given, self.install(task)["oci_pull_secret"])

    def test_an_agent_that_cannot(self) -> None:
        task = self.deploying(offered="write_image")
        step = {"step": "execute_bootc_install"}
        error = self.assertRaises(errors.StepFailed, task.driver.deploy.execute_deploy_step, task, step)
        self.assertIn("has no deploy step execute_bootc_install", error.message)
        self.assertEqual([], self.agent.posted)

    def test_what_is_no_container_is_refused(self) -> None:
        for info, part in (
            ({}, "image_source"),
            ({"image_source": "http://images/one.raw"}, "deploy interface direct writes disk images"),
            ({"image_source": "oci://Host/UPPER"}, "names in lower case"),
            ({"image_source": IMAGE, "image_pull_secret": 7}, "image_pull_secret"),
        ):
            task = self.machine(instance_info=info)
            error = self.assertRaises(errors.IngotError, task.driver.deploy.validate, task)
            self.assertIn(part, error.message)
        task = self.machine(instance_info={"image_source": IMAGE})
        task.driver.deploy.validate(task)

    def test_what_autodetect_takes_for_a_container(self) -> None:
        self.options = {**self.options, "autodetect_deploy_interfaces": ["ramdisk", "bootc", "direct"]}
        for info, expected in (
            ({"image_source": IMAGE, "image_type": "bootc"}, bootc.BootcDeploy),
            ({"image_source": IMAGE, "image_disk_format": "bootc"}, bootc.BootcDeploy),
            ({"image_source": IMAGE}, direct.DirectDeploy),
            ({"image_source": "http://images/one", "image_type": "bootc"}, direct.DirectDeploy),
            ({}, direct.DirectDeploy),
        ):
            task = self.machine(deploy_interface="autodetect", instance_info=info)
            self.assertIs(expected, type(task.driver.deploy), info)
