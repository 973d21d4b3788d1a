"""Validation and bookkeeping of the interfaces, without hardware."""

from typing import Any, ClassVar

from ingot.common import errors, states
from ingot.drivers.interfaces import base, results
from ingot.drivers.ipmi import base as ipmi
from tests.unit.drivers import fakes

RAMDISK = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
IMAGE = {"image_source": "http://images/one.raw", "image_checksum": "a" * 64}


class IPXETest(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {
        "service_catalog__endpoint_override": "http://10.0.0.1:6385/",
        "pxe__kernel_append_params": "quiet",
    }
    columns: ClassVar[dict[str, Any]] = {"boot_interface": "ipxe", "driver_info": RAMDISK}

    def test_what_would_be_another_command_to_ipxe_is_refused(self) -> None:
        for odd in ({"deploy_kernel": 5}, {"deploy_ramdisk": "http://files/a\nboot"}):
            task = self.task(driver_info={**RAMDISK, **odd})
            task.ports = [fakes.port()]
            refused = self.assertRaises(errors.Invalid, task.driver.boot.validate, task)
            self.assertIn(next(iter(odd)), refused.message)
        task = self.task(driver_info={**RAMDISK, "kernel_append_params": "quiet || shell"})
        refused = self.assertRaises(errors.Invalid, task.driver.boot.prepare_ramdisk, task, {})
        self.assertIn("kernel_args", refused.message)

    def test_the_agents_boot_is_noted_and_the_network_comes_first_once(self) -> None:
        task = self.task()
        task.driver.boot.prepare_ramdisk(task, {"ipa-debug": "1"})
        self.assertEqual(
            {
                "target": "ramdisk",
                "kernel": "http://files/kernel",
                "initrd": "http://files/initrd",
                "kernel_args": "quiet ipa-api-url=http://10.0.0.1:6385 ipa-debug=1 BOOTIF=01-${mac:hexhyp}",
            },
            task.node.boot_config,
        )
        self.assertEqual({"boot_device": "pxe", "persistent": False}, task.driver.management.get_boot_device(task))
        task.driver.boot.clean_up_ramdisk(task)
        self.assertEqual({}, task.node.boot_config)

    def test_kernel_parameters_of_a_node_replace_or_extend_the_default(self) -> None:
        for own, expected in (("a=1", "a=1 "), ("%default% a=1", "quiet a=1 "), ("", "ipa-api-url")):
            task = self.task(driver_info={**RAMDISK, "kernel_append_params": own})
            task.driver.boot.prepare_ramdisk(task, {})
            self.assertTrue(task.node.boot_config["kernel_args"].startswith(expected))

    def test_an_instance_boots_from_disk_or_its_ramdisk_from_the_network(self) -> None:
        task = self.task()
        task.driver.boot.prepare_instance(task)
        self.assertEqual({"target": "disk"}, task.node.boot_config)
        self.assertEqual({"boot_device": "disk", "persistent": True}, task.driver.management.get_boot_device(task))
        task.node.instance_info = {"kernel": "http://k", "ramdisk": "http://r", "kernel_append_params": "%default% b"}
        task.driver.boot.prepare_instance(task)
        self.assertEqual(("instance", "http://k"), (task.node.boot_config["target"], task.node.boot_config["kernel"]))
        self.assertTrue(task.node.boot_config["kernel_args"].startswith("quiet b"))
        task.driver.boot.clean_up_instance(task)
        self.assertEqual({}, task.node.boot_config)

    def test_a_boot_script_cannot_be_extended_by_what_goes_into_it(self) -> None:
        task = self.task(driver_info={**RAMDISK, "kernel_append_params": "a\nsanboot http://evil"})
        error = self.assertRaises(errors.Invalid, task.driver.boot.prepare_ramdisk, task, {})
        self.assertIn("kernel_args", error.message)

    def test_the_ramdisk_of_an_architecture_goes_before_that_of_all(self) -> None:
        options = {
            option: value
            for name in ("kernel", "ramdisk")
            for option, value in (
                (f"deploy__deploy_{name}", f"http://files/{name}"),
                (f"deploy__deploy_{name}_by_arch", {"aarch64": f"http://files/arm/{name}"}),
            )
        }
        for architecture, folder in (("aarch64", "files/arm"), ("x86_64", "files"), (None, "files")):
            properties = {"cpu_arch": architecture} if architecture else {}
            conf = fakes.configuration(enabled_hardware_types=["fake-hardware"], **self.options, **options)
            node = fakes.node(boot_interface="ipxe", driver_info={}, properties=properties)
            task = fakes.MemoryTask(conf, node)
            task.driver.boot.prepare_ramdisk(task, {})
            self.assertEqual(f"http://{folder}/kernel", task.node.boot_config["kernel"])
            self.assertEqual(f"http://{folder}/ramdisk", task.node.boot_config["initrd"])

    def test_what_is_missing_is_named(self) -> None:
        task = self.task(driver_info={})
        error = self.assertRaises(errors.MissingParameter, task.driver.boot.validate, task)
        self.assertIn("deploy_kernel and deploy_ramdisk", error.message)
        task = self.task()
        self.assertIn("pxe_enabled", self.assertRaises(errors.Invalid, task.driver.boot.validate, task).message)
        task.ports = [fakes.port()]
        task.driver.boot.validate(task)


class IPMIAddressTest(fakes.DriverTestCase):
    def test_defaults_and_values(self) -> None:
        self.assertEqual(623, ipmi.read_address({"ipmi_address": "bmc"}).port)
        whole = ipmi.read_address(
            {
                "ipmi_address": "::1",
                "ipmi_port": "6230",
                "ipmi_username": "u",
                "ipmi_password": "hush",
                "ipmi_priv_level": "OPERATOR",
                "ipmi_hex_kg_key": "00" * 20,
            }
        )
        self.assertEqual(("[::1]:6230", 3, bytes(20)), (whole.where, whole.privilege, whole.kg))
        self.assertNotIn("hush", repr(whole))

    def test_what_cannot_be_used_is_refused_with_the_key(self) -> None:
        for key, value in (
            ("ipmi_port", 0),
            ("ipmi_port", "x"),
            ("ipmi_port", True),
            ("ipmi_username", "u" * 17),
            ("ipmi_password", "p" * 21),
            ("ipmi_password", 5),
            ("ipmi_priv_level", "GOD"),
            ("ipmi_hex_kg_key", "00"),
        ):
            error = self.assertRaises(errors.Invalid, ipmi.read_address, {"ipmi_address": "bmc", key: value})
            self.assertIn(f"driver_info.{key}", error.message)
            self.assertNotIn("ppp", error.message)
        self.assertIn("ipmi_address", self.assertRaises(errors.MissingParameter, ipmi.read_address, {}).message)


class DeployInterfacesTest(fakes.DriverTestCase):
    columns: ClassVar[dict[str, Any]] = {"boot_interface": "ipxe", "driver_info": RAMDISK, "deploy_interface": "direct"}

    def _task(self, **columns: Any) -> fakes.MemoryTask:
        task = self.task(**columns)
        task.ports = [fakes.port()]
        return task

    def test_the_core_steps_are_those_of_specification_000(self) -> None:
        deploy = self._task().driver.deploy
        self.assertTrue(deploy.has_decomposed_deploy_steps())
        self.assertEqual(
            [
                ("deploy", 100),
                ("write_image", 80),
                ("prepare_instance_boot", 60),
                ("tear_down_agent", 40),
                ("switch_to_tenant_network", 30),
                ("boot_instance", 20),
            ],
            [(step["step"], step["priority"]) for step in deploy.declared_steps("deploy")],
        )
        self.assertEqual(base.CORE_DEPLOY_STEPS, {step["step"] for step in deploy.declared_steps("deploy")})

    def test_a_deployment_without_image_says_so(self) -> None:
        task = self._task()
        self.assertIn("image_source", self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message)
        task.node.instance_info = IMAGE
        task.driver.deploy.validate(task)

    def test_a_ramdisk_deployment_boots_and_writes_nothing(self) -> None:
        task = self._task(deploy_interface="ramdisk")
        self.assertIn(
            "kernel and ramdisk", self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message
        )
        task.node.instance_info = {"kernel": "http://k", "ramdisk": "http://r", "image_source": "http://i"}
        self.assertIn("image_source", self.assertRaises(errors.Invalid, task.driver.deploy.validate, task).message)
        del task.node.instance_info["image_source"]
        task.driver.deploy.validate(task)
        self.assertEqual(results.DONE, task.driver.deploy.prepare(task))
        for step in task.driver.deploy.declared_steps("deploy"):
            answer = task.driver.deploy.execute_deploy_step(task, step)
            self.assertEqual(results.DONE, results.parse_result(answer, step["step"]))
        self.assertEqual("instance", task.node.boot_config["target"])
        self.assertEqual("power on", task.node.power_state)

    def test_logs_of_a_machine_without_agent_are_none(self) -> None:
        task = self._task()
        self.assertIsNone(task.driver.deploy.collect_logs(task))


class FakePowerTest(fakes.DriverTestCase):
    def test_a_fault_refuses_changes(self) -> None:
        task = self.task(driver_info={"fake_power_fault": "the fuse is blown"})
        refusal = self.assertRaises(errors.HardwareError, task.driver.power.start_power_change, task, states.POWER_ON)
        self.assertIn("the fuse is blown", refusal.message)
        self.assertIsNone(task.driver.power.get_power_state(task))


class FakeStepsTest(fakes.DriverTestCase):
    def test_pause_takes_its_time_without_a_thread(self) -> None:
        task = self.task()
        answer = task.driver.vendor.execute_clean_step(task, {"step": "pause", "args": {"seconds": 100}})
        self.assertTrue(90 < answer.after <= 100)
        task.memory["over"] -= 100
        self.assertEqual(results.DONE, task.driver.vendor.execute_clean_step(task, {"step": "pause"}))
        wrong = {"step": "pause", "args": {"seconds": "long"}}
        self.assertRaises(errors.Invalid, self.task().driver.vendor.execute_clean_step, self.task(), wrong)

    def test_fail_fails_with_the_message(self) -> None:
        task = self.task()
        step = {"step": "fail", "args": {"message": "ouch"}}
        error = self.assertRaises(errors.StepFailed, task.driver.vendor.execute_deploy_step, task, step)
        self.assertIn("ouch", error.message)

    def test_a_step_that_is_not_declared_is_named(self) -> None:
        task = self.task()
        error = self.assertRaises(errors.StepFailed, task.driver.bios.execute_clean_step, task, {"step": "validate"})
        self.assertIn("interface fake (bios) has no clean step validate", error.message)

    def test_settings_and_arrays_are_remembered(self) -> None:
        task = self.task()
        settings = [{"name": "virtualization", "value": "on"}]
        task.driver.bios.apply_configuration(task, settings)
        self.assertEqual({"virtualization": "on"}, task.node.driver_internal_info["fake_bios_settings"])
        arrays = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}
        task.driver.raid.apply_configuration(task, arrays)
        self.assertEqual(arrays, task.node.raid_config)


