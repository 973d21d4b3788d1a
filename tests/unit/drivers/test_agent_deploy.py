"""What deploy interfaces with an agent have in common: servicing, the operator's priorities, software RAID."""

from typing import Any, ClassVar

from ingot.common import clock, errors, states
from ingot.drivers.agent import booting, secure_boot
from ingot.drivers.interfaces import base, noop, results
from ingot.drivers.loading import factory
from tests.unit.drivers import fakes, http_agent

RAMDISK = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
MIRROR = {"logical_disks": [{"raid_level": "1", "size_gb": "MAX"}]}
SUCCEEDED = {"command_status": "SUCCEEDED", "command_result": None}


class RecordingNetwork(noop.NoopNetwork):
    """Notes what is done to the machine's networks. It has none of its own for servicing."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.done: list[str] = []

    def add_cleaning_network(self, task: Any) -> None:
        self.done.append("+operator")

    def remove_cleaning_network(self, task: Any) -> None:
        self.done.append("-operator")

    def configure_tenant_networks(self, task: Any) -> None:
        self.done.append("+tenant")

    def unconfigure_tenant_networks(self, task: Any) -> None:
        self.done.append("-tenant")


class AgentDeployTestCase(fakes.DriverTestCase):
    options: ClassVar[dict[str, Any]] = {"service_catalog__endpoint_override": "http://10.0.0.1:6385/"}
    columns: ClassVar[dict[str, Any]] = {
        "boot_interface": "ipxe",
        "deploy_interface": "direct",
        "driver_info": RAMDISK,
        "raid_interface": "agent",
        "power_state": states.POWER_ON,
        "provision_state": states.ACTIVE,
    }

    def setUp(self) -> None:
        super().setUp()
        self.agent = http_agent.HttpAgent()
        self.addCleanup(self.agent.stop)

    def machine(self, **columns: Any) -> fakes.MemoryTask:
        task = self.task(**columns)
        task.ports = [fakes.port()]
        task.driver.network = RecordingNetwork(task.conf, "recording")
        return task

    def call_in(self, task: fakes.MemoryTask) -> None:
        """Let the machine's agent call."""
        task.set(**self.agent.columns(), agent_last_heartbeat=clock.now())

    def offer(self, kind: str, *offered: dict[str, Any]) -> None:
        answer = {f"{kind}_steps": {"Manager": list(offered)}, "hardware_manager_version": {"manager": "1"}}
        self.agent.outcomes[f"{kind}.get_{kind}_steps"] = {**SUCCEEDED, "command_result": answer}


class ServiceTest(AgentDeployTestCase):
    def test_the_agent_takes_the_machine_over_and_gives_it_back(self) -> None:
        task = self.machine()
        deploy, network = task.driver.deploy, task.driver.network
        self.assertIsInstance(self.run_to_end(lambda: deploy.prepare_service(task)), results.WaitForAgent)
        self.assertEqual(["-tenant", "+operator"], network.done)
        self.assertEqual("ramdisk", task.node.boot_config["target"])
        self.call_in(task)
        self.assertEqual(results.DONE, deploy.prepare_service(task))

        self.agent.outcomes = {"standby.sync": SUCCEEDED}
        network.done.clear()
        self.assertEqual(results.DONE, self.run_to_end(lambda: deploy.tear_down_service(task)))
        self.assertEqual(["standby.sync", "standby.power_off"], [name for name, _params in self.agent.posted])
        self.assertEqual(["-operator", "+tenant"], network.done)
        self.assertEqual({"boot_device": "disk", "persistent": True}, task.driver.management.get_boot_device(task))
        self.assertEqual((states.POWER_ON, None), (task.node.power_state, task.node.agent_url))
        # The flow goes on: a node without a token would give one to whichever stranger looks it up now.
        self.assertNotIn(task.node.agent_token, (None, http_agent.TOKEN))
        self.assertIsNone(task.node.agent_address)
        self.assertNotEqual("ramdisk", task.node.boot_config.get("target"))

    def test_a_rescue_boots_the_agent_and_a_second_one_where_the_first_may_have_ended(self) -> None:
        task = self.machine(rescue_interface="agent")
        task.conf.set_override("command_timeout", 1, "agent")
        rescue = task.driver.rescue
        for refuses in (True, False):
            self.assertIsInstance(self.run_to_end(lambda: rescue.rescue(task, "hash")), results.WaitForAgent)
            self.assertEqual(("ramdisk", None), (task.node.boot_config["target"], task.node.agent_url))
            self.call_in(task)
            self.agent.outcomes = {} if refuses else {"rescue.finalize_rescue": SUCCEEDED}
            if refuses:
                self.assertRaises(errors.AgentError, rescue.rescue, task, "hash")
        self.assertEqual(results.DONE, self.run_to_end(lambda: rescue.rescue(task, "hash")))
        expected = [("rescue.finalize_rescue", {"rescue_password": "hash", "hashed": True})] * 2
        self.assertEqual(expected, self.agent.posted)

    def test_an_agent_that_is_there_is_used_when_fast_track_allows_it(self) -> None:
        task = self.machine()
        task.conf.set_override("fast_track", True, "deploy")
        self.call_in(task)
        self.assertEqual(results.DONE, task.driver.deploy.prepare_service(task))
        self.assertEqual([], task.driver.network.done)

    def test_an_instance_that_goes_after_a_failed_service_leaves_no_network_behind(self) -> None:
        task = self.machine()
        self.assertEqual(results.DONE, self.run_to_end(lambda: task.driver.deploy.tear_down(task)))
        self.assertEqual(["-operator", "-tenant"], task.driver.network.done)

    def test_an_interface_without_an_agent_has_nothing_to_do(self) -> None:
        task = self.machine(deploy_interface="fake")
        for method in (task.driver.deploy.prepare_service, task.driver.deploy.tear_down_service):
            self.assertEqual(results.DONE, method(task))


