"""The network interfaces flat and neutron, on a small Neutron that can be made to fail."""

import json
from typing import Any, ClassVar
from unittest import mock

from ingot.common import context, errors, states
from ingot.db import models
from ingot.drivers.agent import booting, custom
from ingot.drivers.images import configdrive
from ingot.drivers.interfaces import noop, results
from ingot.drivers.loading import factory
from ingot.drivers.neutron import connection
from tests import network_service
from tests.unit.drivers import fakes

LINK = {"switch_id": "aa:bb:cc:dd:ee:ff", "port_id": "Ethernet1", "switch_info": "leaf"}
FIRST, SECOND, GROUP = "52:54:00:00:00:01", "52:54:00:00:00:02", "52:54:00:00:00:0f"


class NeutronCase(fakes.DriverTestCase):
    """Has a node with two ports, of which one boots from the network."""

    interface: ClassVar[str] = "neutron"
    purposes: ClassVar[tuple[str, ...]] = ("cleaning", "provisioning", "rescuing")

    def setUp(self) -> None:
        super().setUp()
        self.service = self.useFixture(network_service.NetworkService())
        self.networks = {name: self.service.add("networks", name=name)["id"] for name in self.purposes}

    def task(self, **columns: Any) -> fakes.MemoryTask:
        conf = fakes.configuration(
            enabled_hardware_types=["fake-hardware"],
            enabled_boot_interfaces=["fake", "ipxe"],
            enabled_network_interfaces=["flat", "neutron", "noop"],
            service_catalog__endpoint_override="http://10.0.0.1:6385",
            **self.options,
        )
        self.service.configure(conf)
        for name in self.networks:
            conf.set_override(f"{name}_network", name, group="neutron")
        node = fakes.node(network_interface=self.interface, **columns)
        task = fakes.MemoryTask(conf, node, factory.Hardware(conf))
        link = {"local_link_connection": LINK}
        task.ports = [fakes.port(FIRST, id=1, **link), fakes.port(SECOND, id=2, pxe_enabled=False, **link)]
        return task

    def vif(self, network: str | None = None, **about: Any) -> str:
        """Add a user's port; return its uuid."""
        network = network or self.service.add("networks", name="tenant")["id"]
        about = {"network_id": network, "mac_address": "fa:16:3e:00:00:99", **about}
        return str(self.service.add("ports", **about)["id"])

    def attach(self, task: fakes.MemoryTask, vif: str, **more: Any) -> None:
        task.driver.network.attach_vif(task, {"id": vif, **more})

    def refused(self, call: Any, *args: Any, error: type[errors.IngotError] = errors.Invalid) -> str:
        return self.assertRaises(error, call, *args).message

    def port(self, ident: str) -> dict[str, Any]:
        return self.service.rows["ports"][ident]


