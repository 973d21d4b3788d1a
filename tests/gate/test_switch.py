"""Machines go from VLAN to VLAN of a real Open vSwitch, without Neutron."""

from collections.abc import Callable
from typing import Any, ClassVar

import testtools

from tests.functional.deployment import lab
from tests.gate import switches

CLEANING, PROVISIONING, TENANT = 100, 200, 300
PORT = "machine0"
OPTIONS: dict[str, dict[str, Any]] = {
    "DEFAULT": {"enabled_network_interfaces": "switch,noop"},
    "switch": {
        "cleaning_vlan": CLEANING,
        "provisioning_vlan": PROVISIONING,
        "tenant_networks": f"web:{TENANT}",
        "sweep_interval": 2,
    },
}


class SwitchTest(testtools.TestCase):
    switch: ClassVar[switches.OpenVSwitch]
    bench: ClassVar[lab.Lab]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.switch = cls.enterClassContext(switches.OpenVSwitch((PORT,), (CLEANING, PROVISIONING, TENANT)))
        python = switches.prepare() / "python"
        options = {**OPTIONS, **cls.switch.options(), "switch": {**OPTIONS["switch"], "python": python}}
        cls.bench = cls.enterClassContext(lab.Lab(options=options))

    def enroll(self, port_id: str = PORT) -> str:
        """Enroll the machine with its cable; it goes with the test."""
        user = self.bench.user
        uuid = self.bench.enroll(network_interface="switch")
        for port in user.get(f"/v1/nodes/{uuid}/ports")["ports"]:
            link = {"switch_id": switches.MAC, "switch_info": switches.NAME, "port_id": port_id}
            user.patch(f"/v1/ports/{port['uuid']}", {"/local_link_connection": link})
        self.addCleanup(self.delete, uuid)
        return uuid

    def delete(self, uuid: str) -> None:
        hold = [{"op": "add", "path": "/maintenance", "value": True}]
        if self.bench.user.request("PATCH", f"/v1/nodes/{uuid}", hold).status_code != 404:
            self.bench.user.delete(f"/v1/nodes/{uuid}")

    def play(self, uuid: str, watch: Callable[[int], None] = lambda _vlan: None) -> None:
        """Have the machine cleaned and deployed.

        :param watch: is called with the VLAN of each, while the machine is about to be there.
        """
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        self.bench.user.provision(uuid, "provide")
        watch(CLEANING)
        self.bench.reach(uuid, "available")
        self.attach(uuid, "web")
        self.bench.set_image(uuid)
        self.bench.user.provision(uuid, "active")
        watch(PROVISIONING)
        self.bench.reach(uuid, "active")

    def attach(self, uuid: str, vif: str) -> None:
        def ask() -> bool:
            answer = self.bench.user.request("POST", f"/v1/nodes/{uuid}/vifs", {"id": vif})
            return answer.status_code == 204 or "attached already" in answer.text

        self.bench.eventually(ask, f"VIF {vif} is attached")

    def give_back(self, uuid: str) -> None:
        self.bench.user.provision(uuid, "deleted")
        self.bench.reach(uuid, "available")
        self.assertIsNone(self.switch.tag(PORT))
        self.assertNotIn("switch_ports", self.bench.user.node(uuid)["driver_internal_info"])
        self.assertEqual([], self.bench.user.get(f"/v1/nodes/{uuid}/vifs")["vifs"])


class WayTest(SwitchTest):
    def watch(self, vlan: int) -> None:
        """Wait until the machine is on a VLAN of the operator's; what it sends arrives there and nowhere else."""
        self.bench.eventually(lambda: self.switch.tag(PORT) == vlan, f"the port is on VLAN {vlan}")
        self.assertEqual([vlan], self.switch.hears(PORT))

    def test_a_machine_is_cleaned_deployed_and_given_back(self) -> None:
        uuid = self.enroll()
        before = len(self.switch.tags(PORT))
        self.play(uuid, self.watch)
        self.assertEqual(TENANT, self.switch.tag(PORT))
        self.assertEqual([TENANT], self.switch.hears(PORT))
        self.assertEqual([CLEANING, None, PROVISIONING, None, TENANT], self.switch.tags(PORT)[before:])
        self.give_back(uuid)
        self.assertEqual([None, CLEANING, None], self.switch.tags(PORT)[before + 5 :])

    def test_ports_of_a_node_that_is_deleted_leave_their_vlan(self) -> None:
        uuid = self.enroll()
        self.play(uuid)
        self.assertEqual([TENANT], self.switch.hears(PORT))
        self.delete(uuid)
        self.bench.eventually(lambda: self.switch.tag(PORT) is None, "the port is on no VLAN")

    def test_validation_and_the_switchs_own_words(self) -> None:
        uuid = self.enroll("nowhere")
        self.bench.user.provision(uuid, "manage")
        self.bench.reach(uuid, "manageable")
        self.assertTrue(self.bench.user.get(f"/v1/nodes/{uuid}/validate")["network"]["result"])
        self.bench.user.provision(uuid, "provide")
        node = self.bench.reach(uuid, "clean failed")
        for part in ("port nowhere on switch leaf, VLAN 100", "ovs-vsctl: no row", "refuses"):
            self.assertIn(part, node["last_error"])
        for port in self.bench.user.get(f"/v1/nodes/{uuid}/ports")["ports"]:
            link = {"switch_info": "spine", "switch_id": "0a:00:00:00:00:99", "port_id": "1"}
            self.bench.user.patch(f"/v1/ports/{port['uuid']}", {"/local_link_connection": link})
        found = self.bench.user.get(f"/v1/nodes/{uuid}/validate")["network"]
        self.assertFalse(found["result"])
        self.assertIn("Known are: leaf", found["reason"])
