"""The network interface switch: what it orders of switches. Tests of the gate have the processes that do it."""

import contextlib
import io
import json
import logging
import pathlib
from typing import Any
from unittest import mock

import fixtures

from ingot.common import errors, states, waits
from ingot.db import models
from ingot.drivers.interfaces import results
from ingot.drivers.loading import factory
from ingot.drivers.switch import worker
from tests.unit.drivers import fakes

FIRST, SECOND, GROUP = "52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:0f"
MAC, SECRET = "aa:bb:cc:dd:ee:ff", "hush4711"
LINK = {"switch_id": MAC, "port_id": "eth1", "switch_info": ""}
NOTES = "switch_ports"
LEAF = {
    "device_type": "netmiko_fake",
    "ip": "192.0.2.1",
    "username": "ingot",
    "password": SECRET,
    "ngs_mac_address": MAC.upper(),
}


class SwitchCase(fakes.DriverTestCase):
    """Has a node with two ports, of which one boots from the network."""

    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log = self.useFixture(fixtures.FakeLogger("ingot", level=logging.INFO))
        self.python = self.place / "python"
        self.install("netmiko_fake", "netmiko_ovs_linux")
        self.describe(leaf=LEAF)

    def install(self, *device_types: str) -> None:
        """Have an interpreter whose library knows these types of switches, and can do nothing else."""
        self.python.write_text(f"#!/bin/sh\necho '{json.dumps(device_types)}'\n")
        self.python.chmod(0o700)

    def describe(self, **switches: dict[str, str]) -> None:
        lines = [
            line
            for name, about in switches.items()
            for line in (f"[genericswitch:{name}]", *(f"{key} = {value}" for key, value in about.items()))
        ]
        (self.place / "switches.conf").write_text("\n".join(lines))

    def configuration(self, **more: Any) -> Any:
        return fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            enabled_boot_interfaces=["fake", "ipxe"],
            enabled_network_interfaces=["switch", "noop"],
            **{
                "switch__python": str(self.python),
                "switch__config_files": [str(self.place / "switches.conf")],
                "switch__work_path": str(self.place / "work"),
                "switch__cleaning_vlan": 100,
                "switch__provisioning_vlan": 200,
                "switch__tenant_networks": {"web": "300"},
                "switch__tenant_vlans": ["400-410"],
                **more,
            },
        )

    def task(self, **columns: Any) -> fakes.MemoryTask:
        options = {name: columns.pop(name) for name in list(columns) if name.startswith("switch__")}
        conf = self.configuration(**options)
        node = fakes.node(network_interface="switch", boot_interface="ipxe", **columns)
        task = fakes.MemoryTask(conf, node, factory.Hardware(conf))
        other = {**LINK, "port_id": "eth2"}
        task.ports = [
            fakes.port(FIRST, id=1, local_link_connection=LINK),
            fakes.port(SECOND, id=2, pxe_enabled=False, local_link_connection=other),
        ]
        return task

    def refused(self, call: Any, *args: Any, error: type[errors.IngotError] = errors.Invalid) -> str:
        return self.assertRaises(error, call, *args).message

    def noted(self, task: fakes.MemoryTask) -> list[tuple[str, int, str]]:
        notes: Any = task.node.driver_internal_info.get(NOTES, {})
        return [(one["port_id"], one["vlan"], one["purpose"]) for one in notes.get("connections", ())]


class PlannedCase(SwitchCase):
    """What is ordered of switches; the process that does it is left out."""

    def setUp(self) -> None:
        super().setUp()
        self.orders: list[str] = []
        change = "ingot.drivers.switch.orders._change"
        self.useFixture(fixtures.MockPatch(change, side_effect=self.take))

    def take(self, _conf: Any, _uuid: str, switch: Any, orders: Any) -> None:
        self.orders += [f"{'+' if one.plugs else '-'}{one.connection}" for one in orders]

    def list_orders(self) -> list[str]:
        found, self.orders = self.orders, []
        return found