class PurposeTest(NeutronCase):
    """The operator's networks."""

    def test_each_port_that_boots_gets_one_in_neutron(self) -> None:
        task = self.task()
        self.assertEqual(results.DONE, task.driver.network.add_cleaning_network(task))
        (port,) = self.service.ports
        self.assertEqual(
            {
                "network_id": self.networks["cleaning"],
                "mac_address": FIRST,
                "device_id": task.node.uuid,
                "device_owner": "baremetal:none",
                "binding:host_id": task.node.uuid,
                "binding:vnic_type": "baremetal",
                "binding:profile": {"local_link_information": [LINK]},
                "admin_state_up": True,
                "description": "Ingot: cleaning network (http://10.0.0.1:6385)",
            },
            next(sent for method, _path, sent in self.service.asked if method == "POST"),
        )
        self.assertEqual([{"cleaning_vif_port_id": port["id"]}, {}], [one.internal_info for one in task.ports])
        self.assertEqual(["cleaning"], task.node.driver_internal_info["neutron_networks"])
        task.driver.network.remove_cleaning_network(task)
        self.assertEqual(([], {}), (self.service.ports, task.node.driver_internal_info))
        self.assertEqual([{}, {}], [one.internal_info for one in task.ports])

    def test_what_is_there_stays_and_what_does_not_fit_goes(self) -> None:
        task = self.task()
        network = task.driver.network
        network.add_cleaning_network(task)
        (before,) = self.service.ports
        task.keep_port_notes("cleaning_vif_port_id", {})  # as a conductor that died between the port and the note
        network.add_cleaning_network(task)
        self.assertEqual([before], self.service.ports)
        self.assertEqual(before["id"], task.ports[0].internal_info["cleaning_vif_port_id"])
        before["network_id"] = "another"
        network.add_cleaning_network(task)
        (after,) = self.service.ports
        self.assertNotEqual(before["id"], after["id"])

    def test_of_two_ports_with_an_address_the_one_that_fits_stays(self) -> None:
        task = self.task()
        task.driver.network.add_cleaning_network(task)
        (own,) = self.service.ports
        self.service.add("ports", **{**own, "id": "later", "network_id": "of a user who knows the node"})
        self.service.refusals["POST"] = [409]
        task.driver.network.add_cleaning_network(task)
        self.assertEqual([own], self.service.ports)

    def test_a_machine_is_on_one_network_at_a_time(self) -> None:
        task = self.task()
        network = task.driver.network
        network.add_cleaning_network(task)  # as for fast track, its agent stays
        network.add_provisioning_network(task)
        (port,) = self.service.ports
        self.assertEqual(self.networks["provisioning"], port["network_id"])
        self.attach(task, vif := self.vif())
        network.configure_tenant_networks(task)
        self.assertEqual([vif], [one["id"] for one in self.service.ports])

    def test_a_port_is_found_without_a_note(self) -> None:
        task = self.task()
        task.driver.network.add_cleaning_network(task)
        task.keep_port_notes("cleaning_vif_port_id", {})
        task.driver.network.remove_cleaning_network(task)
        self.assertEqual([], self.service.ports)

    def test_a_port_that_ironic_has_left_is_deleted(self) -> None:
        task = self.task()
        old = self.service.add("ports", mac_address=FIRST, network_id=self.networks["cleaning"])["id"]
        task.ports[0].internal_info = {"cleaning_vif_port_id": old}
        task.driver.network.remove_cleaning_network(task)
        self.assertEqual(([], {}), (self.service.ports, task.ports[0].internal_info))

    def test_nothing_is_asked_where_there_can_be_nothing(self) -> None:
        task = self.task()
        task.driver.network.remove_provisioning_network(task)
        task.driver.network.unconfigure_tenant_networks(task)
        self.assertEqual([], self.service.asked)

    def test_an_answer_that_is_lost_leaves_no_second_port(self) -> None:
        task = self.task()
        self.service.refusals["POST"] = [0]
        add = task.driver.network.add_cleaning_network
        self.assertIn(FIRST, self.refused(add, task, error=errors.NetworkServiceUnavailable))
        add(task)
        self.assertEqual(1, len(self.service.ports))

    def test_a_refusal_leaves_nothing_and_has_neutrons_words(self) -> None:
        task = self.task()
        task.ports[1].pxe_enabled = True
        self.service.refusals["POST"] = [None, 409]  # type: ignore[list-item]
        message = self.refused(task.driver.network.add_cleaning_network, task, error=errors.NetworkError)
        for part in ("the fake says no", SECOND, self.networks["cleaning"]):
            self.assertIn(part, message)
        self.assertEqual(([], {}), (self.service.ports, task.node.driver_internal_info))

    def test_an_error_of_neutron_is_one_to_try_again(self) -> None:
        task = self.task()
        self.service.refusals["GET"] = [503]
        add = task.driver.network.add_cleaning_network
        self.assertIn("HTTP 503", self.refused(add, task, error=errors.NetworkServiceUnavailable))

    def test_a_port_that_nothing_binds_is_an_error_unless_the_node_says_otherwise(self) -> None:
        self.service.binds = False
        message = self.refused(self.fails(), error=errors.NetworkError)
        for part in ("binding_failed", "aa:bb:cc:dd:ee:ff"):
            self.assertIn(part, message)
        self.assertEqual([], self.service.ports)
        task = self.task(driver_info={"fail_on_binding_failure": "false"})
        task.driver.network.add_cleaning_network(task)
        self.assertEqual(1, len(self.service.ports))

    def fails(self) -> Any:
        task = self.task()
        return lambda: task.driver.network.add_cleaning_network(task)

    def test_ports_have_time_to_be_set_up(self) -> None:
        task = self.task()
        task.conf.set_override("port_setup_delay", 5, group="neutron")
        answer = task.driver.network.add_cleaning_network(task)
        assert isinstance(answer, results.PollAfter)
        self.assertTrue(4 < answer.after <= 5)
        count = len(self.service.asked)
        task.driver.network.add_cleaning_network(task)
        self.assertEqual(count, len(self.service.asked))
        task.memory["ports_set_up_at"] = 0
        self.assertEqual(results.DONE, task.driver.network.add_cleaning_network(task))

    def test_all_ports_and_groups_of_security_by_option(self) -> None:
        task = self.task()
        group = self.service.add("security-groups")["id"]
        task.conf.set_override("add_all_ports", True, group="neutron")
        task.conf.set_override("cleaning_network_security_groups", [group], group="neutron")
        task.driver.network.add_cleaning_network(task)
        self.assertEqual([[group]] * 2, [port["security_groups"] for port in self.service.ports])
        sent = [port for method, _path, port in self.service.asked if method == "POST"]
        self.assertEqual([False, True], ["fixed_ips" in port for port in sent])
        task.conf.set_override("cleaning_network_security_groups", ["gone"], group="neutron")
        self.assertIn("gone", self.refused(task.driver.network.add_cleaning_network, task))

    def test_a_machine_that_boots_media_has_all_its_ports_connected(self) -> None:
        task = self.task()
        with mock.patch.object(type(task.driver.boot), "boots_from_network", False):
            task.driver.network.add_cleaning_network(task)
        self.assertEqual({FIRST, SECOND}, {port["mac_address"] for port in self.service.ports})

    def test_each_part_of_a_boot_by_stateful_dhcpv6_gets_an_address(self) -> None:
        subnet = self.service.add("subnets", ipv6_address_mode="dhcpv6-stateful")["id"]
        network_service._NEW_PORT["fixed_ips"] = [{"subnet_id": subnet, "ip_address": "fd00::5"}]
        self.addCleanup(network_service._NEW_PORT.update, fixed_ips=[])
        task = self.task()
        task.driver.network.add_cleaning_network(task)
        (port,) = self.service.ports
        self.assertEqual(4, len(port["fixed_ips"]))

    def test_a_smart_nic_needs_its_agent(self) -> None:
        task = self.task()
        link = {"port_id": "rep0-0", "hostname": "dpu-1"}
        task.ports = [fakes.port(FIRST, id=1, is_smartnic=True, local_link_connection=link)]
        add = task.driver.network.add_cleaning_network
        self.assertIn("dpu-1", self.refused(add, task, error=errors.NetworkServiceUnavailable))
        self.service.add("agents", host="dpu-1", alive=True)
        add(task)
        (port,) = self.service.ports
        self.assertEqual(("smart-nic", "dpu-1"), (port["binding:vnic_type"], port["binding:host_id"]))

    def test_ports_that_lack_something_are_left_out_or_refused(self) -> None:
        task = self.task()
        task.ports.append(fakes.port(GROUP, id=3))
        task.driver.network.add_cleaning_network(task)
        self.assertEqual(1, len(self.service.ports))
        task.ports = task.ports[2:]
        self.assertIn("local_link_connection is empty", self.refused(task.driver.network.add_cleaning_network, task))
        task.ports = []
        self.assertIn("pxe_enabled", self.refused(task.driver.network.add_cleaning_network, task))

    def test_networks_are_validated_with_a_message_for_each_mistake(self) -> None:
        task = self.task()
        task.driver.network.validate(task)
        self.service.add("networks", name="cleaning")
        self.assertIn("2 networks have this name", self.refused(task.driver.network.validate, task))
        task = self.task(driver_info={"cleaning_network": self.networks["rescuing"]})
        task.driver.network.validate(task)
        task = self.task(driver_info={"cleaning_network": "nowhere"})
        message = self.refused(task.driver.network.validate, task)
        self.assertIn("driver_info.cleaning_network: 'nowhere'", message)
        task = self.task(driver_info={"cleaning_network": self.networks["cleaning"], "fail_on_binding_failure": "so"})
        self.assertIn("fail_on_binding_failure", self.refused(task.driver.network.validate, task))
        task = self.task(disable_power_off=True)
        self.assertIn("disable_power_off", self.refused(task.driver.network.validate, task))
        task = self.task()
        message = self.refused(task.driver.network.add_servicing_network, task, error=errors.MissingParameter)
        self.assertIn("[neutron] servicing_network", message)


