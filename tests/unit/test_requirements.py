"""Requirements of the specifications that are about several parts at once, or about what is *not* possible.

The tables in doc/specs name these tests; what one part alone has to do is tested beside the tests of that part.
"""

import itertools
from typing import Any, ClassVar

import fixtures

from ingot.api.nodes import verbs
from ingot.common import context, errors, interfaces, states
from ingot.db import nodes
from ingot.drivers.generic import fake
from ingot.drivers.generic.hardware_type import GenericHardwareType
from ingot.drivers.interfaces import base, noop, results, task
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.hardware_type import AbstractHardwareType
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.loading import entry_points, factory
from tests import classic_case, conductor_case, database, provision_case
from tests.unit.drivers import fakes, plugins

CLEANED = (states.CLEANING, states.CLEANWAIT)
STEP = {"interface": "deploy", "step": "erase_devices"}


class CleaningByRequest(provision_case.ProvisionCase):
    """Specification 002, "REST API impact"."""

    def test_only_manageable_and_failed_nodes_are_cleaned_by_request(self) -> None:
        verbs: dict[str, dict[str, Any]] = {"clean": {"clean_steps": [STEP]}, "provide": {}}
        for verb, arguments in verbs.items():
            allowed = {state for state in states.ALL if self._accepts(state, verb, **arguments)}
            self.assertEqual({states.MANAGEABLE, states.CLEANFAIL}, allowed, verb)

    def test_nothing_but_an_abort_is_accepted_while_a_node_is_cleaned(self) -> None:
        arguments: dict[str, dict[str, Any]] = {
            "clean": {"clean_steps": [STEP]},
            "service": {"service_steps": [STEP]},
            "rescue": {"rescue_password": "x"},
        }
        for state in CLEANED:
            allowed = {verb for verb in verbs.VERBS if self._accepts(state, verb, **arguments.get(verb, {}))}
            self.assertEqual({"abort"} if state == states.CLEANWAIT else set(), allowed, state)

    def test_a_machine_can_be_switched_after_a_failed_cleaning(self) -> None:
        for target in ("power on", "power off", "rebooting"):
            self.put(provision_state=states.CLEANFAIL, power_request={}, target_power_state=None)
            answer = self.api("PUT", "/v1/nodes/n/states/power", {"target": target})
            self.assertEqual((202, {"target": target}), (answer.status, self._power_request()))

    def _power_request(self) -> dict[str, Any]:
        return {"target": self.row.power_request["target"]}

    def _accepts(self, state: str, verb: str, **arguments: Any) -> bool:
        self.put(provision_state=state, flow=None, reservation=None, abort_requested=False)
        return self.ask(verb, **arguments).status == 202


class CleaningByConductor(conductor_case.ConductorCase):
    def test_an_operator_can_skip_a_cleaning_that_failed(self) -> None:
        """To available, uncleaned (specification 002, "Proposed change"), but not with the agent still running."""
        node = database.make_node(self.db, provision_state=states.MANAGEABLE)
        requested = [{"interface": "vendor", "step": "fail"}]
        self.assertEqual(
            states.CLEANFAIL,
            self.run_flow(node, "manual_clean", states.CLEANING, clean_steps=requested).provision_state,
        )
        cleaned = len(self.step_runs(node))
        nodes.set_always(self.db, node.uuid, {"automated_clean": False, "maintenance": False})
        skipped = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((states.AVAILABLE, None), (skipped.provision_state, skipped.last_error))
        self.assertEqual(["tear_down_cleaning"], [row.step for row in self.step_runs(node)[cleaned:]])

    def test_the_list_of_steps_has_the_enabled_ones_in_their_order(self) -> None:
        """``GET /v1/nodes/<id>/cleaning/steps`` (specification 002, "REST API impact")."""
        overrides = {"bios.factory_reset": 5, "raid.delete_configuration": 20, "vendor.pause": 5}
        self.conf.set_override("clean_step_priority_override", overrides, group="conductor")
        node = database.make_node(self.db)
        answer = self.conductor.endpoint.get_steps(context.admin().to_dict(), node_uuid=node.uuid, kind="clean")
        self.assertEqual(
            [("raid", "delete_configuration", 20), ("bios", "factory_reset", 5), ("vendor", "pause", 5)],
            [(one["interface"], one["step"], one["priority"]) for one in answer["result"]],
        )
        self.assertEqual({"interface", "step", "priority", "offered_at"}, set(answer["result"][0]))


