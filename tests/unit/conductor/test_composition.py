"""A conductor and the drivers it has enabled: what starts, what it tells the others, what its nodes can do (004)."""

import logging
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock, context, errors, interfaces, states
from ingot.conductor.task import task_manager
from ingot.db import conductors, models, nodes
from ingot.db.conductors import EnabledInterface
from tests import conductor_case, database
from tests.classic_case import ClassicCase


class TestClassic(ClassicCase):
    def test_a_node_of_one_goes_through_its_whole_life(self) -> None:
        node = database.make_node(self.db, driver="fixed", provision_state=states.MANAGEABLE)
        for flow, state, reached in (
            ("automated_clean", states.CLEANING, states.AVAILABLE),
            ("deploy", states.DEPLOYING, states.ACTIVE),
            ("delete", states.DELETING, states.AVAILABLE),
        ):
            ended = self.run_flow(node, flow, state)
            self.assertEqual((reached, None), (ended.provision_state, ended.last_error))
        self.assertEqual([None] * len(interfaces.FIELDS), [getattr(ended, name) for name in interfaces.FIELDS])
        self.assertIn(("deploy", "deploy", "done"), [(row.flow, row.step, row.state) for row in self.step_runs(node)])

    def test_scheduled_work_is_found_by_the_sweep(self) -> None:
        node = database.make_node(self.db, driver="fixed")
        self.accept(node, "deploy", states.DEPLOYING)
        self.conductor.sweeper.sweep()
        self.assertEqual(states.ACTIVE, self.settled(node).provision_state)

    def test_it_is_on_the_ring_and_in_the_table_of_conductors(self) -> None:
        members = conductors.ring_members(self.db, 30)
        self.assertEqual({("conductor-1", "", "fixed"), ("conductor-1", "", "fake-hardware")}, set(members))
        self.assertEqual([("conductor-1", "", "fixed")], conductors.classic_drivers(self.db, 30))
        self.assertEqual({"fake-hardware"}, {row.hardware_type for row in conductors.enabled_interfaces(self.db, 30)})

    def test_validation_properties_and_steps_are_those_of_its_interfaces(self) -> None:
        node = database.make_node(self.db, driver="fixed")
        report = self.ask("validate_node", node_uuid=node.uuid)
        self.assertEqual(
            {"result": True, "reason": None}, {name: report["power"][name] for name in ("result", "reason")}
        )
        self.assertIs(False, report["raid"]["result"])
        self.assertIn("does not support raid", report["raid"]["reason"])
        self.assertEqual({"fake_power_fault"}, set(self.ask("get_driver_properties", hardware_type="fixed")))
        self.assertEqual({"boot_device": "pxe", "persistent": False}, self.ask("get_boot_device", node_uuid=node.uuid))

    def test_its_power_is_read_with_that_of_other_nodes(self) -> None:
        node = database.make_node(self.db, driver="fixed", provision_state=states.ACTIVE)
        power = self.conductor.services.hardware.interface("power", "fake")
        power.get_power_state = lambda _task: states.POWER_ON  # type: ignore[attr-defined]
        self.conductor.synchronizer.sync_power()
        conductor_case.eventually(lambda: nodes.get(self.db, node.uuid).power_state == states.POWER_ON, "it is noted")


class TestDisabledLater(conductor_case.ConductorCase):
    """An interface that a node has and the conductor has not any more takes nothing else with it."""

    def node(self, kind: str) -> models.Node:
        return database.make_node(self.db, **{interfaces.FIELD[kind]: "gone"})

    def report(self, node: models.Node) -> dict[str, Any]:
        answer = self.conductor.endpoint.validate_node(context.admin().to_dict(), node_uuid=node.uuid)
        report: dict[str, Any] = answer["result"]
        return report

    def test_its_link_is_none_and_the_others_are_there(self) -> None:
        for kind in interfaces.TYPES:
            node = self.node(kind)
            with task_manager.acquire(self.conductor.services, context.admin(), node.uuid, "test", shared=True) as task:
                self.assertIsNone(getattr(task.driver, kind))
                self.assertEqual(len(interfaces.TYPES) - 1, len(task.driver.all_interfaces))
                self.assertIn(f"Could not find {kind} interface 'gone'", task.missing[kind])

    def test_validation_says_so_for_this_interface_only(self) -> None:
        for kind in interfaces.TYPES:
            if kind == "vendor":
                continue
            report = self.report(self.node(kind))
            self.assertIs(False, report[kind]["result"])
            self.assertIn(
                f"Could not find {kind} interface 'gone' for hardware type fake-hardware", report[kind]["reason"]
            )
            self.assertIn("Enabled and supported are: ", report[kind]["reason"])
            others = [name for name, result in report.items() if name != kind and result["result"] is False]
            self.assertEqual([], others, kind)

    def test_the_machine_can_be_switched_and_cleaned_without_the_rest(self) -> None:
        node = self.node("bios")
        request = {"power_request": {"target": states.POWER_ON}, "due_at": clock.now()}
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), request)
        self.notify(node)
        self.assertEqual(
            (states.POWER_ON, None), (self.settled(node).power_state, nodes.get(self.db, node.uuid).last_error)
        )
        ended = self.run_flow(node, "automated_clean", states.CLEANING)
        self.assertEqual((states.AVAILABLE, None), (ended.provision_state, ended.last_error))

    def test_without_power_a_power_change_says_why(self) -> None:
        node = self.node("power")
        request = {"power_request": {"target": states.POWER_ON}, "due_at": clock.now()}
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), request)
        self.notify(node)
        self.assertIn("Could not find power interface 'gone'", self.settled(node).last_error)