class VIFTest(NeutronCase):
    def test_a_vif_gets_the_address_and_is_bound_when_its_user_has_the_machine(self) -> None:
        task, vif = self.task(), self.vif()
        self.attach(task, vif)
        self.assertEqual((FIRST, {}), (self.port(vif)["mac_address"], self.port(vif)["binding:profile"]))
        self.assertEqual([{"id": vif}], task.driver.network.list_vifs(task))
        self.assertEqual({"tenant_vif_port_id": vif}, task.ports[0].internal_info)
        task.driver.network.configure_tenant_networks(task)
        self.assertEqual({"local_link_information": [LINK]}, self.port(vif)["binding:profile"])
        task.driver.network.unconfigure_tenant_networks(task)
        self.assertEqual(("", {}), (self.port(vif)["binding:host_id"], self.port(vif)["binding:profile"]))
        self.assertNotEqual(FIRST, self.port(vif)["mac_address"])
        task.driver.network.detach_vif(task, vif)
        self.assertEqual(([], {}), (task.driver.network.list_vifs(task), task.ports[0].internal_info))
        self.assertIn("not attached", self.refused(task.driver.network.detach_vif, task, vif))

    def test_it_is_bound_at_once_on_an_active_node(self) -> None:
        task, vif = self.task(provision_state=states.ACTIVE), self.vif()
        self.attach(task, vif)
        self.assertEqual({"local_link_information": [LINK]}, self.port(vif)["binding:profile"])

    def test_one_that_could_not_be_bound_is_not_attached_and_one_that_may_be_is_noted(self) -> None:
        task, vif = self.task(provision_state=states.ACTIVE), self.vif()
        self.service.refusals["PUT"] = [0]  # Neutron has bound it, and is heard again for its release
        self.refused(self.attach, task, vif, error=errors.NetworkServiceUnavailable)
        self.assertEqual(([], ""), (task.driver.network.list_vifs(task), self.port(vif)["binding:host_id"]))
        self.service.refusals["PUT"] = [0, 503]
        self.refused(self.attach, task, vif, error=errors.NetworkServiceUnavailable)
        self.assertEqual(task.node.uuid, self.port(vif)["binding:host_id"])
        self.assertEqual([{"id": vif}], task.driver.network.list_vifs(task))
        task.driver.network.unconfigure_tenant_networks(task)  # as when the instance is deleted
        self.assertEqual("", self.port(vif)["binding:host_id"])

    def test_a_conductor_that_dies_leaves_no_vif_that_is_bound_without_a_note(self) -> None:
        task, vif = self.task(provision_state=states.ACTIVE), self.vif()
        with mock.patch.object(connection.Neutron, "update_port", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, self.attach, task, vif)
        self.assertEqual([{"id": vif}], task.driver.network.list_vifs(task))

    def test_one_that_is_noted_and_not_bound_is_bound_when_its_user_asks_again(self) -> None:
        task, vif = self.task(provision_state=states.ACTIVE), self.vif()
        with mock.patch.object(connection.Neutron, "update_port", side_effect=KeyboardInterrupt):
            self.assertRaises(KeyboardInterrupt, self.attach, task, vif)
        self.attach(task, vif)
        self.assertEqual({"local_link_information": [LINK]}, self.port(vif)["binding:profile"])
        self.refused(self.attach, task, vif, error=errors.Conflict)
        self.assertEqual([{"id": vif}], task.driver.network.list_vifs(task))

    def test_one_that_is_gone_before_it_is_bound_is_refused(self) -> None:
        task, vif = self.task(), self.vif()
        self.service.faults = {len(self.service.asked) + 2: 404}
        self.assertIn("no port with this uuid", self.refused(self.attach, task, vif))
        self.assertEqual([], task.driver.network.list_vifs(task))

    def test_one_that_another_machine_has_by_now_is_left_to_it(self) -> None:
        first, second, vif = self.task(), self.task(), self.vif()
        self.attach(first, vif)
        second.ports[0].address = GROUP
        self.attach(second, vif)
        second.driver.network.configure_tenant_networks(second)
        first.driver.network.unconfigure_tenant_networks(first)
        self.assertEqual((second.node.uuid, GROUP), (self.port(vif)["binding:host_id"], self.port(vif)["mac_address"]))
        first.driver.network.detach_vif(first, vif)
        self.assertEqual(second.node.uuid, self.port(vif)["binding:host_id"])

    def test_it_is_attached_once(self) -> None:
        task, vif = self.task(), self.vif()
        self.attach(task, vif)
        self.assertIn(task.ports[0].uuid, self.refused(self.attach, task, vif, error=errors.Conflict))

    def test_ports_are_refused_that_a_user_may_not_attach(self) -> None:
        task = self.task()
        self.assertIn("no port with this uuid", self.refused(self.attach, task, "unknown"))
        task.context = context.RequestContext(project_id="theirs", roles=["member"], overwrite=False)
        vif = self.vif()
        self.assertIn("no port with this uuid", self.refused(self.attach, task, vif))
        task.context = context.RequestContext(project_id="mine", roles=["member"], overwrite=False)
        self.assertIn("trunk's parent", self.refused(self.attach, task, self.vif(device_owner="trunk:subport")))
        self.attach(task, vif)

    def test_a_message_says_why_nothing_is_free(self) -> None:
        task = self.task()
        first, second = self.vif(), self.vif()
        self.attach(task, first)
        self.attach(task, second)
        message = self.refused(self.attach, task, self.vif())
        for part in (first, second, task.ports[0].uuid):
            self.assertIn(part, message)

    def test_portgroups_come_first_then_ports_that_boot(self) -> None:
        task = self.task()
        group = self.add_group(task, fakes.port(GROUP, id=3, portgroup_id=1, local_link_connection=LINK))
        vifs = [self.vif() for _ in range(3)]
        for vif in vifs:
            self.attach(task, vif)
        places = [one.internal_info.get("tenant_vif_port_id") for one in (group, *task.ports)]
        self.assertEqual([*vifs, None], places)
        task.driver.network.configure_tenant_networks(task)
        profile = self.port(vifs[0])["binding:profile"]
        about = {"id": group.uuid, "name": None, "bond_mode": "802.3ad", "bond_properties": {"bond_miimon": 100}}
        self.assertEqual({"local_link_information": [LINK], "local_group_information": about}, profile)

    def add_group(self, task: fakes.MemoryTask, *members: models.Port) -> models.Portgroup:
        group = fakes.portgroup(id=1, mode="802.3ad", properties={"miimon": 100})
        task.portgroups = [group]
        task.ports += members
        return group

    def test_a_place_can_be_asked_for(self) -> None:
        task = self.task()
        group = self.add_group(task, fakes.port(GROUP, id=3, portgroup_id=1, local_link_connection=LINK))
        first, second = self.vif(), self.vif()
        self.attach(task, first, port_uuid=task.ports[1].uuid)
        self.attach(task, second, portgroup_uuid=group.uuid)
        self.assertEqual({"tenant_vif_port_id": first}, task.ports[1].internal_info)
        self.assertEqual({"tenant_vif_port_id": second}, group.internal_info)

    def test_a_portgroup_without_ports_is_none(self) -> None:
        task = self.task()
        task.ports = []
        self.add_group(task)
        self.assertIn("has no port", self.refused(self.attach, task, self.vif()))

    def test_a_vif_goes_to_its_physical_network(self) -> None:
        task = self.task()
        task.ports[0].physical_network, task.ports[1].physical_network = "one", "two"
        for name, port in (("two", task.ports[1]), ("one", task.ports[0])):
            network = self.service.add("networks", **{"provider:physical_network": name})["id"]
            self.attach(task, vif := self.vif(network))
            self.assertEqual(vif, port.internal_info["tenant_vif_port_id"])
        network = self.service.add("networks", **{"provider:physical_network": "three"})["id"]
        task = self.task()
        task.ports[0].physical_network = task.ports[1].physical_network = "one"
        self.assertIn("physical network one", self.refused(self.attach, task, self.vif(network)))

    def test_of_several_segments_an_address_says_which(self) -> None:
        segment = self.service.add("segments", physical_network="two")["id"]
        subnet = self.service.add("subnets", segment_id=segment)["id"]
        segments = [{"provider:physical_network": name} for name in ("one", "two")]
        network = self.service.add("networks", segments=segments)["id"]
        task = self.task()
        task.ports[0].physical_network, task.ports[1].physical_network = "one", "two"
        address = {"subnet_id": subnet, "ip_address": "10.0.0.9"}
        self.attach(task, self.vif(network, fixed_ips=[address]))
        self.assertNotEqual({}, task.ports[1].internal_info)

    def test_a_port_that_is_gone_in_neutron(self) -> None:
        task, vif = self.task(), self.vif()
        self.attach(task, vif)
        del self.service.rows["ports"][vif]
        self.assertIn("anymore", self.refused(task.driver.network.configure_tenant_networks, task))
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.network.detach_vif(task, vif)
        self.assertEqual([], task.driver.network.list_vifs(task))

    def test_without_a_vif_there_is_no_network_for_an_instance(self) -> None:
        task = self.task()
        self.assertIn("has no VIF", self.refused(task.driver.network.configure_tenant_networks, task))

    def test_a_machine_that_is_adopted_without_a_vif_stays_where_it_is(self) -> None:
        task = self.task()
        adopt = custom.CustomAgentDeploy(task.conf, "custom-agent").adopt
        self.assertEqual(results.DONE, adopt(task))
        self.assertEqual([], self.service.asked)
        self.attach(task, vif := self.vif())
        self.assertEqual(results.DONE, adopt(task))
        self.assertEqual({"local_link_information": [LINK]}, self.port(vif)["binding:profile"])


