"""Machines whose BMC is not used: the agent restarts them, operators do the rest, and conductors may die."""

import signal
import time
from typing import Any

import testtools

from tests.functional.deployment import lab

MACHINE = "machine-0"

OPTIONS = {
    "DEFAULT": {
        "enabled_hardware_types": "manual-management,ipmi",
        "enabled_power_interfaces": "ipmitool,agent",
        "enabled_management_interfaces": "ipmitool,noop",
    },
    "deploy": {"fast_track": True},
    **lab.MORTAL,
}


class ManualManagement(testtools.TestCase):
    def bench(self, rack: dict[str, Any] | None = None) -> tuple[lab.Lab, str]:
        """Return a lab and a node whose machine is off, and which nothing can switch on."""
        bench = self.useFixture(lab.Lab(options=OPTIONS, rack=rack))
        uuid = bench.enroll(driver="manual-management", driver_info={})
        bench.user.provision(uuid, "manage")
        node = bench.reach(uuid, "manageable")
        self.assertEqual(("agent", "noop"), (node["power_interface"], node["management_interface"]))
        return bench, uuid

    def machine(self, bench: lab.Lab) -> dict[str, Any]:
        return bench.rack.control.machine(MACHINE)

    def heard(self, bench: lab.Lab, uuid: str) -> str | None:
        found: str | None = bench.user.node(uuid)["driver_internal_info"].get("agent_last_heartbeat")
        return found

    def inspect(self, bench: lab.Lab, uuid: str) -> None:
        """Inspect the node, whose machine an operator restarts by hand; its agent goes on running afterwards."""
        bench.user.provision(uuid, "inspect")
        bench.reach(uuid, "inspect wait")
        bench.rack.control.power(MACHINE, "on")
        bench.reach(uuid, "manageable")
        bench.eventually(lambda: self.heard(bench, uuid), "the agent calls after the inspection")

    def test_from_enrolment_to_active_and_back(self) -> None:
        bench, uuid = self.bench()
        self.inspect(bench, uuid)
        self.assertEqual(1, self.machine(bench)["boots"])
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
        self.assertEqual(1, self.machine(bench)["boots"])  # cleaned by the agent that ran
        bench.set_image(uuid)
        bench.user.provision(uuid, "active")
        node = bench.reach(uuid, "active")
        self.assertEqual("power on", node["power_state"])
        bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertEqual(2, self.machine(bench)["boots"])
        self.assertTrue(bench.holds_image(0))

        bench.user.provision(uuid, "deleted")
        bench.reach(uuid, "clean wait")
        self.assertEqual("os", self.machine(bench)["state"])  # nothing can stop it but an operator
        why = bench.user.get(f"/ingot/v1/nodes/{uuid}/explanation")
        self.assertIn("by hand", str(why))
        bench.rack.control.set_boot_device(MACHINE, "pxe")
        bench.rack.control.power(MACHINE, "reset")
        bench.reach(uuid, "available")

    def test_what_only_a_bmc_can_do_is_refused(self) -> None:
        bench, uuid = self.bench()
        for target in ("power on", "power off", "soft power off"):
            answer = bench.user.request("PUT", f"/v1/nodes/{uuid}/states/power", {"target": target})
            self.assertEqual(400, answer.status_code, answer.text)
            self.assertIn("rebooting", answer.text)
        bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "rebooting"})

        def failed() -> str | None:
            error: str | None = bench.user.node(uuid)["last_error"]
            return error

        self.assertIn("no agent runs", bench.eventually(failed, "the reboot has failed"))

    def test_a_reboot_between_steps_and_one_that_a_user_asks_for(self) -> None:
        step = {"step": "flash", "interface": "deploy", "kinds": ["clean"], "reboot_requested": True}
        bench, uuid = self.bench({"steps": [step]})
        self.inspect(bench, uuid)
        bench.user.provision(uuid, "clean", clean_steps=[{"interface": "deploy", "step": "flash"}])
        bench.reach(uuid, "manageable")
        self.assertEqual(("agent", 2), (self.machine(bench)["state"], self.machine(bench)["boots"]))
        bench.user.put(f"/v1/nodes/{uuid}/states/power", {"target": "soft rebooting"})
        bench.eventually(lambda: self.machine(bench)["boots"] == 3, "the machine restarts")
        bench.eventually(lambda: bench.user.node(uuid)["target_power_state"] is None, "the change has ended")
        self.assertIsNone(bench.user.node(uuid)["last_error"])

    def test_a_failed_deployment_leaves_the_agent_for_the_next(self) -> None:
        bench, uuid = self.bench()
        self.inspect(bench, uuid)
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
        bench.set_image(uuid)
        bench.rack.control.order_fault(MACHINE, "checksum_wrong", times=1)
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "deploy failed")
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "active")
        bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertEqual(2, self.machine(bench)["boots"])

    def test_a_conductor_is_killed_again_and_again(self) -> None:
        """Machines take longer to start than others to notice that a conductor is dead, as real ones do."""
        bench, uuid = self.bench({"boot_delay": 8})
        self.inspect(bench, uuid)
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
        bench.set_image(uuid)
        bench.user.provision(uuid, "active")
        for pause in (0.3, 0.5, 0.7, 0.2, 0.4, 0.6):
            time.sleep(pause)
            bench.process.stop(signal.SIGKILL)
            bench.process.start()
            bench.wait_until_served()
        bench.reach(uuid, "active")
        bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertEqual(2, self.machine(bench)["boots"])
        self.assertTrue(bench.holds_image(0))