class PrioritiesTest(AgentDeployTestCase):
    OFFERED: ClassVar[list[dict[str, Any]]] = [
        {"interface": "deploy", "step": "erase_devices", "priority": 10},
        {"interface": "deploy", "step": "erase_devices_metadata", "priority": 99},
        {"interface": "raid", "step": "erase_devices", "priority": 3},
        {"interface": "deploy", "step": "burn", "priority": 0},
    ]

    def priorities(self, kind: str = "clean", **options: int) -> list[int]:
        task = self.machine()
        for name, value in options.items():
            task.conf.set_override(name, value, "deploy")
        self.call_in(task)
        self.offer(kind, *self.OFFERED)
        return [step["priority"] for step in task.driver.deploy.get_in_band_steps(task, kind)]

    def test_the_agents_hold_until_the_operator_says_otherwise(self) -> None:
        self.assertEqual([10, 99, 3, 0], self.priorities())
        self.assertEqual([50, 0, 3, 0], self.priorities(erase_devices_priority=50, erase_devices_metadata_priority=0))
        self.assertEqual([10, 99, 3, 0], self.priorities("deploy", erase_devices_priority=50))

    def start(self, erase: int, metadata: int, **overrides: int) -> None:
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            deploy__erase_devices_priority=erase,
            deploy__erase_devices_metadata_priority=metadata,
            conductor__clean_step_priority_override={f"deploy.{step}": value for step, value in overrides.items()},
        )
        factory.Hardware(conf)

    def test_one_priority_for_two_ways_of_erasing_is_no_order_from_any_source(self) -> None:
        for erase, metadata, overrides in (
            (7, 7, {}),
            (7, None, {"erase_devices_metadata": 7}),
            (99, 10, {"erase_devices": 7, "erase_devices_metadata": 7}),
            (None, None, {"erase_devices": 7, "erase_devices_metadata": 7}),
            (7, None, {"burn": 7}),
        ):
            error = self.assertRaises(errors.ConfigurationError, self.start, erase, metadata, **overrides)
            self.assertIn("deploy interfaces have the same priority 7", error.message)
        self.assertIn("or [deploy] erase_devices_priority", error.message)

    def test_options_that_an_override_makes_different_are_an_order(self) -> None:
        for overrides in ({"erase_devices": 8}, {"erase_devices": 0}):
            self.start(7, 7, **overrides)