class ActiveTest(NeutronCase):
    """Ports are waited for until they are connected."""

    def setUp(self) -> None:
        super().setUp()
        self.service.connects = False
        self.waiting = self.task()

    def clean(self) -> Any:
        return self.waiting.driver.network.add_cleaning_network(self.waiting)

    def test_no_port_is_made_twice_while_it_is_waited_for(self) -> None:
        answer = self.clean()
        assert isinstance(answer, results.PollAfter)
        self.assertEqual("ports", answer.waits_for)
        (port,) = self.service.ports
        self.clean()
        self.assertEqual([port], self.service.ports)
        self.service.connect()
        self.assertEqual((results.DONE, {}), (self.clean(), self.waiting.memory))

    def test_one_that_is_late_is_an_error_where_the_operator_says_so_and_leaves_nothing(self) -> None:
        self.waiting.conf.set_override("fail_on_inactive_port", True, group="neutron")
        self.clean()
        (port,) = self.service.ports
        self.waiting.memory["ports_active_until"] = 0
        self.assertIn(port["id"], self.refused(self.clean, error=errors.NetworkError))
        self.assertEqual(([], {}), (self.service.ports, self.waiting.node.driver_internal_info))

    def test_otherwise_there_is_a_warning(self) -> None:
        self.clean()
        self.waiting.memory["ports_active_until"] = 0
        with self.assertLogs("ingot.drivers.neutron.active_ports", "WARNING") as logged:
            self.assertEqual(results.DONE, self.clean())
        self.assertIn("port_active_timeout", logged.output[0])

    def test_one_that_has_an_error_is_not_waited_for(self) -> None:
        self.clean()
        self.service.ports[0]["status"] = "ERROR"
        self.assertEqual(results.DONE, self.clean())

    def test_what_cannot_become_active_is_not_waited_for(self) -> None:
        for about in ({"admin_state_up": False}, {"binding:vif_type": "binding_failed"}):
            self.service.rows["ports"].clear()
            self.waiting = self.task()
            self.clean()
            self.service.ports[0] |= about
            self.assertEqual(results.DONE, self.clean())

    def test_they_need_not_be_where_the_operator_says_so(self) -> None:
        self.waiting.conf.set_override("port_active_timeout", 0, group="neutron")
        self.assertEqual(results.DONE, self.clean())

    def test_vifs_are_bound_once_and_waited_for(self) -> None:
        vif, network = self.vif(), self.waiting.driver.network
        self.attach(self.waiting, vif)
        self.assertIsInstance(network.configure_tenant_networks(self.waiting), results.PollAfter)
        changes = [method for method, _path, _sent in self.service.asked if method == "PUT"]
        self.assertIsInstance(network.configure_tenant_networks(self.waiting), results.PollAfter)
        self.assertEqual(changes, [method for method, _path, _sent in self.service.asked if method == "PUT"])
        self.service.connect()
        self.assertEqual(results.DONE, network.configure_tenant_networks(self.waiting))


