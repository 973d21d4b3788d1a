"""BMCs that take connections and say nothing: what they cost their own nodes, and that they cost others nothing."""

import time
from typing import Any

import testtools

from tests import patience
from tests.functional.deployment import lab

READ_TIMEOUT = 5
NODES, SILENT = 30, 10


class SilenceTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        options = {
            "DEFAULT": {"enabled_hardware_types": "redfish"},
            "redfish": {"read_timeout": READ_TIMEOUT},
            "conductor": {"sync_power_state_interval": 1, "force_power_state_during_sync": False},
        }
        rack = {"redfish_base_port": 0, "machines": NODES + 2}
        self.lab = self.useFixture(lab.Lab(rack=rack, options=options))
        self.machines = self.lab.rack.machines

    def enroll(self, index: int) -> str:
        info = {
            "redfish_address": self.machines[index]["redfish"]["address"],
            "redfish_username": "admin",
            "redfish_password": "password",
            "redfish_verify_ca": self.lab.rack.description["redfish_ca_file"],
        }
        body = {"driver": "redfish", "name": f"r{index}", "driver_info": info}
        uuid: str = self.lab.user.post("/v1/nodes", body)["uuid"]
        self.lab.user.provision(uuid, "manage")
        return uuid

    def silence(self, index: int, fault: str = "redfish_silent") -> None:
        self.lab.rack.control.order_fault(self.machines[index]["name"], fault)

    def states(self) -> dict[str, Any]:
        found = self.lab.user.get("/v1/nodes?fields=uuid,power_state,provision_state&limit=100")["nodes"]
        return {node["uuid"]: (node["provision_state"], node["power_state"]) for node in found}

    def test_others_are_read_and_no_node_is_verifying_for_long(self) -> None:
        nodes = [self.enroll(index) for index in range(NODES)]
        managed = ("manageable", "power off")
        self.lab.eventually(lambda: set(self.states().values()) == {managed}, "all are managed")
        for index in range(SILENT):
            self.silence(index)
        for index in range(SILENT, NODES):
            self.lab.rack.control.power(self.machines[index]["name"], "on")
        began = time.monotonic()
        others = nodes[SILENT:]
        self.lab.eventually(
            lambda: {self.states()[node][1] for node in others} == {"power on"}, "what changed is noticed"
        )
        self.assertLess(time.monotonic() - began, patience.seconds(2 * READ_TIMEOUT))

        for index, fault in ((NODES, "redfish_silent"), (NODES + 1, "redfish_port_closed")):
            self.silence(index, fault)
            began = time.monotonic()
            node = self.enroll(index)
            self.lab.eventually(lambda node=node: self.lab.user.node(node)["provision_state"] == "enroll", "it ends")
            # It is asked three times, with some seconds between.
            self.assertLess(time.monotonic() - began, patience.seconds(3 * READ_TIMEOUT + 30))
            self.assertIn(self.machines[index]["redfish"]["address"], self.lab.user.node(node)["last_error"])