class AgentRAIDTest(AgentDeployTestCase):
    def offered(self, kind: str, task: fakes.MemoryTask) -> None:
        self.agent.commands.clear()  # it was started anew
        self.call_in(task)
        names = ("apply_configuration", "create_configuration", "delete_configuration")
        self.offer(kind, *({"interface": "raid", "step": name, "priority": 0} for name in names))
        task.driver.deploy.get_in_band_steps(task, kind)

    def run_step(self, task: fakes.MemoryTask, kind: str, name: str, result: Any, **args: Any) -> None:
        """Run a step with its hooks; the agent answers with ``result``."""
        call = getattr(task.driver.raid, f"execute_{kind}_step")
        step = {"interface": "raid", "step": name, "args": args}
        self.assertIsInstance(call(task, step), results.WaitForAgent)
        self.agent.end(result={f"{kind}_result": result})
        answer = call(task, step)
        for hook in base.find_hooks(kind, "raid", name):
            hook(task, answer.hook_result)
        task.memory.clear()

    def test_it_works_in_every_kind_of_flow_and_is_recorded(self) -> None:
        for kind, name in (
            ("deploy", "apply_configuration"),
            ("clean", "create_configuration"),
            ("service", "apply_configuration"),
            ("service", "create_configuration"),
        ):
            task = self.machine(target_raid_config=MIRROR)
            self.offered(kind, task)
            args = {"raid_config": MIRROR} if name == "apply_configuration" else {}
            self.run_step(task, kind, name, MIRROR, **args)
            self.assertEqual(MIRROR["logical_disks"], task.node.raid_config["logical_disks"])
            posted = self.agent.posted[-1]
            self.assertEqual((f"{kind}.execute_{kind}_step", name), (posted[0], posted[1]["step"]["step"]))
            self.assertEqual({**args, "delete_existing": True} if args else {}, posted[1]["step"]["args"])
            if kind != "deploy":
                self.offered(kind, task)
                self.run_step(task, kind, "delete_configuration", None)
                self.assertEqual({}, task.node.raid_config)

    def test_what_is_wrong_is_said_before_the_agent_is_asked(self) -> None:
        task = self.machine(target_raid_config={})
        for name, args in (
            ("create_configuration", {}),
            ("apply_configuration", {"raid_config": {}}),
            ("apply_configuration", {"raid_config": MIRROR, "delete_existing": "yes"}),
        ):
            step = {"interface": "raid", "step": name, "args": args}
            self.assertRaises(errors.Invalid, task.driver.raid.execute_service_step, task, step)
        self.assertEqual([], self.agent.posted)

    def test_the_operator_can_have_it_done_in_every_cleaning(self) -> None:
        task = self.machine()
        offered = lambda: {step["step"]: step["priority"] for step in task.driver.raid.get_clean_steps(task)}  # noqa: E731
        self.assertEqual({"create_configuration": 0, "delete_configuration": 0}, offered())
        task.conf.set_override("create_configuration_priority", 5, "deploy")
        task.conf.set_override("delete_configuration_priority", 6, "deploy")
        self.assertEqual({"create_configuration": 5, "delete_configuration": 6}, offered())


class SecureBootTest(AgentDeployTestCase):
    def test_it_is_on_for_an_instance_that_asks_for_it(self) -> None:
        for capabilities in ({"secure_boot": "True"}, "boot_mode:uefi,secure_boot:true"):
            task = self.machine(instance_info={"capabilities": capabilities}, secure_boot=None)
            booting.prepare_instance(task)
            self.assertIs(True, task.node.secure_boot)
            secure_boot.switch(task, False)
            self.assertIs(False, task.node.secure_boot)

    def test_it_is_left_alone_for_others(self) -> None:
        for info in ({}, {"capabilities": {}}, {"capabilities": {"secure_boot": "false"}}, {"capabilities": None}):
            task = self.machine(instance_info=info, secure_boot=None)
            booting.prepare_instance(task)
            self.assertIsNone(task.node.secure_boot)

    def test_a_machine_that_cannot_is_used_with_a_warning(self) -> None:
        task = self.machine(
            management_interface="noop", instance_info={"capabilities": {"secure_boot": "true"}}, secure_boot=None
        )
        with self.assertLogs(secure_boot.LOG.logger, "WARNING") as logged:
            booting.prepare_instance(task)
        self.assertIn("asks for secure boot", logged.output[0])
        self.assertIsNone(task.node.secure_boot)