class SmartNicTest(NeutronCase):
    """The machine is on while its smart NIC is switched, by an agent that runs there."""

    def setUp(self) -> None:
        super().setUp()
        self.smart = self.task(power_state=states.POWER_OFF)
        link = {"port_id": "rep0-0", "hostname": "dpu-1"}
        self.smart.ports = [fakes.port(FIRST, id=1, is_smartnic=True, local_link_connection=link)]

    def connect(self) -> Any:
        return booting.reconnect(self.smart, self.smart.driver.network.add_cleaning_network)

    def power(self) -> str | None:
        return str(self.smart.driver.power.get_power_state(self.smart))

    def test_it_is_on_until_its_ports_are_connected(self) -> None:
        self.smart.driver.power.start_power_change(self.smart, states.POWER_OFF)
        self.service.connects = False
        for _ in range(5):
            answer = self.connect()
        assert isinstance(answer, results.PollAfter)
        self.assertEqual((states.POWER_ON, []), (self.power(), self.service.ports))
        self.service.add("agents", host="dpu-1", alive=True)
        self.connect()
        self.assertEqual((states.POWER_ON, 1), (self.power(), len(self.service.ports)))
        self.service.connect()
        self.assertEqual(results.DONE, self.run_to_end(self.connect))
        self.assertEqual((states.POWER_OFF, {}), (self.power(), self.smart.memory))

    def test_an_agent_that_does_not_come_is_an_error(self) -> None:
        self.smart.conf.set_override("neutron_agent_max_attempts", 1, group="agent")
        self.assertIsInstance(self.smart.driver.network.get_ready(self.smart), results.PollAfter)
        self.smart.memory["agents_until"] = 0
        message = self.refused(self.smart.driver.network.get_ready, self.smart, error=errors.NetworkError)
        self.assertIn("dpu-1", message)

    def test_its_port_has_to_be_active(self) -> None:
        self.service.add("agents", host="dpu-1", alive=True)
        self.service.connects = False
        self.smart.driver.network.add_cleaning_network(self.smart)
        self.smart.memory["ports_active_until"] = 0
        self.assertIn(
            "DOWN", self.refused(self.smart.driver.network.add_cleaning_network, self.smart, error=errors.NetworkError)
        )
        self.assertEqual([], self.service.ports)