class Steps(conductor_case.ConductorCase):
    def test_a_step_begins_when_the_one_before_has_ended(self) -> None:
        """Specification 001, "When are deploy steps executed?"; some of these steps wait and poll."""
        node = database.make_node(self.db)
        requested = [
            {"interface": "vendor", "step": "pause", "priority": priority, "args": {"seconds": 0.2}}
            for priority in (150, 120, 60)
        ]
        self.assertEqual(
            states.ACTIVE, self.run_flow(node, "deploy", states.DEPLOYING, deploy_steps=requested).provision_state
        )
        ran = self.step_runs(node)
        self.assertEqual(["prepare", "pause", "pause", "deploy", "pause"], [row.step for row in ran])
        for before, after in itertools.pairwise(ran):
            self.assertLessEqual(before.started_at, before.finished_at)
            self.assertLessEqual(before.finished_at, after.started_at)


class Migrating(classic_case.ClassicCase):
    """Specification 004, "Testing": a workload goes from a classic driver to a hardware type."""

    def test_an_active_node_changes_from_a_classic_driver_to_a_hardware_type(self) -> None:
        node = database.make_node(self.db, driver="fixed", instance_uuid="6f3c8f5e-26a0-4ae5-a7a8-2a1c9c3e6f11")
        active = self.run_flow(node, "deploy", states.DEPLOYING)
        self.assertEqual((states.ACTIVE, None), (active.provision_state, active.power_interface))
        nodes.set_always(self.db, node.uuid, {"driver": "fake-hardware", "power_interface": "fake"})
        for flow, state, reached in (
            ("deploy", states.DEPLOYING, states.ACTIVE),
            ("delete", states.DELETING, states.AVAILABLE),
        ):
            ended = self.run_flow(node, flow, state, rebuild=True)
            self.assertEqual((reached, None), (ended.provision_state, ended.last_error))


class SortedManagement(ManagementInterface):
    @base.clean_step(priority=10)
    def low(self, task: Any) -> None:
        """Run second."""

    @base.clean_step(priority=30)
    def high(self, task: Any) -> None:
        """Run first."""

    @base.clean_step(priority=0)
    def never(self, task: Any) -> None:
        """Run on request."""


class OldDeploy(DeployInterface):
    def deploy(self, task: Any) -> None:
        """Deploy as before there were steps."""


class OldMachine(GenericHardwareType):
    supported_boot_interfaces = (fake.FakeBoot,)
    supported_deploy_interfaces = (OldDeploy,)
    supported_management_interfaces = (fake.FakeManagement,)
    supported_power_interfaces = (fake.FakePower,)


class Unfinished(AbstractHardwareType):  # it leaves out what it must have
    supported_power_interfaces = (fake.FakePower,)


