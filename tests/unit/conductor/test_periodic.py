"""What interfaces do at intervals: each once a round for all its drivers, and no failure harms the conductor."""

import logging
import time
from typing import Any, ClassVar

import fixtures

from ingot.common import context, errors, states
from ingot.conductor import manager
from ingot.db import maintenance, models, nodes
from ingot.db.engine import Database
from ingot.drivers.generic import fake
from ingot.drivers.generic.fake import FakeHardware
from ingot.drivers.interfaces import base
from ingot.drivers.interfaces.hardware_type import ClassicDriver
from ingot.drivers.interfaces.periodic import Fleet, periodic
from ingot.drivers.interfaces.task import Task
from ingot.drivers.loading import factory
from tests import conductor_case, database
from tests.unit.drivers.plugins import here, with_plugins


class WatchedPower(fake.FakePower):
    """Tells a test what its rounds are given."""

    rounds: ClassVar[list[Fleet]] = []
    ended: ClassVar[list[Fleet]] = []
    seconds: ClassVar[float] = 0

    @periodic(spacing=0.05)
    def watch(self, fleet: Fleet) -> None:
        self.rounds.append(fleet)
        time.sleep(self.seconds)
        self.ended.append(fleet)

    @periodic(spacing=0.05)
    def fail(self, fleet: Fleet) -> None:
        raise SystemExit("a plug-in's idea of an error")

    @periodic(spacing=base.from_option("conductor", "sync_power_state_interval"))
    def never(self, fleet: Fleet) -> None:
        raise AssertionError("its option says never")


class UnusedPower(fake.FakePower):
    @periodic(spacing=0.01)
    def watch(self, fleet: Fleet) -> None:
        raise AssertionError("it is not enabled")


class Machine(FakeHardware):
    supported_power_interfaces = (WatchedPower, fake.FakePower)


class Sibling(Machine):
    """Another hardware type with the same interface."""


class Solid(ClassicDriver):
    boot = fake.FakeBoot
    deploy = fake.FakeDeploy
    management = fake.FakeManagement
    power = WatchedPower


class HastyPower(fake.FakePower):
    @periodic(spacing=lambda _conf: "often")  # type: ignore[arg-type,return-value]
    def watch(self, fleet: Fleet) -> None:
        raise AssertionError("its spacing is invalid")


class Hasty(Machine):
    supported_power_interfaces = (HastyPower,)


SOURCE = with_plugins(
    types_machine=here(Machine),
    types_sibling=here(Sibling),
    types_hasty=here(Hasty),
    power_hasty=here(HastyPower),
    classic_solid=here(Solid),
    power_watched=here(WatchedPower),
    power_unused=here(UnusedPower),
)


class PeriodicCase(conductor_case.ConductorCase):
    def configure(self) -> None:
        WatchedPower.rounds, WatchedPower.ended, WatchedPower.seconds = [], [], 0
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.conf.set_override("enabled_hardware_types", ["machine", "sibling"])
        self.conf.set_override("enabled_drivers", ["solid"])
        self.conf.set_override("enabled_power_interfaces", ["watched", "unused", "fake"])

    def make_conductor(self, db: Database) -> manager.Conductor:
        return manager.Conductor(self.conf, db, factory.Hardware(self.conf, SOURCE))

    def round(self) -> Fleet:
        seen = len(WatchedPower.rounds)
        conductor_case.eventually(lambda: len(WatchedPower.rounds) > seen, "a round")
        return WatchedPower.rounds[-1]


class TestCollection(PeriodicCase):
    starts = False

    def test_an_interface_of_several_drivers_has_its_methods_once(self) -> None:
        collected = [
            (one.interface.name, one.method, one.spacing) for one in self.conductor.services.hardware.periodics
        ]
        self.assertEqual([("watched", "fail", 0.05), ("watched", "watch", 0.05)], collected)

    def test_those_of_classic_drivers_are_collected_too(self) -> None:
        self.conf.set_override("enabled_hardware_types", [])
        hardware = factory.Hardware(self.conf, SOURCE)
        self.assertEqual({"watched"}, {one.interface.name for one in hardware.periodics})

    def test_a_spacing_that_is_none_is_refused(self) -> None:
        self.conf.set_override("enabled_hardware_types", ["hasty"])
        self.conf.set_override("enabled_drivers", [])
        self.conf.set_override("enabled_power_interfaces", ["hasty"])
        refused = self.assertRaises(errors.ConfigurationError, factory.Hardware, self.conf, SOURCE)
        self.assertIn("spacing of watch of power interface hasty: 'often'", refused.message)

    def test_they_end_with_the_conductor(self) -> None:
        WatchedPower.seconds = 0.3
        self.start(self.conductor)
        self.round()
        self.conductor.stop()
        seen = len(WatchedPower.rounds)
        self.assertEqual(seen, len(WatchedPower.ended), "a call that runs is waited for")
        time.sleep(0.2)
        self.assertEqual(seen, len(WatchedPower.rounds))


