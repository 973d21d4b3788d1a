"""VIFs and events of ports through the API and a real conductor; and what its sweep finds in Neutron."""

import logging
import uuid
from typing import Any
from unittest import mock

import fixtures

from ingot.common import states, waits
from ingot.db import explanations, listing, nodes, ports
from ingot.drivers.neutron import active_ports
from tests import conductor_case, database, network_service
from tests.unit.conductor.test_hardware import HardwareCase

MAC = "52:54:00:00:00:01"


class NeutronCase(HardwareCase):
    def configure(self) -> None:
        super().configure()
        self.service = self.useFixture(network_service.NetworkService())
        self.service.configure(self.conf)
        self.conf.set_override("enabled_network_interfaces", ["flat", "neutron", "noop"])
        for purpose in ("cleaning", "provisioning"):
            self.conf.set_override(f"{purpose}_network", "cleaning", group="neutron")
        self.conf.set_override("port_sweep_interval", 0, group="neutron")
        self.network = self.service.add("networks", name="cleaning")["id"]

    def setUp(self) -> None:
        super().setUp()
        self.change(network_interface="flat")
        self.card = database.make_port(self.db, self.known, address=MAC)

    def vif(self) -> str:
        return str(self.service.add("ports", network_id=self.network, mac_address="fa:16:3e:00:00:09")["id"])

    def notes(self) -> Any:
        (port,) = ports.PORTS.list_of_node(self.db, self.known.id)
        return port.internal_info


class VIFTest(NeutronCase):
    def test_a_vif_is_attached_listed_and_detached(self) -> None:
        vif = self.vif()
        self.good(204, "POST", "vifs", {"id": vif})
        self.assertEqual({"vifs": [{"id": vif}]}, self.good(200, "GET", "vifs"))
        self.assertEqual({"tenant_vif_port_id": vif}, self.notes())
        self.assertIn("attached already", self.refused(409, "POST", "vifs", {"id": vif}))
        self.assertIn(f"has VIF {vif}", self.refused(400, "POST", "vifs", {"id": self.vif()}))
        self.good(204, "DELETE", f"vifs/{vif}")
        self.assertEqual({}, self.notes())
        self.assertIn("not attached", self.refused(400, "DELETE", f"vifs/{vif}"))

    def test_it_can_be_seen_and_detached_when_nothing_could_be_attached(self) -> None:
        vif = self.vif()
        self.good(204, "POST", "vifs", {"id": vif})
        self.conf.set_override("cleaning_network", "gone", group="neutron")
        self.assertIn("cleaning_network", self.refused(400, "POST", "vifs", {"id": self.vif()}))
        count = len(self.service.asked)
        self.assertEqual({"vifs": [{"id": vif}]}, self.good(200, "GET", "vifs"))
        self.assertEqual(count, len(self.service.asked))
        self.good(204, "DELETE", f"vifs/{vif}")

    def test_a_neutron_that_is_away_is_said_to_be(self) -> None:
        self.service.refusals["GET"] = [503]
        self.assertIn("HTTP 503", self.refused(503, "POST", "vifs", {"id": self.vif()}))

    def test_a_port_with_a_vif_is_not_deleted(self) -> None:
        vif = self.vif()
        self.good(204, "POST", "vifs", {"id": vif})
        headers = {"X-OpenStack-Ironic-API-Version": "1.90"}
        answer = self.http.delete(f"/v1/ports/{self.card.uuid}", headers=headers)
        self.assertEqual(409, answer.status_code)
        self.assertIn(vif, answer.text)
        self.change(maintenance=True)
        self.assertEqual(204, self.http.delete(f"/v1/ports/{self.card.uuid}", headers=headers).status_code)


