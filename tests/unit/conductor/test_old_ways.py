"""What was written before there were deploy steps goes on working: interfaces, deployments under way, pinned releases,
agents without the deploy extension."""

import contextlib
import logging
from typing import Any

import fixtures

from ingot.common import clock, errors, states
from ingot.conductor import manager
from ingot.db import models, nodes, step_lists
from ingot.db.engine import Database
from ingot.drivers.generic import fake
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import noop, results
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.loading import factory
from tests import conductor_case, database
from tests.unit.drivers import http_agent, plugins

IMAGE = {"image_source": "http://images/one.raw", "image_checksum": "a" * 64}
CORE = [
    "deploy",
    "write_image",
    "prepare_instance_boot",
    "tear_down_agent",
    "switch_to_tenant_network",
    "boot_instance",
]


class OldDeploy(DeployInterface):
    """Written before there were deploy steps: one method does it all. ``answers`` is what it returns, call by call."""

    answers: list[Any] = []  # noqa: RUF012 - each test sets its own

    def deploy(self, task: Any) -> Any:
        return self.answers.pop(0)

    def prepare(self, task: Any) -> None:
        task.set(driver_internal_info={**task.node.driver_internal_info, "prepared": True})

    def tear_down(self, task: Any) -> None:
        """Do nothing: nothing was there."""


class OldMachine(GenericHardwareType):
    supported_boot_interfaces = (fake.FakeBoot,)
    supported_deploy_interfaces = (OldDeploy,)
    supported_management_interfaces = (fake.FakeManagement,)
    supported_power_interfaces = (fake.FakePower,)
    supported_raid_interfaces = (noop.NoRAID,)


class InterfaceWithoutSteps(conductor_case.ConductorCase):
    """Its method ``deploy`` is the one step of the deployment (specification 001)."""

    def configure(self) -> None:
        self.warnings = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.conf.set_override("enabled_hardware_types", ["old"])
        for kind, names in (("deploy", ["old"]), ("raid", ["no-raid"])):
            self.conf.set_override(f"enabled_{kind}_interfaces", names)
        for kind in ("bios", "console", "firmware", "inspect", "rescue", "vendor"):
            self.conf.set_override(f"enabled_{kind}_interfaces", [f"no-{kind}"])

    def make_conductor(self, db: Database) -> manager.Conductor:
        source = plugins.with_plugins(types_old=plugins.here(OldMachine), deploy_old=plugins.here(OldDeploy))
        self.hardware = factory.Hardware(self.conf, source)
        return manager.Conductor(self.conf, db, self.hardware)

    def node(self) -> models.Node:
        return database.make_node(self.db, driver="old", deploy_interface="old")

    def test_loading_it_warns_and_names_the_class(self) -> None:
        self.assertIn("OldDeploy", self.warnings.output)
        self.assertIn("deprecated", self.warnings.output)

    def test_it_says_that_it_has_no_decomposed_steps(self) -> None:
        old = self.hardware.interface("deploy", "old")
        assert isinstance(old, DeployInterface)
        self.assertFalse(old.has_decomposed_deploy_steps())
        self.assertEqual([("deploy", 100)], [(one["step"], one["priority"]) for one in old.declared_steps("deploy")])

    def test_a_deployment_with_it_is_one_step(self) -> None:
        OldDeploy.answers = [None]
        node = self.node()
        done = self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual((states.ACTIVE, None), (done.provision_state, done.last_error))
        self.assertEqual(["prepare", "deploy"], [row.step for row in self.step_runs(node)])
        self.assertTrue(done.driver_internal_info["prepared"])

    def test_one_that_leaves_nothing_need_not_clean_up(self) -> None:
        OldDeploy.answers = []
        node = self.node()
        failed = self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertNotIn("cleaning up after the failure", self.warnings.output)
        gone = self.run_flow(node, "delete", states.DELETING)
        self.assertEqual((states.AVAILABLE, None), (gone.provision_state, gone.last_error))

    def test_its_wait_state_is_understood(self) -> None:
        """DEPLOYWAIT: the heartbeat ends the step, which is not called again."""
        OldDeploy.answers = [states.DEPLOYWAIT]
        node = self.node()
        self.accept(node, "deploy", states.DEPLOYING)
        self.notify(node)
        waiting = self.in_state(node, states.DEPLOYWAIT)
        self.assertEqual("deploy", waiting.deploy_step["step"])
        nodes.set_always(
            self.db, node.uuid, {"agent_last_heartbeat": clock.now(), "due_at": clock.now()}, waiting.revision
        )
        self.notify(node)
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_what_it_should_not_return_fails_the_deployment(self) -> None:
        OldDeploy.answers = ["whatever"]
        failed = self.run_flow(self.node(), "deploy", states.DEPLOYING)
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("'whatever'", failed.last_error)