class PlannedTest(PlannedCase):
    """VLANs, ports and VIFs."""

    def test_purposes_without_a_vlan_of_their_own_have_that_of_cleaning(self) -> None:
        task = self.task(driver_info={"servicing_vlan": "150"})
        task.driver.network.add_rescuing_network(task)
        self.assertEqual(["+port eth1 on switch leaf, VLAN 100"], self.list_orders())
        task.driver.network.add_servicing_network(task)
        self.assertEqual(
            ["-port eth1 on switch leaf, VLAN 100", "+port eth1 on switch leaf, VLAN 150"], self.list_orders()
        )

    def test_vlans_that_no_switch_has_are_refused(self) -> None:
        for wrong in ("0", "4095", "web", True, "-1"):
            task = self.task(driver_info={"cleaning_vlan": wrong})
            self.assertIn("driver_info.cleaning_vlan", self.refused(task.driver.network.validate, task))

    def test_a_missing_vlan_is_named(self) -> None:
        task = self.task(switch__provisioning_vlan=None)
        self.assertIn("[switch] provisioning_vlan", self.refused(task.driver.network.validate, task))

    def test_validation_names_each_port_and_what_it_lacks(self) -> None:
        task = self.task(provision_state=states.AVAILABLE)
        first, second = task.ports
        first.local_link_connection = {}
        said = self.refused(task.driver.network.validate, task)
        self.assertIn(f"port {first.uuid}: its local_link_connection is empty", said)
        self.assertNotIn(second.uuid, said)
        first.local_link_connection = {"switch_id": "00:00:00:00:00:09", "switch_info": "spine", "port_id": "1"}
        said = self.refused(task.driver.network.validate, task)
        self.assertIn("switch_id 00:00:00:00:00:09 and switch_info spine. Known are: leaf", said)
        task.node.provision_state = states.ENROLL
        task.driver.network.validate(task)

    def test_what_the_operator_has_not_allowed_is_left_alone(self) -> None:
        self.describe(leaf={**LEAF, "ngs_allowed_vlans": "100,101", "ngs_allowed_ports": "eth1"})
        task = self.task()
        self.assertIn("ngs_allowed_vlans", self.refused(task.driver.network.add_provisioning_network, task))
        task.driver.network.add_cleaning_network(task)
        self.assertEqual(["+port eth1 on switch leaf, VLAN 100"], self.list_orders())
        task.ports[0].local_link_connection = {**LINK, "port_id": "eth9"}
        self.assertIn("ngs_allowed_ports", self.refused(task.driver.network.validate, task))

    def test_inspection_stays_where_it_is_while_no_cable_is_known(self) -> None:
        task = self.task()
        for port in task.ports:
            port.local_link_connection = {}
        self.assertEqual(results.DONE, task.driver.network.add_inspection_network(task))
        self.assertEqual([], self.list_orders())

    def test_vifs_are_networks_that_the_operator_lets_users_have(self) -> None:
        task = self.task(provision_state=states.AVAILABLE)
        network = task.driver.network
        for foreign in ("db", "vlan-300", "vlan-399", "vlan-x"):
            said = self.refused(network.attach_vif, task, {"id": foreign})
            self.assertIn("tenant_networks (web)", said)
            self.assertIn("tenant_vlans (400-410)", said)
        network.attach_vif(task, {"id": "web"})
        self.assertIn("attached already", self.refused(network.attach_vif, task, {"id": "web"}, error=errors.Conflict))
        network.attach_vif(task, {"id": "vlan-405"})
        self.assertIn("it has VIF web", self.refused(network.attach_vif, task, {"id": "vlan-406"}))
        self.assertEqual([], self.list_orders())
        self.assertEqual([{"id": "web"}, {"id": "vlan-405"}], network.list_vifs(task))
        network.configure_tenant_networks(task)
        expected = ["+port eth1 on switch leaf, VLAN 300", "+port eth2 on switch leaf, VLAN 405"]
        self.assertEqual(expected, self.list_orders())
        task.node.provision_state = states.ACTIVE
        network.detach_vif(task, "web")
        self.assertEqual("-port eth1 on switch leaf, VLAN 300", self.list_orders()[0])
        self.assertIn("not attached", self.refused(network.detach_vif, task, "web"))
        network.attach_vif(task, {"id": "vlan-406", "port_uuid": task.ports[0].uuid})
        self.assertIn("+port eth1 on switch leaf, VLAN 406", self.list_orders())
        network.unconfigure_tenant_networks(task)
        self.assertEqual(2, len(self.list_orders()))
        self.assertEqual(2, len(network.list_vifs(task)))

    def test_a_bond_of_the_switch_is_connected_as_one(self) -> None:
        task = self.task()
        task.portgroups = [fakes.portgroup(address=GROUP, id=1, mode="802.3ad")]
        for port in task.ports:
            port.portgroup_id, port.local_link_connection = 1, {**LINK, "port_id": "bond7"}
        task.driver.network.attach_vif(task, {"id": "web"})
        task.driver.network.configure_tenant_networks(task)
        self.assertEqual(["+bond bond7 on switch leaf, VLAN 300"], self.list_orders())

    def test_without_vifs_instances_have_a_vlan_or_none(self) -> None:
        task = self.task()
        self.assertIn("has no VIF", self.refused(task.driver.network.configure_tenant_networks, task))
        task.node.driver_info = {"tenant_vlan": 500}
        task.driver.network.configure_tenant_networks(task)
        expected = ["+port eth1 on switch leaf, VLAN 500", "+port eth2 on switch leaf, VLAN 500"]
        self.assertEqual(expected, self.list_orders())

    def test_a_step_waits_for_its_turn_without_a_thread(self) -> None:
        task = self.task()
        busy = mock.Mock(side_effect=TimeoutError)
        with mock.patch.object(task, "alone", busy):
            answer = task.driver.network.add_cleaning_network(task)
            assert isinstance(answer, results.PollAfter)
            self.assertEqual(waits.Wait.SWITCH, answer.waits_for)
            busy.assert_called_once_with("switch leaf", 0)
            self.assertEqual([("eth1", 100, "cleaning")], self.noted(task))
            saved = task.saved
            self.assertIsInstance(task.driver.network.add_cleaning_network(task), results.PollAfter)
            self.assertEqual(saved, task.saved)
            task.memory["turn_until"] = 0
            said = self.refused(task.driver.network.add_cleaning_network, task, error=errors.SwitchUnavailable)
            self.assertIn("turn_timeout", said)
        self.assertEqual([], self.list_orders())
        self.assertEqual(results.DONE, task.driver.network.add_cleaning_network(task))
        self.assertEqual((["+port eth1 on switch leaf, VLAN 100"], {}), (self.list_orders(), task.memory))

    def test_what_disconnects_waits_as_well_except_after_a_failure(self) -> None:
        task = self.task()
        network = task.driver.network
        network.add_cleaning_network(task)
        self.list_orders()
        with mock.patch.object(task, "alone", mock.Mock(side_effect=TimeoutError)) as busy:
            for _round in range(2):
                self.assertIsInstance(network.remove_cleaning_network(task), results.PollAfter)
                self.assertEqual(mock.call("switch leaf", 0), busy.call_args)
        self.assertEqual([("eth1", 100, "cleaning")], self.noted(task))
        self.assertEqual(results.DONE, network.remove_cleaning_network(task))
        self.assertEqual((["-port eth1 on switch leaf, VLAN 100"], []), (self.list_orders(), self.noted(task)))
        network.add_inspection_network(task)
        with mock.patch.object(task, "alone", mock.Mock(side_effect=TimeoutError)) as busy:
            self.refused(network.remove_inspection_network, task, error=errors.SwitchUnavailable)
            busy.assert_called_once_with("switch leaf", task.conf.switch.turn_timeout)

    def test_what_a_dead_conductor_may_have_changed_is_undone(self) -> None:
        task = self.task()
        with mock.patch("ingot.drivers.switch.orders.carry_out", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, task.driver.network.add_cleaning_network, task)
        self.assertEqual([("eth1", 100, "cleaning")], self.noted(task))
        task.conf.set_override("cleaning_vlan", 101, group="switch")
        task.driver.network.add_cleaning_network(task)
        self.assertEqual(
            ["-port eth1 on switch leaf, VLAN 100", "+port eth1 on switch leaf, VLAN 101"], self.list_orders()
        )

    def test_a_switch_that_is_gone_from_the_file_is_named(self) -> None:
        task = self.task()
        task.driver.network.add_cleaning_network(task)
        self.describe(spine=LEAF)
        said = self.refused(task.driver.network.remove_cleaning_network, task, error=errors.SwitchError)
        self.assertIn("[genericswitch:leaf]", said)
        self.assertIn("there are: spine", said)


