"""What goes wrong with machines: the node ends in the right state, the error names step and cause, and the same node
deploys once the fault is gone."""

from typing import Any

import testtools

from tests.functional.deployment import lab

MACHINE = "machine-0"

CALLBACK = {"conductor": {"deploy_callback_timeout": 10}}
"""Options with which a test need not wait half an hour for an agent. Only where one is waited for in vain: elsewhere a
machine that is busy with other things would fail the test."""

DEAD_AGENT = {"agent": {"command_timeout": 5, "max_command_attempts": 1}}
"""Options with which little time is spent on an agent that is gone."""


class TestFaults(testtools.TestCase):
    """One lab for each test: a fault of one must not help or hurt another."""

    def available(self, **settings: Any) -> tuple[lab.Lab, str]:
        bench = self.useFixture(lab.Lab(**settings))
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        return bench, uuid

    def fails(self, bench: lab.Lab, uuid: str, *expected: str) -> dict[str, Any]:
        """Deploy into a fault; check that the failure says all of ``expected``."""
        bench.user.provision(uuid, "active")
        node = bench.reach(uuid, "deploy failed")
        for words in expected:
            self.assertIn(words, node["last_error"])
        self.assertIsNone(node["reservation"])
        self.assertFalse(node["maintenance"])
        return node

    def recovers(self, bench: lab.Lab, uuid: str) -> None:
        bench.rack.control.clear_faults(MACHINE)
        bench.user.provision(uuid, "active")
        bench.reach(uuid, "active")
        self.assertTrue(bench.holds_image(0))

    def test_image_server_says_404(self) -> None:
        bench, uuid = self.available()
        bench.rack.control.order_fault(MACHINE, "image_404")
        node = self.fails(bench, uuid, "deploy.write_image", "404")
        self.assertEqual("write_image", node["deploy_step"]["step"])
        self.recovers(bench, uuid)

    def test_checksum_is_wrong(self) -> None:
        bench, uuid = self.available(options={"conductor": {"sync_power_state_interval": 0}})
        bench.rack.control.order_fault(MACHINE, "checksum_wrong")
        self.fails(bench, uuid, "deploy.write_image", "sha256")
        bench.rack.control.wait_for(MACHINE, lambda machine: machine["power"] == "off", lab.PATIENCE)
        bench.eventually(lambda: bench.user.node(uuid)["target_power_state"] is None, "the power change ends")
        node = bench.user.node(uuid)
        self.assertEqual("power off", node["power_state"])
        self.assertIn("sha256", node["last_error"])
        self.recovers(bench, uuid)

    def test_disk_is_too_small(self) -> None:
        bench, uuid = self.available()
        bench.rack.control.order_fault(MACHINE, "disk_too_small")
        self.fails(bench, uuid, "deploy.write_image")
        self.recovers(bench, uuid)

    def test_agent_dies_in_a_step(self) -> None:
        bench, uuid = self.available(options=DEAD_AGENT)
        bench.rack.control.order_fault(MACHINE, "agent_dies_at_step", "write_image")
        self.fails(bench, uuid, "deploy.write_image", "did not answer")
        self.recovers(bench, uuid)

    def test_an_agent_that_is_restarted_in_a_step_is_missed_soon(self) -> None:
        bench, uuid = self.available()
        bench.rack.control.order_fault(MACHINE, "agent_restarts_at_step", "write_image", times=1)
        self.fails(bench, uuid, "deploy.write_image", "its agent is gone")
        bench.rack.control.wait_for(MACHINE, lambda machine: machine["power"] == "off", lab.PATIENCE)
        self.recovers(bench, uuid)

    def test_a_machine_that_is_reset_in_a_step_is_missed_soon(self) -> None:
        bench, uuid = self.available()
        bench.rack.control.order_fault(MACHINE, "agent_hangs_at_step", "write_image")
        bench.user.provision(uuid, "active")
        bench.eventually(lambda: bench.user.node(uuid)["deploy_step"].get("step") == "write_image", "it hangs")
        bench.rack.control.power(MACHINE, "reset")
        node = bench.reach(uuid, "deploy failed")
        self.assertIn("its agent is gone", node["last_error"])
        self.recovers(bench, uuid)

    def test_agent_hangs_in_a_step(self) -> None:
        bench, uuid = self.available(options=CALLBACK)
        bench.rack.control.order_fault(MACHINE, "agent_hangs_at_step", "write_image")
        bench.user.provision(uuid, "active")
        bench.eventually(lambda: bench.user.node(uuid)["deploy_step"].get("step") == "write_image", "it hangs")
        bench.rack.control.order_fault(MACHINE, "heartbeat_lost")
        node = bench.reach(uuid, "deploy failed")
        self.assertIn("deploy.write_image", node["last_error"])
        self.assertIn("timed out", node["last_error"])
        self.recovers(bench, uuid)

    def test_heartbeats_are_lost(self) -> None:
        bench, uuid = self.available(options=CALLBACK)
        bench.rack.control.order_fault(MACHINE, "heartbeat_lost")
        self.fails(bench, uuid, "deploy.deploy", "timed out")
        self.recovers(bench, uuid)

    def test_bmc_is_unresponsive(self) -> None:
        bench, uuid = self.available(options={"ipmi": {"command_retry_timeout": 3}})
        bench.rack.control.order_fault(MACHINE, "bmc_silent")
        bench.user.provision(uuid, "active")
        bench.eventually(lambda: "tried again" in (bench.user.node(uuid)["last_error"] or ""), "it says what it does")
        self.assertEqual("deploying", bench.user.node(uuid)["provision_state"])
        node = bench.reach(uuid, "deploy failed")
        for words in ("deploy.prepare", "127.0.0.1", "no answer within"):
            self.assertIn(words, node["last_error"])
        self.recovers(bench, uuid)

    def test_the_node_shows_an_unresponsive_bmc_and_its_recovery_and_can_be_removed_without_it(self) -> None:
        watchful = {"sync_power_state_interval": 1, "power_state_sync_max_retries": 0}
        bench = self.useFixture(lab.Lab(options={"conductor": watchful, "ipmi": {"command_retry_timeout": 5}}))
        uuid = bench.enroll()
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")

        def tells(**expected: Any) -> bool:
            node = bench.user.node(uuid)
            return {name: node[name] for name in expected} == expected

        silent = {"fault": "power failure", "maintenance": True, "health": None}
        for order, fields in (
            (None, {"fault": None, "health": "OK"}),
            ("drive_failed", {"fault": None, "health": "Warning"}),
            ("bmc_silent", silent),
            (None, {"fault": None, "maintenance": False, "health": "OK"}),
            ("bmc_silent", silent),
        ):
            bench.rack.control.clear_faults(MACHINE)
            if order:
                bench.rack.control.order_fault(MACHINE, order)
            bench.eventually(lambda fields=fields: tells(**fields), f"the node tells {fields}")  # type: ignore[misc]
        history = [entry["event"] for entry in bench.user.get(f"/v1/nodes/{uuid}/history?detail=True")["history"]]
        for words in ("could not be read", "answers again", "Warning: drive fault"):
            self.assertTrue([event for event in history if words in event], history)
        bench.user.delete(f"/v1/nodes/{uuid}")
        self.assertEqual(404, bench.user.request("GET", f"/v1/nodes/{uuid}").status_code)

    def test_bmc_has_another_password(self) -> None:
        bench, uuid = self.available()
        bench.rack.control.order_fault(MACHINE, "bmc_wrong_password")
        node = self.fails(bench, uuid, "deploy.prepare", "password")
        self.assertNotIn("'password'", node["last_error"])
        self.recovers(bench, uuid)

    def test_power_is_stuck(self) -> None:
        bench, uuid = self.available(options={"conductor": {"power_state_change_timeout": 10}})
        bench.rack.control.order_fault(MACHINE, "power_stuck")
        self.fails(bench, uuid, "deploy.deploy", "power")
        self.recovers(bench, uuid)

    def test_machine_hangs_before_it_boots(self) -> None:
        bench, uuid = self.available(options=CALLBACK)
        bench.rack.control.order_fault(MACHINE, "boot_hang")
        self.fails(bench, uuid, "deploy.deploy", "timed out")
        self.recovers(bench, uuid)

    def test_another_agent_answers_after_a_reboot(self) -> None:
        step = {"step": "flash", "interface": "deploy", "priority": 90, "kinds": ["deploy"], "reboot_requested": True}
        bench, uuid = self.available(rack={"steps": [step]})
        # The fault counts boots: the first is the deployment's own, so it is ordered when that one is over.
        bench.rack.control.order_fault(MACHINE, "agent_hangs_at_step", "flash")
        bench.user.provision(uuid, "active")
        bench.eventually(lambda: bench.user.node(uuid)["deploy_step"].get("step") == "flash", "the step runs")
        bench.rack.control.order_fault(MACHINE, "agent_version_after_reboot", "13.1.0")
        bench.rack.control.clear_faults(MACHINE, "agent_hangs_at_step")
        node = bench.reach(uuid, "deploy failed")
        self.assertIn("deploy.flash", node["last_error"])
        self.assertIn("13.1.0", node["last_error"])

    def test_wrong_password_in_driver_info_is_found_by_manage(self) -> None:
        bench = self.useFixture(lab.Lab())
        uuid = bench.enroll()
        bench.user.patch(f"/v1/nodes/{uuid}", {"/driver_info/ipmi_password": "guess"})
        bench.user.provision(uuid, "manage")
        node = bench.eventually(
            lambda: (found := bench.user.node(uuid))["last_error"] and found, "verification has failed"
        )
        self.assertEqual("enroll", node["provision_state"])
        self.assertIn("password", node["last_error"])
        self.assertNotIn("guess", node["last_error"])

    def test_a_failed_cleaning_needs_an_operator(self) -> None:
        bench = self.useFixture(lab.Lab(options=DEAD_AGENT))
        uuid = bench.enroll()
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")
        bench.rack.control.order_fault(MACHINE, "agent_dies_at_step", "erase_devices_metadata")
        bench.user.provision(uuid, "provide")
        node = bench.reach(uuid, "clean failed")
        self.assertEqual((True, "clean failure"), (node["maintenance"], node["fault"]))
        self.assertIn("erase_devices_metadata", node["last_error"])
        self.assertEqual("power on", node["power_state"])
        bench.rack.control.clear_faults(MACHINE)
        bench.user.delete(f"/v1/nodes/{uuid}/maintenance")
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