class Adapter(database.TestCase):
    def test_an_interface_with_steps_is_left_as_it_is(self) -> None:
        self.assertIs(fake.FakeDeploy, factory.adapt_single_step(fake.FakeDeploy))
        self.assertIs(fake.FakePower, factory.adapt_single_step(fake.FakePower))

    def test_one_that_lists_steps_itself_is_left_as_it_is(self) -> None:
        class Listing(DeployInterface):
            def get_deploy_steps(self, task: Any) -> list[dict[str, Any]]:
                return []

        self.assertIs(Listing, factory.adapt_single_step(Listing))

    def test_one_that_can_deploy_in_no_way_is_refused_by_name(self) -> None:
        refused = self.assertRaises(TypeError, factory.adapt_single_step, DeployInterface)
        self.assertIn("DeployInterface", str(refused))


class WithAgent(conductor_case.ConductorCase):
    """Machines with fake power, and an agent in this process that ends every command at once."""

    def configure(self) -> None:
        for kind, name in (("deploy", "direct"), ("boot", "ipxe")):
            self.conf.set_override(f"enabled_{kind}_interfaces", [name])
        for option in ("deploy_kernel", "deploy_ramdisk"):
            self.conf.set_override(option, f"http://files/{option}", group="deploy")

    def setUp(self) -> None:
        super().setUp()
        self.agent = http_agent.HttpAgent()
        self.addCleanup(self.agent.stop)
        step = {"interface": "bios", "step": "tune", "priority": 70}
        offer = {"deploy_steps": {"Manager": [step]}, "hardware_manager_version": {"Manager": "1"}}
        self.agent.outcomes = {
            "standby.get_partition_uuids": {"command_status": "SUCCEEDED", "command_result": {}},
            "deploy.get_deploy_steps": {"command_status": "SUCCEEDED", "command_result": offer},
        }
        for name in (
            "deploy.execute_deploy_step", "standby.prepare_image", "image.install_bootloader", "standby.sync",
            "standby.power_off", "log.collect_system_logs",
        ):  # fmt: skip
            self.agent.outcomes[name] = {"command_status": "SUCCEEDED"}

    def node(self, **values: Any) -> models.Node:
        names = {"deploy_interface": "direct", "boot_interface": "ipxe", "instance_info": IMAGE}
        node = database.make_node(self.db, **{**names, **values})
        return nodes.get(self.db, node.uuid)

    def template(self, priority: int) -> None:
        step = {"interface": "bios", "step": "factory_reset", "args": {}, "priority": priority}
        step_lists.TEMPLATES.create(self.db, {"name": "CUSTOM_T", "extra": {}, "steps": [step]})

    def beat(self, node: models.Node) -> None:
        """Write and announce a heartbeat, as the API does.

        The conductor may have gone on since the node was read: an agent whose heartbeat comes too late sends another
        one.
        """
        values = {**self.agent.columns(), "agent_last_heartbeat": clock.now(), "due_at": clock.now()}
        with contextlib.suppress(errors.ChangedMeanwhile):
            nodes.set_always(self.db, node.uuid, values, node.revision)
            self.notify(node, "heartbeat")

    def deploy(self, node: models.Node, **request: Any) -> models.Node:
        """Deploy with a heartbeat whenever the conductor waits for the agent."""
        self.accept(node, "deploy", states.DEPLOYING, **request)
        self.notify(node)
        return self.to_the_end(node)

    def to_the_end(self, node: models.Node) -> models.Node:
        def look() -> models.Node | None:
            now = nodes.get(self.db, node.uuid)
            if now.provision_state == states.DEPLOYWAIT and now.reservation is None:
                self.beat(now)
            return now if now.flow is None and now.reservation is None else None

        found: models.Node = conductor_case.eventually(look, "the deployment ends")
        return found

    def asked(self) -> list[str]:
        return [name for name, _params in self.agent.posted]

    def steps_that_ran(self, node: models.Node) -> list[str]:
        return [row.step for row in self.step_runs(node) if row.origin != "flow" and row.state == "done"]


