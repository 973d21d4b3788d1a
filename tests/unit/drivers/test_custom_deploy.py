"""Deploy interfaces that others are made of: ``custom-agent``, which writes nothing itself, and ``autodetect``."""

import base64
import gzip
import json
from typing import Any, ClassVar

from ingot.common import clock, errors
from ingot.drivers.agent import autodetect, custom, deploy, direct
from ingot.drivers.generic import fake
from ingot.drivers.images import configdrive
from ingot.drivers.interfaces import results
from ingot.drivers.loading import factory
from tests.unit.drivers import fakes
from tests.unit.drivers.test_agent_deploy import SUCCEEDED, AgentDeployTestCase

ALL = ["autodetect", "direct", "ramdisk", "custom-agent", "fake"]
DRIVE = {"user_data": {"ignition": {"version": "3.2.0"}, "password": "s3cret"}}


class CustomTest(AgentDeployTestCase):
    columns: ClassVar[dict[str, Any]] = {**AgentDeployTestCase.columns, "deploy_interface": "custom-agent"}

    def test_it_has_the_core_steps_but_for_the_image(self) -> None:
        task = self.machine()
        listed = [(step["step"], step["priority"]) for step in task.driver.deploy.get_deploy_steps(task)]
        expected = [("deploy", 100), ("prepare_instance_boot", 60), ("tear_down_agent", 40)]
        self.assertEqual([*expected, ("switch_to_tenant_network", 30), ("boot_instance", 20)], listed)

    def test_it_asks_for_no_image(self) -> None:
        for info in ({}, {"image_source": "http://images/one.raw"}):
            task = self.machine(instance_info=info)
            task.driver.deploy.validate(task)
        self.assertIn("deploy_kernel", self.assertRaises(errors.MissingParameter, self.without_ramdisk).message)

    def without_ramdisk(self) -> None:
        task = self.machine(driver_info={})
        task.driver.deploy.validate(task)

    def test_a_step_that_is_asked_for_gets_the_config_drive_as_it_was_given(self) -> None:
        task = self.machine(instance_info={"image_pull_secret": "hush", "capabilities": {}})
        drive = configdrive.build(task, DRIVE, task.driver.deploy.keeps_drive_parts)
        assert isinstance(drive, str)
        task.drive = drive
        self.assertEqual(DRIVE, self.given(task)["configdrive"])
        self.assertEqual("******", self.given(task)["image_pull_secret"], "and nothing else that is secret")

    def test_a_finished_one_stays_as_it_is(self) -> None:
        task = self.machine()
        task.drive = base64.b64encode(gzip.compress(b"iso")).decode()
        self.assertEqual(task.drive, self.given(task)["configdrive"])
        task.drive = None
        self.assertNotIn("configdrive", self.given(task))

    def test_one_that_cannot_be_used_is_refused_all_the_same(self) -> None:
        task = self.machine()
        error = self.assertRaises(errors.Invalid, configdrive.build, task, {"userdata": "x"}, True)
        self.assertIn("'userdata'", error.message)

    def test_steps_of_other_interfaces_get_none(self) -> None:
        task = self.machine(deploy_interface="direct")
        task.drive = "secret"
        self.assertNotIn("configdrive", self.given(task))

    def test_cleaning_gets_none(self) -> None:
        task = self.machine()
        task.drive = "secret"
        self.assertNotIn("configdrive", self.given(task, "clean"))

    def test_what_was_kept_for_it_becomes_a_drive_for_others(self) -> None:
        task = self.machine(deploy_interface="direct")
        task.drive = json.dumps(DRIVE)
        built = configdrive.read(task)
        assert built is not None
        self.assertIn(b"openstack", gzip.decompress(base64.b64decode(built)))

    def given(self, task: fakes.MemoryTask, kind: str = "deploy") -> dict[str, Any]:
        """Return the instance_info that the agent gets with a step."""
        self.call_in(task)
        self.agent.outcomes = {f"{kind}.execute_{kind}_step": SUCCEEDED}
        self.agent.posted.clear()
        step = {"interface": "deploy", "step": "install_coreos", "priority": 80}
        self.assertIsInstance(task.driver.deploy.execute_in_band_step(task, kind, step), results.Done)
        ((_name, params),) = self.agent.posted
        self.assertEqual("install_coreos", params["step"]["step"])
        info: dict[str, Any] = params["node"]["instance_info"]
        return info

    def test_the_machine_boots_what_the_steps_have_written(self) -> None:
        task = self.machine()
        self.call_in(task)
        self.agent.outcomes = {"standby.sync": SUCCEEDED}
        for step in ("prepare_instance_boot", "tear_down_agent", "switch_to_tenant_network", "boot_instance"):
            found = self.run_to_end(lambda step=step: task.driver.deploy.execute_deploy_step(task, {"step": step}))
            self.assertEqual(results.DONE, found)
            task.memory = {}
        self.assertEqual({"boot_device": "disk", "persistent": True}, task.driver.management.get_boot_device(task))
        self.assertEqual(["-tenant", "+tenant"][1:], task.driver.network.done)
        self.assertLess(task.node.agent_last_heartbeat or clock.now(), clock.now())