class ChangeTest(NeutronCase):
    """A port changes to which a VIF is attached."""

    def patch(self, status: int, path: str, value: Any) -> str:
        headers = {"X-OpenStack-Ironic-API-Version": "1.90"}
        change = [{"op": "add", "path": path, "value": value}]
        answer = self.http.patch(f"/v1/ports/{self.card.uuid}", json=change, headers=headers)
        self.assertEqual(status, answer.status_code, answer.text)
        return str(answer.text)

    def test_its_address_is_carried_to_neutron(self) -> None:
        vif = self.vif()
        self.good(204, "POST", "vifs", {"id": vif})
        self.patch(200, "/address", "52:54:00:00:00:07")
        port = self.service.rows["ports"][vif]
        self.assertEqual(("52:54:00:00:00:07", self.known.uuid), (port["mac_address"], port["binding:host_id"]))
        self.patch(200, "/extra", {"client-id": "ff:00"})
        self.assertEqual([{"opt_name": "client-id", "opt_value": "ff:00"}], port["extra_dhcp_opts"])
        self.patch(200, "/extra", {})
        self.assertEqual([{"opt_name": "client-id", "opt_value": None}], port["extra_dhcp_opts"])

    def test_nothing_changes_if_neutron_does_not_take_it(self) -> None:
        vif = self.vif()
        self.good(204, "POST", "vifs", {"id": vif})
        for status, expected in ((503, 503), (409, 502)):
            self.service.refusals["PUT"] = [status]
            self.assertIn("the fake says no", self.patch(expected, "/address", "52:54:00:00:00:07"))
            self.assertEqual(MAC, ports.PORTS.list_of_node(self.db, self.known.id)[0].address)

    def test_a_machine_of_a_user_stays_connected_if_neutron_does_not_take_it(self) -> None:
        self.change(provision_state=states.ACTIVE, maintenance=True)
        vif = self.vif()
        self.good(204, "POST", "vifs", {"id": vif})
        port = self.service.rows["ports"][vif]
        before = dict(port)
        self.service.refusals["PUT"] = [None, 409]
        self.assertIn("the fake says no", self.patch(502, "/address", "52:54:00:00:00:07"))
        self.assertEqual(before, port)
        self.service.refusals["PUT"] = [None, 503, 503]  # as if the conductor died
        self.patch(503, "/address", "52:54:00:00:00:07")
        self.patch(200, "/address", "52:54:00:00:00:07")
        self.assertEqual(before | {"mac_address": "52:54:00:00:00:07"}, port)

    def test_a_portgroup_that_is_not_there_is_a_wrong_value(self) -> None:
        self.assertIn("portgroup_uuid", self.patch(400, "/portgroup_uuid", str(uuid.uuid4())))

    def test_an_address_that_another_port_has_is_refused_before(self) -> None:
        other = database.make_port(self.db, self.known, address="52:54:00:00:00:08")
        self.good(204, "POST", "vifs", {"id": self.vif(), "port_uuid": self.card.uuid})
        count = len(self.service.asked)
        self.assertIn(other.address, self.patch(409, "/address", other.address))
        self.assertEqual(count, len(self.service.asked))


class EventsTest(NeutronCase):
    """A step waits until Neutron has connected a port."""

    def setUp(self) -> None:
        super().setUp()
        self.change(network_interface="neutron", provision_state=states.ACTIVE)
        link = {"switch_id": "aa:bb:cc:dd:ee:ff", "port_id": "1"}
        ports.PORTS.update(self.db, self.read_card(), {"local_link_connection": link})
        self.attached = self.vif()
        self.good(204, "POST", "vifs", {"id": self.attached})
        self.useFixture(fixtures.MockPatchObject(active_ports, "_PAUSE_S", 1000.0))

    def read_card(self) -> Any:
        return listing.get(self.db, ports.PORTS.source, self.card.uuid)

    def begin(self, timeout: int = 900) -> None:
        """Have the VIFs bound anew by a switch that takes its time; return when the step waits for it."""
        self.conf.set_override("port_active_timeout", timeout, group="neutron")
        self.service.connects = False
        steps = [{"interface": "network", "step": "reattach_networking"}]
        self.good(202, "PUT", "states/provision", {"target": "service", "service_steps": steps})
        conductor_case.eventually(self.waits, "the step waits for the port")

    def waits(self) -> bool:
        node = nodes.get(self.db, self.known.uuid, explanations.COLUMNS)
        is_polling = node.reservation is None and node.step_state == states.StepState.POLLING
        return is_polling and explanations.explain(self.conf, node)["kind"] == waits.Wait.PORTS

    def tell(self, **about: Any) -> None:
        event = {"event": "network.bind_port", "port_id": self.attached, "mac_address": MAC, "status": "ACTIVE"}
        headers = {"X-OpenStack-Ironic-API-Version": "1.54"}
        answer = self.http.post("/v1/events", json={"events": [event | about]}, headers=headers)
        self.assertEqual(204, answer.status_code, answer.text)

    def count_asked(self) -> int:
        return sum(method == "GET" for method, _path, _sent in self.service.asked)

    def ended(self) -> bool:
        return self.node.provision_state == states.ACTIVE and self.node.flow is None

    def test_the_report_ends_the_wait(self) -> None:
        self.begin()
        self.service.connect()
        self.tell()
        conductor_case.eventually(self.ended, "the service ends")
        self.tell()  # once more, when nothing waits for it any more

    def test_a_report_without_a_change_or_of_another_port_ends_nothing(self) -> None:
        self.begin()
        before = self.count_asked()
        self.tell(port_id=str(uuid.uuid4()))
        self.tell(mac_address="52:54:00:00:00:99")
        self.assertTrue(self.waits())
        self.assertEqual(before, self.count_asked())
        self.tell(status="DOWN")  # whatever it says, Neutron is asked
        conductor_case.eventually(lambda: self.count_asked() > before and self.waits(), "it waits on")
        self.service.connect()
        self.tell()
        conductor_case.eventually(self.ended, "the service ends")

    def test_a_report_that_is_lost_is_made_up_for(self) -> None:
        with mock.patch.object(active_ports, "_PAUSE_S", 0.3):
            self.begin()
            self.service.connect()
            conductor_case.eventually(self.ended, "the service ends")

    def test_a_port_that_comes_too_late_is_an_error_if_the_operator_says_so(self) -> None:
        self.conf.set_override("fail_on_inactive_port", True, group="neutron")
        self.begin(timeout=1)
        conductor_case.eventually(lambda: self.node.provision_state == states.SERVICEFAIL, "the service fails")
        for part in (self.attached, "DOWN", "port_active_timeout"):
            self.assertIn(part, self.node.last_error)

    def test_otherwise_the_step_goes_on(self) -> None:
        self.begin(timeout=1)
        conductor_case.eventually(self.ended, "the service ends")

    def test_a_port_that_is_deleted_meanwhile_is_an_error(self) -> None:
        self.begin()
        del self.service.rows["ports"][self.attached]
        self.tell(event="network.delete_port", status="DELETED")
        conductor_case.eventually(lambda: self.node.provision_state == states.SERVICEFAIL, "the service fails")
        self.assertIn("was deleted", self.node.last_error)