class SweepTest(PlannedCase):
    """Nodes at rest whose change was cut off."""

    def sweep(self, task: fakes.MemoryTask) -> None:
        fleet = mock.MagicMock(conf=task.conf)
        fleet.nodes.return_value = [task.node]
        fleet.change.side_effect = lambda _node, _purpose, work: work(task)
        task.driver.network.sweep_ports(fleet)
        fleet.nodes.assert_called_once_with("driver_internal_info")
        fleet.acquire_shared.assert_not_called()  # it would be a statement for each node of the fleet

    def test_a_node_at_rest_leaves_the_vlan_of_the_operator(self) -> None:
        task = self.task(provision_state=states.CLEANING)
        task.driver.network.add_cleaning_network(task)
        self.list_orders()
        self.sweep(task)
        self.assertEqual([], self.list_orders())
        task.node.provision_state = states.MANAGEABLE
        self.sweep(task)
        self.assertEqual(["-port eth1 on switch leaf, VLAN 100"], self.list_orders())

    def test_a_node_with_a_user_has_its_networks_again(self) -> None:
        task = self.task(provision_state=states.ACTIVE, driver_info={"tenant_vlan": 500})
        with mock.patch("ingot.drivers.switch.orders.carry_out", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, task.driver.network.attach_vif, task, {"id": "web"})
        self.sweep(task)
        expected = ["+port eth1 on switch leaf, VLAN 500", "+port eth2 on switch leaf, VLAN 500"]
        self.assertEqual(["-port eth1 on switch leaf, VLAN 300", *expected], self.list_orders())
        self.sweep(task)
        self.assertEqual([], self.list_orders())

    def test_one_node_of_a_switch_after_the_other_until_it_does_not_answer(self) -> None:
        first = self.task()
        tasks = [fakes.MemoryTask(first.conf, fakes.node(**vars(first.node)), first.hardware) for _ in range(3)]
        for number, task in enumerate(tasks):
            task.node.uuid, task.ports = f"node-{number}", first.ports
            task.driver.network.add_cleaning_network(task)
        by_uuid = {task.node.uuid: task for task in tasks}

        def change(node: Any, _purpose: str, work: Any) -> None:
            with contextlib.suppress(errors.IngotError):  # as a conductor does, which logs it
                work(by_uuid[node.uuid])

        fleet = mock.MagicMock(conf=first.conf)
        fleet.nodes.side_effect = lambda *_more: [task.node for task in tasks]
        fleet.change.side_effect = change
        for error, count in ((errors.SwitchUnavailable, 1), (errors.SwitchError, 3)):
            with mock.patch("ingot.drivers.switch.orders.carry_out", side_effect=error("no")) as tried:
                first.driver.network.sweep_ports(fleet)
            self.assertEqual(count, tried.call_count)
        self.list_orders()
        first.driver.network.sweep_ports(fleet)
        self.assertEqual(3, len(self.list_orders()))

    def test_ports_of_deleted_nodes_leave_their_vlan_unless_another_node_has_them(self) -> None:
        task = self.task(driver_info={"tenant_vlan": 500})
        task.driver.network.configure_tenant_networks(task)
        notes = task.node.driver_internal_info["switch_ports"]
        others = {"connections": [one for one in notes["connections"] if one["port_id"] == "eth2"]}
        self.list_orders()
        left = models.LeftBehind(id=7, node_uuid=task.node.uuid, kind="switch_ports", notes=notes)
        fleet = mock.MagicMock(conf=task.conf)
        fleet.nodes.return_value = []
        fleet.list_left.return_value = [left]
        fleet.list_notes.return_value = [others]
        for error in (TimeoutError, None):
            fleet.alone.side_effect = error
            task.driver.network.sweep_ports(fleet)
            self.assertEqual([] if error else [mock.call(left)], fleet.forget_left.call_args_list)
        self.assertEqual(["-port eth1 on switch leaf, VLAN 500"], self.list_orders())
        self.describe(spine=LEAF)
        task.driver.network.sweep_ports(fleet)
        self.assertEqual((1, []), (fleet.forget_left.call_count, self.list_orders()))

    def test_what_was_to_be_the_only_network_of_a_user_is_left(self) -> None:
        task = self.task(provision_state=states.ACTIVE)
        with mock.patch("ingot.drivers.switch.orders.carry_out", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, task.driver.network.attach_vif, task, {"id": "web"})
        self.sweep(task)
        self.assertEqual(["-port eth1 on switch leaf, VLAN 300"], self.list_orders())
        self.assertEqual([], self.noted(task))