class TestStart(conductor_case.ConductorCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))

    def register(self, host: str, offers: list[EnabledInterface], **values: Any) -> None:
        about = {"conductor_group": "", "release": "0.1", "rpc_version": "1.0", **values}
        conductors.register(self.db, host, about, offers)

    def test_what_is_enabled_is_in_the_table_and_leaves_it_at_the_stop(self) -> None:
        self.start(self.conductor)
        rows = conductors.enabled_interfaces(self.db, 30)
        defaults = {row.interface_type: row.interface_name for row in rows if row.default}
        self.assertEqual(set(interfaces.TYPES), set(defaults))
        self.assertEqual(("fake", "noop"), (defaults["power"], defaults["network"]))
        self.conductor.stop()
        self.assertEqual([], conductors.enabled_interfaces(self.db, 30))
        with self.db.single() as connection:
            left = connection.execute(sa.select(sa.func.count()).select_from(conductors.INTERFACES)).scalar()
        self.assertEqual(0, left)

    def test_rows_go_with_the_record_of_their_conductor(self) -> None:
        self.register("other", self.conductor.services.hardware.list_enabled())
        with self.db.transaction() as connection:
            connection.execute(sa.delete(conductors.CONDUCTORS))
            left = connection.execute(sa.select(sa.func.count()).select_from(conductors.INTERFACES)).scalar()
        self.assertEqual(0, left)

    def test_another_set_of_interfaces_elsewhere_is_a_warning(self) -> None:
        offers = [one for one in self.conductor.services.hardware.list_enabled() if one.interface_type != "raid"]
        self.register("other", [*offers, EnabledInterface("fake-hardware", "raid", "magic", default=True)])
        self.start(self.conductor)
        self.assertIn("Conductor other has other interfaces enabled for fake-hardware", self.log.output)
        self.assertIn("raid fake, raid fake as default, raid magic, raid magic as default", self.log.output)

    def test_the_same_set_and_other_hardware_types_elsewhere_are_not(self) -> None:
        same = self.conductor.services.hardware.list_enabled()
        others = [EnabledInterface("ipmi", "power", "ipmitool", default=True)]
        self.register("other", [*same, *others])
        self.start(self.conductor)
        self.assertEqual("", self.log.output)

    def test_a_name_of_the_other_type_elsewhere_is_a_warning(self) -> None:
        self.register("other", [], classic_drivers=["fake-hardware"])
        self.start(self.conductor)
        self.assertIn(
            "Driver fake-hardware is a hardware type on one of the conductors other and conductor-1", self.log.output
        )

    def test_what_cannot_be_had_is_refused_before_anything_is_registered(self) -> None:
        for options, expected in (
            ({"enabled_hardware_types": ["redfisch"]}, "enabled_hardware_types: 'redfisch'"),
            ({"enabled_power_interfaces": ["fake", "magic"]}, "enabled_power_interfaces: 'magic'"),
            ({"enabled_drivers": ["moon"]}, "enabled_drivers: 'moon'"),
            ({"default_deploy_interface": "ramdisk"}, "default_deploy_interface: 'ramdisk'"),
        ):
            for name, value in options.items():
                self.conf.set_override(name, value)
            refused = self.assertRaises(errors.ConfigurationError, self.make_conductor, self.db)
            self.assertIn(expected, refused.message)
            for name in options:
                self.conf.clear_override(name)
            conductor_case.fake_hardware(self.conf)
        self.assertEqual(set(), conductors.online_hosts(self.db, 30))