class TestRounds(PeriodicCase):
    def test_they_come_again_and_again_and_a_failure_is_logged_and_harms_no_other(self) -> None:
        for _again in range(3):
            self.round()
        conductor_case.eventually(lambda: self.log.output.count("failed unexpectedly") >= 2, "failures are logged")
        self.assertIn("power interface watched: fail failed unexpectedly", self.log.output)
        self.assertIn("a plug-in's idea of an error", self.log.output)
        done = self.run_flow(database.make_node(self.db, driver="machine"), "deploy", states.DEPLOYING)
        self.assertEqual(states.ACTIVE, done.provision_state)

    def test_they_are_given_the_nodes_that_use_the_interface(self) -> None:
        made = {
            name: database.make_node(self.db, name=name, **columns).uuid
            for name, columns in {
                "named": {"driver": "machine", "power_interface": "watched"},
                "by default": {"driver": "sibling"},
                "classic": {"driver": "solid"},
                "another interface": {"driver": "machine", "power_interface": "fake"},
                "another driver": {"driver": "moon", "power_interface": "watched"},
                "another group": {"driver": "machine", "power_interface": "watched", "conductor_group": "west"},
            }.items()
        }
        found = {node.name: node.uuid for node in self.round().nodes()}
        self.assertEqual({name: made[name] for name in ("named", "by default", "classic")}, found)
        self.assertEqual([{}] * 3, [node.driver_internal_info for node in self.round().nodes("driver_internal_info")])

    def test_they_are_not_given_those_that_a_hold_says_to_leave_alone(self) -> None:
        for scope in maintenance.SCOPES:
            node = database.make_node(self.db, name=scope, driver="machine")
            nodes.set_always(
                self.db,
                node.uuid,
                maintenance.hold_columns([maintenance.user_hold(context.admin(), None, "fan", scope)]),
            )
        self.assertEqual(["provision"], [node.name for node in self.round().nodes()])

    def test_they_can_look_at_a_node_and_have_it_changed_in_its_turn(self) -> None:
        node = database.make_node(self.db, driver="machine")
        fleet = self.round()
        (known,) = fleet.nodes()
        with fleet.acquire_shared(known) as task:
            self.assertEqual("watched", task.driver.power.name)
            self.assertTrue(task.shared)

        def note(task: Task) -> None:
            task.set(extra={"watched": task.node.reservation})

        fleet.change(known, "noting it", note)
        expected = {"watched": "conductor-1"}
        changed: models.Record = conductor_case.eventually(lambda: self._with(node, expected), "the change is made")
        self.assertIsNone(self.settled(changed).reservation)

    def test_a_change_that_fails_is_not_written(self) -> None:
        node = database.make_node(self.db, driver="machine")
        fleet = self.round()

        def fail(error: BaseException) -> Any:
            def work(task: Task) -> None:
                task.set(extra={"half": "done"})
                raise error

            return work

        fleet.change(node, "a refused change", fail(errors.HardwareError(what="The BMC", reason="no")))
        fleet.change(node, "a broken change", fail(KeyError("colour")))
        for message in ("a refused change was not done: The BMC failed: no", "a broken change failed unexpectedly"):
            conductor_case.eventually(lambda message=message: message in self.log.output, message)  # type: ignore[misc]
        self.assertEqual({}, self.settled(node).extra)

    def _with(self, node: models.Node, extra: dict[str, Any]) -> models.Node | None:
        now = nodes.get(self.db, node.uuid)
        return now if now.extra == extra else None