class RecordingNetwork(noop.NoopNetwork):
    """Notes the calls that concern a deployment."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[str] = []

    def add_provisioning_network(self, task: Any) -> None:
        self.calls.append("add_provisioning_network")

    def remove_provisioning_network(self, task: Any) -> None:
        self.calls.append("remove_provisioning_network")

    def configure_tenant_networks(self, task: Any) -> None:
        self.calls.append("configure_tenant_networks")

    def unconfigure_tenant_networks(self, task: Any) -> None:
        self.calls.append("unconfigure_tenant_networks")


class RecordingStorage(noop.NoopStorage):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.calls: list[str] = []

    def attach_volumes(self, task: Any) -> None:
        self.calls.append("attach_volumes")


class Interfaces(fakes.DriverTestCase):
    def test_declared_steps_come_highest_priority_first(self) -> None:
        task = self.task()
        management = SortedManagement(task.conf, "sorted")
        found = [(one["step"], one["priority"]) for one in management.get_clean_steps(task)]
        self.assertEqual([("high", 30), ("low", 10), ("never", 0)], found)

    def test_which_deploy_interfaces_have_the_core_steps(self) -> None:
        conf = fakes.configuration()
        group = {one.name: one for one in entry_points.list_installed(entry_points.interface_group("deploy"))}
        decomposed = {name: group[name].load()(conf, name).has_decomposed_deploy_steps() for name in group}
        without = {name for name, has in decomposed.items() if not has}
        self.assertEqual({"autodetect", "fake"}, without, "autodetect plans the steps of what it chooses")
        self.assertLessEqual({"direct", "ramdisk", "custom-agent"}, set(decomposed))

    def test_a_deploy_interface_without_steps_is_warned_of(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        source = plugins.with_plugins(types_old=plugins.here(OldMachine), deploy_old=plugins.here(OldDeploy))
        options = {"enabled_hardware_types": ["old"], "enabled_deploy_interfaces": ["old"]}
        factory.Hardware(fakes.configuration(**options), source)
        for words in ("OldDeploy declares no deploy steps", "deprecated", "running deployments end before an upgrade"):
            self.assertIn(words, log.output)

    def test_a_hardware_type_without_a_mandatory_kind_is_named(self) -> None:
        source = plugins.with_plugins(types_unfinished=plugins.here(Unfinished))
        conf = fakes.configuration(enabled_hardware_types=["unfinished"])
        message = self.assertRaises(errors.ConfigurationError, factory.Hardware, conf, source).message
        for words in ("unfinished", "supported_deploy_interfaces", "supported_management_interfaces"):
            self.assertIn(words, message)

    def test_a_driver_of_a_node_is_only_slots(self) -> None:
        made = task.BareDriver("fake-hardware")
        self.assertFalse(hasattr(made, "__dict__"))
        self.assertLessEqual(set(interfaces.TYPES), set(task.BareDriver.__slots__))

    def test_properties_of_a_hardware_type_are_those_of_its_default_interfaces(self) -> None:
        hardware = factory.Hardware(fakes.configuration(enabled_hardware_types=["ipmi"]))
        expected: set[str] = set()
        for kind in interfaces.TYPES:
            expected |= set(hardware.interface(kind, hardware.default("ipmi", kind)).get_properties())
        self.assertEqual(expected, set(hardware.properties("ipmi")))
        self.assertIn("ipmi_address", expected)


class Networks(fakes.DriverTestCase):
    """Specification 000, "Prepare" and "switch_to_tenant_network"."""

    columns: ClassVar[dict[str, Any]] = {
        "deploy_interface": "direct",
        "boot_interface": "ipxe",
        "power_state": states.POWER_ON,
        "instance_info": {"image_source": "http://127.0.0.1:1/one.raw", "image_checksum": "a" * 64},
    }

    def setUp(self) -> None:
        super().setUp()
        self.machine = self.task()
        self.network = self.machine.driver.network = RecordingNetwork(self.machine.conf, "recording")
        self.storage = self.machine.driver.storage = RecordingStorage(self.machine.conf, "recording")

    def test_prepare_switches_off_and_goes_to_the_provisioning_network(self) -> None:
        self.assertEqual(results.DONE, self.run_to_end(lambda: self.machine.driver.deploy.prepare(self.machine)))
        self.assertEqual(states.POWER_OFF, self.machine.node.power_state)
        self.assertEqual(["unconfigure_tenant_networks", "add_provisioning_network"], self.network.calls)
        self.assertEqual(["attach_volumes"], self.storage.calls)

    def test_the_step_switches_to_the_tenants_networks(self) -> None:
        self.machine.driver.deploy.execute_deploy_step(self.machine, {"step": "switch_to_tenant_network"})
        self.assertEqual(["remove_provisioning_network", "configure_tenant_networks"], self.network.calls)
