"""VIFs through the API and a real conductor; and what its sweep finds in Neutron."""

from typing import Any

from ingot.common import states
from ingot.db import nodes, ports
from tests import conductor_case, database, network_service
from tests.unit.conductor.test_hardware import HardwareCase

MAC = "52:54:00:00:00:01"


class NeutronCase(HardwareCase):
    def configure(self) -> None:
        super().configure()
        self.service = self.useFixture(network_service.NetworkService())
        self.service.configure(self.conf)
        self.conf.set_override("enabled_network_interfaces", ["flat", "noop"])
        self.conf.set_override("cleaning_network", "cleaning", group="neutron")
        self.conf.set_override("port_sweep_interval", 1, group="neutron")
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


class SweepTest(NeutronCase):
    def leave(self, node_uuid: str) -> str:
        """Add a port of a node's to Neutron as a conductor does."""
        about = {"description": f"Ingot: cleaning network (http://{self.conf.my_ip}:6385)", "mac_address": MAC}
        owner = {"device_owner": "baremetal:none", "device_id": node_uuid}
        return str(self.service.add("ports", network_id=self.network, **owner, **about)["id"])

    def test_ports_of_nodes_that_are_gone_are_deleted_and_no_others(self) -> None:
        foreign = self.service.add("ports", device_owner="baremetal:none", device_id="gone", description="")["id"]
        self.leave("gone")
        conductor_case.eventually(lambda: [one["id"] for one in self.service.ports] == [foreign], "it is swept")

    def test_a_node_at_rest_is_left_by_its_network(self) -> None:
        self.change(driver_internal_info={"neutron_networks": ["cleaning"]})
        self.leave(self.known.uuid)
        conductor_case.eventually(lambda: not self.service.ports, "it is swept")
        conductor_case.eventually(
            lambda: "neutron_networks" not in nodes.get(self.db, self.known.uuid).driver_internal_info, "it is noted"
        )

    def test_a_node_that_works_keeps_it(self) -> None:
        self.change(provision_state=states.CLEANFAIL)
        self.leave(self.known.uuid)
        self.leave("gone")
        conductor_case.eventually(lambda: len(self.service.ports) == 1, "a round of the sweep")
        self.assertEqual(self.known.uuid, self.service.ports[0]["device_id"])
