"""Inspection, rescue and adoption of machines of the rack, over the real protocols from BMC to agent."""

from typing import Any

import testtools
from passlib.hash import sha512_crypt

from tests.functional.deployment import lab

MACHINE = "machine-0"
PASSWORD = "correct horse battery staple"


def ran(step_runs: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["step"], row["state"]) for row in step_runs]


class TestInspection(testtools.TestCase):
    def manageable(self, **settings: Any) -> lab.Lab:
        bench = self.useFixture(lab.Lab(rack={"machine": [{"macs": ["52:54:00:aa:00:01", "52:54:00:aa:00:02"]}]},
                                        **settings))  # fmt: skip
        self.uuid = bench.enroll()
        bench.user.provision(self.uuid, "manage")
        bench.reach(self.uuid, "manageable")
        return bench

    def inspect(self, bench: lab.Lab, end: str = "manageable") -> dict[str, Any]:
        bench.user.provision(self.uuid, "inspect")
        bench.eventually(lambda: bench.user.node(self.uuid)["provision_state"] != "manageable", "it begins")
        return bench.reach(self.uuid, end)

    def test_the_agent_tells_what_the_machine_is_made_of(self) -> None:
        bench = self.manageable(options={"inspector": {"add_ports": "all"}})
        second = bench.user.get("/v1/ports?address=52:54:00:aa:00:02")["ports"][0]["uuid"]
        bench.user.delete(f"/v1/ports/{second}")
        rule = {
            "description": "a rack of our own",
            "conditions": [{"op": "eq", "args": {"values": ["{inventory[system_vendor][manufacturer]}", "Ingot"]}}],
            "actions": [{"op": "set-attribute", "args": {"path": "/extra/serial",
                                                         "value": "{inventory[system_vendor][serial_number]}"}}],
        }  # fmt: skip
        bench.user.post("/v1/inspection_rules", rule)
        node = self.inspect(bench)
        self.assertEqual((None, None, "power off"), (node["last_error"], node["inspection_started_at"],
                                                     node["power_state"]))  # fmt: skip
        self.assertIsNotNone(node["inspection_finished_at"])
        self.assertEqual("x86_64", node["properties"]["cpu_arch"])
        self.assertEqual(bench.rack.machines[0]["memory_mb"], node["properties"]["memory_mb"])
        self.assertEqual({"serial": MACHINE}, node["extra"])
        ports = bench.user.get("/v1/ports/detail")["ports"]
        self.assertEqual(
            {"52:54:00:aa:00:01": True, "52:54:00:aa:00:02": False},
            {port["address"]: port["pxe_enabled"] for port in ports},
        )
        found = bench.user.get(f"/v1/nodes/{self.uuid}/inventory")
        self.assertEqual("Ingot", found["inventory"]["system_vendor"]["manufacturer"])
        self.assertNotIn("logs", found["plugin_data"])
        self.assertEqual([("inspect_hardware", "done"), ("apply_inventory", "done")], ran(bench.step_runs(self.uuid)))
        bench.eventually(lambda: bench.rack.control.machine(MACHINE)["power"] == "off", "the machine is off")

    def test_an_agent_that_finds_something_wrong_fails_it_and_it_can_be_repeated(self) -> None:
        bench = self.manageable()
        bench.rack.control.order_fault(MACHINE, "inspection_error", times=1)
        node = self.inspect(bench, "inspect failed")
        self.assertIn("no disk could be read", node["last_error"])
        logs = bench.user.get(f"/ingot/v1/nodes/{self.uuid}/logs")["logs"]
        self.assertEqual(["inspect"], [one["flow"] for one in logs])
        bench.user.provision(self.uuid, "inspect")
        bench.reach(self.uuid, "manageable")

    def test_a_machine_without_ports_is_booted_by_the_operators_own_network(self) -> None:
        bench = self.manageable(options={"inspector": {"require_managed_boot": "False", "add_ports": "all"}})
        for port in bench.user.get("/v1/ports")["ports"]:
            bench.user.delete(f"/v1/ports/{port['uuid']}")
        bench.user.provision(self.uuid, "inspect")
        bench.reach(self.uuid, "inspect wait")
        bench.eventually(
            lambda: any("/boot/ipxe/" in line for line in bench.rack.control.log(MACHINE)), "it boots from the network"
        )
        card = {"name": "eth0", "mac_address": "52:54:00:aa:00:01", "ipv4_address": "192.0.2.10"}
        found = {"interfaces": [card], "bmc_address": bench.rack.machines[0]["bmc_address"], "cpu": {"count": 4}}
        bench.user.post("/v1/continue_inspection", {"inventory": found})
        node = bench.reach(self.uuid, "manageable")
        self.assertEqual((4, "power off"), (node["properties"]["cpus"], node["power_state"]))
        self.assertEqual(["52:54:00:aa:00:01"], [port["address"] for port in bench.user.get("/v1/ports")["ports"]])

    def test_a_wait_can_be_aborted(self) -> None:
        bench = self.manageable()
        bench.rack.control.order_fault(MACHINE, "boot_hang")
        bench.user.provision(self.uuid, "inspect")
        bench.eventually(lambda: bench.user.node(self.uuid)["provision_state"] == "inspect wait", "it waits")
        bench.user.provision(self.uuid, "abort")
        node = bench.reach(self.uuid, "inspect failed")
        self.assertIn("was aborted", node["last_error"])
        bench.eventually(lambda: bench.rack.control.machine(MACHINE)["power"] == "off", "the machine is off")
        bench.rack.control.clear_faults(MACHINE)
        bench.user.provision(self.uuid, "manage")
        bench.reach(self.uuid, "manageable")
        self.inspect(bench)