class RAIDConfigTest(fakes.DriverTestCase):
    def _refused(self, *disks: Any) -> str:
        raid = self.task(raid_interface="agent").driver.raid
        return self.assertRaises(errors.Invalid, raid.validate_raid_config, {"logical_disks": list(disks)}).message

    def test_mistakes_are_named_by_disk_and_key(self) -> None:
        good = {"raid_level": "1", "size_gb": 10, "is_root_volume": True}
        self.assertIn("logical_disks", self._refused())
        self.assertIn("logical_disks[1]", self._refused(good, "x"))
        self.assertIn("logical_disks[0].colour", self._refused({**good, "colour": 1}))
        self.assertIn("raid_level: '9'", self._refused({**good, "raid_level": "9"}))
        self.assertIn("size_gb: -1", self._refused({**good, "size_gb": -1}))
        self.assertIn("root volume", self._refused(good, good))

    def test_what_the_agent_built_is_recorded(self) -> None:
        task = self.task(raid_interface="agent")
        built = {"logical_disks": [{"raid_level": "1"}]}
        for kind, step, key in (
            ("deploy", "apply_configuration", "deploy_result"),
            ("clean", "create_configuration", "clean_result"),
        ):
            task.node.raid_config = {}
            for hook in base.find_hooks(kind, "raid", step):
                hook(task, {key: built})
            self.assertEqual(built["logical_disks"], task.node.raid_config["logical_disks"])
        for hook in base.find_hooks("clean", "raid", "delete_configuration"):
            hook(task, {"clean_result": None})
        self.assertEqual({}, task.node.raid_config)