class NetworkDataTest(NeutronCase):
    """What instances and agents learn of their networks."""

    def add_subnet(self) -> dict[str, Any]:
        return self.service.add(
            "subnets",
            ip_version=4,
            cidr="10.1.0.0/16",
            gateway_ip="10.1.0.1",
            dns_nameservers=["10.1.0.2"],
            host_routes=[{"destination": "10.9.0.0/24", "nexthop": "10.1.0.9"}],
        )

    def test_an_instance_learns_of_its_users_ports(self) -> None:
        task, subnet = self.task(), self.add_subnet()
        network = self.service.add("networks", name="tenant", mtu=9000)["id"]
        group = fakes.portgroup(id=1, mode="802.3ad", properties={"xmit_hash_policy": "layer3+4"}, address=GROUP)
        task.portgroups = [group]
        task.ports[1].portgroup_id = 1
        address = {"subnet_id": subnet["id"], "ip_address": "10.1.0.5"}
        bond, single = self.vif(network, fixed_ips=[address]), self.vif(network)
        self.attach(task, bond)
        self.attach(task, single)
        shown = task.driver.network.get_instance_network_data(task)
        about = {"mtu": 9000, "ethernet_mac_address": FIRST, "vif_id": single}
        links = {link["id"]: link for link in shown["links"]}
        self.assertEqual({"id": "iface0", "type": "phy", **about}, links["iface0"])
        self.assertEqual(["iface2"], links["iface1"]["bond_links"])
        self.assertEqual(("802.3ad", GROUP), (links["iface1"]["bond_mode"], links["iface1"]["ethernet_mac_address"]))
        self.assertEqual(SECOND, links["iface2"]["ethernet_mac_address"])
        anywhere = {"network": "0.0.0.0", "netmask": "0.0.0.0", "gateway": "10.1.0.1"}
        self.assertEqual(
            [
                {
                    "id": subnet["id"],
                    "network_id": network,
                    "type": "ipv4",
                    "link": "iface1",
                    "ip_address": "10.1.0.5",
                    "netmask": "255.255.0.0",
                    "routes": [anywhere, {"network": "10.9.0.0", "netmask": "255.255.255.0", "gateway": "10.1.0.9"}],
                }
            ],
            shown["networks"],
        )
        self.assertEqual([{"type": "dns", "address": "10.1.0.2"}], shown["services"])

    def test_a_config_drive_that_says_nothing_of_networks_is_completed(self) -> None:
        task = self.task()
        self.attach(task, vif := self.vif())
        for given in ({}, {"network_data": {"links": [], "networks": []}}):
            parts = json.loads(str(configdrive.build(task, given, keeps_parts=True)))
            self.assertEqual([vif], [link["vif_id"] for link in parts["network_data"]["links"]])
        own = {"network_data": {"links": [{"id": "mine"}]}}
        self.assertEqual(own, json.loads(str(configdrive.build(task, own, keeps_parts=True))))

    def test_an_agent_that_boots_media_learns_of_its_own(self) -> None:
        task, subnet = self.task(), self.add_subnet()
        self.assertEqual({}, task.driver.network.get_agent_network_data(task))
        task.driver.network.add_cleaning_network(task)
        self.assertEqual({}, task.driver.network.get_agent_network_data(task))  # without addresses it asks for them
        (port,) = self.service.ports
        port["fixed_ips"] = [{"subnet_id": subnet["id"], "ip_address": "10.1.0.6"}]
        shown = task.driver.network.get_agent_network_data(task)
        self.assertEqual(
            ("10.1.0.6", FIRST), (shown["networks"][0]["ip_address"], shown["links"][0]["ethernet_mac_address"])
        )