class TestRescue(testtools.TestCase):
    def deployed(self) -> lab.Lab:
        bench = self.useFixture(lab.Lab())
        self.uuid = bench.enroll()
        bench.make_available(self.uuid)
        bench.set_image(self.uuid)
        bench.user.provision(self.uuid, "active")
        bench.reach(self.uuid, "active")
        bench.eventually(lambda: bench.rack.control.machine(MACHINE)["state"] == "os", "the system runs")
        return bench

    def test_the_user_gets_in_and_back(self) -> None:
        bench = self.deployed()
        bench.user.provision(self.uuid, "rescue", rescue_password=PASSWORD)
        node = bench.reach(self.uuid, "rescue")
        self.assertEqual((None, None, "power on"), (node["last_error"], node["target_provision_state"],
                                                    node["power_state"]))  # fmt: skip
        bench.eventually(lambda: bench.rack.control.machine(MACHINE)["state"] == "rescue", "the agent has left")
        stored = bench.rack.control.machine(MACHINE)["rescue_password"]
        self.assertTrue(stored["hashed"])
        self.assertTrue(sha512_crypt.verify(PASSWORD, stored["value"]))
        self.assertEqual([("rescue", "done")], ran(bench.step_runs(self.uuid)))
        said = bench.logs(10**6) + str(bench.user.node(self.uuid)) + str(bench.user.get("/v1/nodes/detail"))
        for secret in (PASSWORD, stored["value"]):
            self.assertNotIn(secret, said)
        bench.user.provision(self.uuid, "unrescue")
        bench.reach(self.uuid, "active")
        bench.eventually(lambda: bench.rack.control.machine(MACHINE)["state"] == "os", "its own system runs")
        self.assertTrue(bench.holds_image(0))

    def test_one_that_fails_can_be_repeated_and_left(self) -> None:
        bench = self.deployed()
        bench.rack.control.order_fault(MACHINE, "agent_lacks_extension", "rescue", times=1)
        bench.user.provision(self.uuid, "rescue", rescue_password=PASSWORD)
        self.assertIn("rescue", bench.reach(self.uuid, "rescue failed")["last_error"])
        bench.user.provision(self.uuid, "rescue", rescue_password=PASSWORD)
        bench.reach(self.uuid, "rescue")
        bench.user.provision(self.uuid, "deleted")
        bench.reach(self.uuid, "available")

    def test_a_wait_can_be_aborted_and_the_instance_started_again(self) -> None:
        bench = self.deployed()
        bench.rack.control.order_fault(MACHINE, "boot_hang")
        bench.user.provision(self.uuid, "rescue", rescue_password=PASSWORD)
        bench.eventually(lambda: bench.user.node(self.uuid)["provision_state"] == "rescue wait", "it waits")
        bench.user.provision(self.uuid, "abort")
        bench.reach(self.uuid, "rescue failed")
        bench.rack.control.clear_faults(MACHINE)
        bench.user.provision(self.uuid, "unrescue")
        bench.reach(self.uuid, "active")
        bench.eventually(lambda: bench.rack.control.machine(MACHINE)["state"] == "os", "its own system runs")

    def test_a_machine_that_runs_is_adopted_as_it_is(self) -> None:
        bench = self.deployed()
        boots = bench.rack.control.machine(MACHINE)["boots"]
        for answer in (bench.user.request("PUT", f"/v1/nodes/{self.uuid}/maintenance", {"reason": "moves"}),
                       bench.user.request("DELETE", f"/v1/nodes/{self.uuid}")):  # fmt: skip
            self.assertLess(answer.status_code, 300, answer.text)
        self.uuid = bench.enroll()
        bench.user.provision(self.uuid, "manage")
        bench.reach(self.uuid, "manageable")
        bench.user.provision(self.uuid, "adopt")
        node = bench.reach(self.uuid, "active")
        self.assertEqual((None, "power on"), (node["last_error"], node["power_state"]))
        machine = bench.rack.control.machine(MACHINE)
        self.assertEqual((boots, "os"), (machine["boots"], machine["state"]))
        self.assertEqual([("verify_power", "done"), ("adopt", "done")], ran(bench.step_runs(self.uuid)))