class WorkerTest(SwitchCase):
    """What the program says that speaks to a switch."""

    def test_no_part_of_a_secret_is_in_a_reason(self) -> None:
        self.addCleanup(logging.disable, logging.NOTSET)
        secret = "two  blanks and an end"
        job = {"name": "leaf", "settings": {**LEAF, "password": secret}, "config_files": [], "orders": []}
        said = self.useFixture(fixtures.StringStream("stdout")).stream
        self.useFixture(fixtures.MonkeyPatch("sys.stdout", said))
        for before in ("login with ", "x" * 985):
            self.useFixture(fixtures.MonkeyPatch("sys.stdin", io.StringIO(json.dumps(job))))
            with mock.patch.object(worker, "_open", side_effect=RuntimeError(f"{before}{secret}")):
                self.assertEqual(1, worker.main())
        said.seek(0)
        text = said.read()
        self.assertIn("login with ***", text)
        self.assertNotIn("two", text)


class StartTest(SwitchCase):
    """What a conductor says when it starts."""

    def refuse(self, **options: Any) -> str:
        conf = self.configuration(**options)
        return self.refused(factory.Hardware, conf, error=errors.ConfigurationError)

    def test_a_device_type_that_the_library_has_not(self) -> None:
        self.describe(leaf={**LEAF, "device_type": "abacus"})
        said = self.refuse()
        self.assertIn("[genericswitch:leaf] device_type", said)
        self.assertIn("netmiko_ovs_linux", said)

    def test_no_switch_and_no_file(self) -> None:
        self.describe()
        self.assertIn("[genericswitch:NAME]", self.refuse())
        (self.place / "switches.conf").unlink()
        self.assertIn("No such file", self.refuse())

    def test_a_network_of_users_with_a_wrong_vlan(self) -> None:
        self.assertIn("tenant_networks web", self.refuse(switch__tenant_networks={"web": "9999"}))
        self.assertIn("tenant_vlans", self.refuse(switch__tenant_vlans=["1-x"]))

    def test_a_vlan_of_the_operators_that_users_could_attach(self) -> None:
        for wrong in ({"switch__tenant_networks": {"web": "200"}}, {"switch__tenant_vlans": ["150-250"]}):
            said = self.refuse(**wrong)
            self.assertIn("VLAN 200", said)
            self.assertIn("[switch] provisioning_vlan", said)

    def test_the_library_is_missing(self) -> None:
        self.install()
        self.assertIn(f"not installed for {self.python}", self.refuse())

    def test_an_interpreter_that_cannot_be_run(self) -> None:
        self.assertIn("[switch] python", self.refuse(switch__python=str(self.place / "none")))
        self.python.write_text("#!/bin/sh\nexit 3\n")
        self.assertIn("exit status 3", self.refuse())