class FlatTest(NeutronCase):
    interface = "flat"

    def test_a_machine_is_deployed_on_its_users_network(self) -> None:
        task, vif = self.task(), self.vif()
        task.ports[0].local_link_connection = {}  # Neutron need not know it
        self.attach(task, vif)
        network = task.driver.network
        for add, remove in (
            (network.add_provisioning_network, network.remove_provisioning_network),
            (network.add_rescuing_network, network.remove_rescuing_network),
            (network.add_servicing_network, network.remove_servicing_network),
        ):
            add(task)
            self.assertEqual(task.node.uuid, self.port(vif)["binding:host_id"])
            remove(task)
            self.assertEqual("", self.port(vif)["binding:host_id"])
        self.assertEqual(1, len(self.service.ports))

    def test_it_is_cleaned_on_the_operators(self) -> None:
        task = self.task()
        self.service.binds = False  # there may be no driver for it
        task.driver.network.add_cleaning_network(task)
        self.assertEqual(1, len(self.service.ports))
        task.driver.network.remove_cleaning_network(task)
        self.assertEqual(0, len(self.service.ports))


class BootOptionsTest(NeutronCase):
    """The DHCP provider neutron."""

    options: ClassVar[dict[str, Any]] = {"dhcp__dhcp_provider": "neutron", "pxe__tftp_server": "10.0.0.2"}

    def test_ports_say_what_the_machine_boots(self) -> None:
        files = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
        task, vif = self.task(boot_interface="ipxe", driver_info=files), self.vif()
        self.attach(task, vif)
        task.driver.network.add_cleaning_network(task)
        of_4 = {
            **dict.fromkeys(("66", "150", "server-ip-address"), "10.0.0.2"),
            "tag:!ipxe,67": "snponly.efi",
            "tag:ipxe,67": "http://10.0.0.1:6385/boot.ipxe",
        }
        self.assertEqual({4: of_4}, self.given(task))
        task.conf.set_override("tftp_server", "fd00::2", group="pxe")
        of_6 = {"tag:!ipxe6,59": "tftp://[fd00::2]/snponly.efi", "tag:ipxe6,59": "http://10.0.0.1:6385/boot.ipxe"}
        self.assertEqual({6: of_6}, self.given(task))
        task.conf.set_override("tftp_server", "boot.example.org", group="pxe")
        self.assertEqual({4, 6}, set(self.given(task)))
        task.driver.network.remove_cleaning_network(task)
        task.driver.boot.clean_up_ramdisk(task)
        self.assertEqual({None}, {option["opt_value"] for option in self.port(vif)["extra_dhcp_opts"]})

    def given(self, task: fakes.MemoryTask) -> dict[int, dict[str, str]]:
        """Have a machine boot; return the options of its port, by the version of IP."""
        task.driver.boot.prepare_ramdisk(task, {})
        (port,) = (one for one in self.service.ports if one["device_id"])
        found: dict[int, dict[str, str]] = {}
        for option in port["extra_dhcp_opts"]:
            found.setdefault(option["ip_version"], {})[option["opt_name"]] = option["opt_value"]
        return found

    def test_a_node_without_ports_in_neutron_is_refused(self) -> None:
        task = self.task(boot_interface="ipxe")
        task.driver.network = noop.NoopNetwork(task.conf, "noop")
        task.node.driver_info = {"deploy_kernel": "http://files/kernel", "deploy_ramdisk": "http://files/initrd"}
        self.assertIn("network_interface", self.refused(task.driver.boot.validate, task))


class ConfigurationTest(NeutronCase):
    def test_a_conductor_says_at_its_start_what_is_missing(self) -> None:
        conf = self.task().conf
        conf.set_override("auth_type", None, group="neutron")
        message = self.refused(factory.Hardware, conf, error=errors.ConfigurationError)
        self.assertIn("[neutron] auth_type", message)