class SweepTest(NeutronCase):
    def configure(self) -> None:
        super().configure()
        self.conf.set_override("port_sweep_interval", 1, group="neutron")

    def leave(self, node_uuid: str, ingot: str = "") -> str:
        """Add a port of a node's to Neutron as a conductor does.

        :param ingot: the address of the API of the Ingot that it belongs to.
        """
        ingot = ingot or f"http://{self.conf.my_ip}:6385"
        about = {"description": f"Ingot: cleaning network ({ingot})", "mac_address": MAC}
        owner = {"device_owner": "baremetal:none", "device_id": node_uuid}
        return str(self.service.add("ports", network_id=self.network, **owner, **about)["id"])

    def test_ports_of_nodes_that_are_gone_are_deleted_and_no_others(self) -> None:
        foreign = self.service.add("ports", device_owner="baremetal:none", device_id="gone", description="")["id"]
        other = self.leave("gone", ingot="http://192.0.2.99:6385")  # of another Ingot at the same Neutron
        self.leave("gone")
        conductor_case.eventually(lambda: [one["id"] for one in self.service.ports] == [foreign, other], "it is swept")

    def test_a_port_that_neutron_keeps_stops_no_other(self) -> None:
        log = self.useFixture(fixtures.FakeLogger("ingot", level=logging.WARNING))
        self.service.refusals["DELETE"] = [409]
        self.leave("gone")
        self.leave("gone, too")
        conductor_case.eventually(lambda: not self.service.ports, "the next round deletes it")
        self.assertIn("the fake says no", log.output)
        self.service.refusals["GET"] = [503] * 3
        conductor_case.eventually(lambda: not self.service.refusals["GET"], "Neutron is away for some rounds")
        self.assertIn("HTTP 503", log.output)
        self.assertNotIn("Traceback", log.output)

    def test_a_node_in_maintenance_is_left_alone(self) -> None:
        self.change(driver_internal_info={"neutron_networks": ["cleaning"]}, maintenance=True)
        kept = self.leave(self.known.uuid)
        self.leave("gone")
        conductor_case.eventually(lambda: [one["id"] for one in self.service.ports] == [kept], "a round of the sweep")
        self.change(maintenance=False)
        conductor_case.eventually(lambda: not self.service.ports, "it is swept")

    def test_a_node_at_rest_is_left_by_its_network(self) -> None:
        self.change(driver_internal_info={"neutron_networks": ["cleaning"]})
        self.leave(self.known.uuid)
        conductor_case.eventually(lambda: not self.service.ports, "it is swept")
        conductor_case.eventually(
            lambda: "neutron_networks" not in nodes.get(self.db, self.known.uuid).driver_internal_info, "it is noted"
        )

    def test_with_fast_track_only_a_node_with_a_user_is_left(self) -> None:
        self.conf.set_override("fast_track", True, group="deploy")
        self.change(driver_internal_info={"neutron_networks": ["cleaning"]})
        kept = self.leave(self.known.uuid)
        self.leave("gone")
        conductor_case.eventually(lambda: [one["id"] for one in self.service.ports] == [kept], "a round of the sweep")
        self.change(provision_state=states.ACTIVE)
        conductor_case.eventually(lambda: not self.service.ports, "it is swept")

    def test_a_node_that_works_keeps_it(self) -> None:
        self.change(provision_state=states.CLEANFAIL)
        self.leave(self.known.uuid)
        self.leave("gone")
        conductor_case.eventually(lambda: len(self.service.ports) == 1, "a round of the sweep")
        self.assertEqual(self.known.uuid, self.service.ports[0]["device_id"])