class AutodetectTest(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"enabled_deploy_interfaces": ALL}

    def works(self, **columns: Any) -> type:
        return type(self.task(deploy_interface="autodetect", **columns).driver.deploy)

    def test_the_instance_decides(self) -> None:
        image = {"image_source": "http://images/one.qcow2"}
        kernel = {"kernel": "http://k", "ramdisk": "http://r"}
        for info, expected in (
            ({}, direct.DirectDeploy),
            (image, direct.DirectDeploy),
            ({"image_source": "oci://host/os"}, direct.DirectDeploy),
            ({"boot_iso": "http://iso"}, deploy.RamdiskDeploy),
            ({"boot_iso": "http://iso", "ironic_ramdisk_deploy": True}, deploy.RamdiskDeploy),
            (kernel, deploy.RamdiskDeploy),
            ({"kernel": "http://k"}, direct.DirectDeploy),
            ({**image, **kernel}, direct.DirectDeploy),
            ({**image, "boot_iso": "http://iso"}, direct.DirectDeploy),
            ({**image, "boot_iso": "http://iso", "ironic_ramdisk_deploy": "false"}, direct.DirectDeploy),
            ({**image, **kernel, "ironic_ramdisk_deploy": "True"}, deploy.RamdiskDeploy),
        ):
            self.assertIs(expected, self.works(instance_info=info), info)

    def test_the_operator_says_what_there_is_and_what_is_last(self) -> None:
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            enabled_deploy_interfaces=ALL,
            autodetect_deploy_interfaces=["ramdisk", "custom-agent"],
        )
        for info, expected in (({}, custom.CustomAgentDeploy), ({"boot_iso": "http://iso"}, deploy.RamdiskDeploy)):
            task = fakes.MemoryTask(conf, fakes.node(deploy_interface="autodetect", instance_info=info))
            self.assertIs(expected, type(task.driver.deploy))
            self.assertEqual("autodetect", task.node.deploy_interface)

    def test_it_is_the_default_where_it_is_enabled(self) -> None:
        for names, expected in ((ALL[:3], autodetect.AutodetectDeploy), (ALL[1:3], direct.DirectDeploy)):
            conf = fakes.configuration(enabled_hardware_types=["ipmi"], enabled_deploy_interfaces=names)
            hardware = factory.Hardware(conf)
            self.assertIs(expected, type(hardware.interface("deploy", hardware.default("ipmi", "deploy"))))
        self.assertIs(fake.FakeDeploy, type(self.task(deploy_interface="fake").driver.deploy))

    def test_it_tells_of_the_keys_that_an_image_needs(self) -> None:
        conf = fakes.configuration(enabled_hardware_types=["ipmi"], enabled_deploy_interfaces=ALL[:3])
        self.assertIn("image_pull_secret", factory.Hardware(conf).properties("ipmi"))

    def test_what_it_cannot_choose_from_stops_the_conductor(self) -> None:
        for names, said in (
            (["ramdisk", "bootc", "direct"], "Names that are in enabled_deploy_interfaces, too: "),
            (["iscsi"], "Names that are in enabled_deploy_interfaces, too: "),
            (["autodetect"], "Names that are in enabled_deploy_interfaces, too: "),
            ([], "Names that are in enabled_deploy_interfaces, too: "),
        ):
            conf = fakes.configuration(
                enabled_hardware_types=["ipmi"],
                enabled_deploy_interfaces=ALL[:3],
                autodetect_deploy_interfaces=names,
            )
            error = self.assertRaises(errors.ConfigurationError, factory.Hardware, conf)
            for part in ("autodetect_deploy_interfaces", str(names), said, "direct, ramdisk"):
                self.assertIn(part, error.message)
        unused = fakes.configuration(enabled_hardware_types=["ipmi"], autodetect_deploy_interfaces=["bootc"])
        factory.Hardware(unused)