class AgentWithoutExtension(WithAgent):
    """An agent older than deploy steps is served the old way (specification 000)."""

    def test_it_writes_the_image_with_its_old_command(self) -> None:
        node = self.node()
        self.agent.lacks = {"deploy"}
        done = self.deploy(node)
        self.assertEqual((states.ACTIVE, None), (done.provision_state, done.last_error))
        self.assertEqual(CORE, self.steps_that_ran(node))
        self.assertIn("standby.prepare_image", self.asked())
        self.assertNotIn("deploy.execute_deploy_step", self.asked())


class PinnedToAReleaseWithoutSteps(WithAgent):
    """Only the driver's own steps; nothing of users, templates or agents (specifications 001, 003)."""

    def configure(self) -> None:
        super().configure()
        self.conf.set_override("pin_release_version", "0.0")

    def test_only_the_driver_s_own_steps_run(self) -> None:
        node = self.node(instance_info={**IMAGE, "traits": ["CUSTOM_T"]})
        self.template(150)
        done = self.deploy(node)
        self.assertEqual((states.ACTIVE, None), (done.provision_state, done.last_error))
        self.assertEqual(CORE, self.steps_that_ran(node))

    def test_the_agent_is_not_asked_for_steps(self) -> None:
        self.deploy(self.node())
        self.assertNotIn("deploy.get_deploy_steps", self.asked())
        self.assertIn("standby.prepare_image", self.asked())

    def test_a_request_with_steps_is_refused_and_says_why(self) -> None:
        requested = {"interface": "bios", "step": "factory_reset", "priority": 150, "args": {}}
        failed = self.deploy(self.node(), deploy_steps=[requested])
        self.assertEqual(states.DEPLOYFAIL, failed.provision_state)
        self.assertIn("pin_release_version", failed.last_error)
        self.assertIn("bios.factory_reset", failed.last_error)
        self.assertEqual([], self.asked())


class BegunBeforeSteps(WithAgent):
    """A deployment that an older release began has no plan. It goes on as it began (specification 001)."""

    def begun(self, **values: Any) -> models.Node:
        node = self.node(power_state=states.POWER_ON)
        old = {
            "provision_state": states.DEPLOYWAIT,
            "target_provision_state": states.ACTIVE,
            "provision_updated_at": clock.now(),
            "flow": "deploy",
            "run_id": None,
            "due_at": clock.after(1800),
            **values,
        }
        nodes.compare_and_set(self.db, node, old)
        return nodes.get(self.db, node.uuid)

    def test_the_first_heartbeat_continues_it_without_steps_of_others(self) -> None:
        node = self.begun(instance_info={**IMAGE, "traits": ["CUSTOM_T"]})
        self.template(75)
        self.beat(node)
        done = self.to_the_end(node)
        self.assertEqual((states.ACTIVE, None), (done.provision_state, done.last_error))
        self.assertEqual(CORE[1:], self.steps_that_ran(node))
        self.assertNotIn("deploy.get_deploy_steps", self.asked())
        self.assertIn("standby.prepare_image", self.asked())

    def test_without_a_heartbeat_it_goes_on_waiting(self) -> None:
        node = self.begun()
        self.notify(node)
        conductor_case.eventually(lambda: not self.conductor.queues.is_busy(node.uuid), "the wake-up is processed")
        self.assertEqual(states.DEPLOYWAIT, nodes.get(self.db, node.uuid).provision_state)
        self.assertEqual([], self.step_runs(node))


class Decomposed(WithAgent):
    def test_direct_says_that_its_steps_are_decomposed(self) -> None:
        task_driver, _missing = self.conductor.services.hardware.compose(self.node())
        self.assertTrue(task_driver.deploy.has_decomposed_deploy_steps())

    def test_a_driver_s_answer_of_a_wait_state_is_a_wait_for_the_heartbeat(self) -> None:
        self.assertEqual(results.WaitForAgent(again=False), results.parse_result(states.DEPLOYWAIT, "deploy.deploy"))

    def test_what_a_new_agent_offers_runs_between_the_core_steps(self) -> None:
        node = self.node()
        self.assertEqual(states.ACTIVE, self.deploy(node).provision_state)
        self.assertEqual([*CORE[:2], "tune", *CORE[2:]], self.steps_that_ran(node))
