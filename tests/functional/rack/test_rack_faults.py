"""Every fault that can be ordered, as the service would meet it."""

import time
from typing import Any, ClassVar

import requests

from ingot.rack.process import RackError
from tests import disk_images
from tests.functional.rack.base import RackTest
from tests.functional.rack.stand_in import AgentClient, wait_until


class BmcFaultTest(RackTest):
    def test_bmc_silent_until_cleared(self) -> None:
        self.rack.control.order_fault(self.name, "bmc_silent")
        self.assertEqual(1, self.ipmitool("-R", "1", "-N", "1", "power", "status").returncode)
        self.rack.control.clear_faults(self.name, "bmc_silent")
        self.assertEqual(0, self.ipmitool("power", "status").returncode)

    def test_bmc_wrong_password(self) -> None:
        self.rack.control.order_fault(self.name, "bmc_wrong_password")
        self.assertIn("Unable to establish", self.ipmitool("power", "status").stderr)
        self.rack.control.clear_faults(self.name)
        self.assertEqual(0, self.ipmitool("power", "status").returncode)

    def test_power_stuck_a_number_of_times(self) -> None:
        self.rack.control.order_fault(self.name, "power_stuck", times=1)
        self.assertEqual(0, self.ipmitool("power", "on").returncode)
        self.assertEqual("Chassis Power is off\n", self.ipmitool("power", "status").stdout)
        self.ipmitool("power", "on")
        self.assertEqual("Chassis Power is on\n", self.ipmitool("power", "status").stdout)

    def test_unknown_faults_and_bad_values_are_refused(self) -> None:
        for name, value, text in (
            ("smoke", None, "unknown fault 'smoke'"),
            ("agent_dies_at_step", None, "value must be"),
            ("slow_answer", {"command": "x"}, "seconds"),
            ("bmc_silent", "yes", "takes no value"),
        ):
            self.assertRaisesRegex(RackError, text, self.rack.control.order_fault, self.name, name, value)


class BootFaultTest(RackTest):
    def test_boot_hang(self) -> None:
        self.rack.control.order_fault(self.name, "boot_hang", times=1)
        self.rack.control.power(self.name, "on")
        self.assertEqual("fault boot_hang", self.rack.control.wait_for_state(self.name, "hung")["reason"])
        self.rack.control.power(self.name, "reset")
        self.rack.control.wait_for_state(self.name, "agent")

    def test_a_kernel_that_is_not_there_hangs_visibly(self) -> None:
        del self.service.files["/kernel"]
        self.rack.control.power(self.name, "on")
        reason = self.rack.control.wait_for_state(self.name, "hung")["reason"]
        self.assertIn(f"{self.service.url}/kernel: HTTP 404", reason)

    def test_agent_version_after_reboot(self) -> None:
        agent = self.boot_agent()
        before = agent.ask_steps("clean")["command_result"]["hardware_manager_version"]
        self.rack.control.order_fault(self.name, "agent_version_after_reboot", "14.1.0")
        self.restart_with_version("14.1.0")
        agent = self.service.agent()
        self.addCleanup(agent.close)
        for kind in ("clean", "deploy", "service"):
            step = {"step": "clean_uefi_nvram", "interface": "deploy"}
            params = {"step": step, "node": {}, "ports": [], f"{kind}_version": before}
            answer = agent.run(f"{kind}.execute_{kind}_step", params)
            self.assertEqual("CLEAN_VERSION_MISMATCH", answer["command_status"])
        self.rack.control.clear_faults(self.name)
        self.restart_with_version("13.0.0")

    def restart_with_version(self, version: str) -> None:
        self.rack.control.power(self.name, "reset")
        wait_until(lambda: self.service.heartbeats[-1]["agent_version"] == version, 60, f"agent {version}")


class AgentFaultTest(RackTest):
    def silence(self) -> int:
        """Wait for a second without a heartbeat, of which each second has three; return how many there were."""
        before = -1

        def no_more() -> bool:
            nonlocal before
            count, before = before, len(self.service.heartbeats)
            time.sleep(1)
            return count == before

        wait_until(no_more, 60, "silence")
        return before

    def test_agent_dies_at_step(self) -> None:
        agent = self.boot_agent()
        self.rack.control.order_fault(self.name, "agent_dies_at_step", "erase_devices_metadata", times=1)
        self.assertRaises(requests.ConnectionError, agent.step, "clean", "erase_devices_metadata")
        machine = self.rack.control.wait_for_state(self.name, "hung")
        self.assertEqual("on", machine["power"])
        self.assertIn("agent_dies_at_step", machine["reason"])
        self.assertRaises(requests.ConnectionError, agent.get, "/")
        self.rack.control.power(self.name, "reset")
        self.rack.control.wait_for_state(self.name, "agent")

    def test_agent_hangs_at_step_but_its_heart_beats(self) -> None:
        agent = self.boot_agent()
        self.rack.control.order_fault(self.name, "agent_hangs_at_step", "erase_devices")
        agent.post(
            "clean.execute_clean_step",
            {"step": {"step": "erase_devices"}, "node": {}, "ports": []},
            wait=False,
        )
        count = len(self.service.heartbeats)
        self.service.wait_for_heartbeat(count + 1)
        self.assertEqual("RUNNING", agent.get("/v1/commands/").json()["commands"][-1]["command_status"])
        self.assertEqual(409, agent.post("standby.sync").status_code)

    def test_image_faults(self) -> None:
        agent = self.boot_agent()
        info = self.service.serve_image(disk_images.mbr_image())
        for fault, kind, text in (
            ("image_404", "ImageDownloadError", "HTTP 404"),
            ("checksum_wrong", "ImageChecksumError", "should be"),
            ("disk_too_small", "ImageWriteError", "the disk has 1048576"),
        ):
            self.rack.control.order_fault(self.name, fault, times=1)
            answer = agent.run("standby.prepare_image", {"image_info": info})
            self.assertEqual(("FAILED", kind), (answer["command_status"], answer["command_error"]["type"]))
            self.assertIn(text, answer["command_error"]["details"])
        answer = agent.run("standby.prepare_image", {"image_info": info})
        self.assertEqual("SUCCEEDED", answer["command_status"], answer)

    def test_slow_answer(self) -> None:
        agent = self.boot_agent()
        value = {"command": "get_clean_steps", "seconds": 0.5}
        self.rack.control.order_fault(self.name, "slow_answer", value, times=1)
        started = time.monotonic()
        agent.ask_steps("clean")
        self.assertGreater(time.monotonic() - started, 0.5)

    def test_heartbeat_lost(self) -> None:
        self.boot_agent()
        self.rack.control.order_fault(self.name, "heartbeat_lost")
        count = self.silence()
        self.rack.control.clear_faults(self.name)
        self.service.wait_for_heartbeat(count)

    def test_the_power_cut_takes_the_agent_with_it(self) -> None:
        agent = self.boot_agent()
        self.rack.control.power(self.name, "off")
        self.assertRaises(requests.ConnectionError, agent.get, "/")
        self.silence()

    def test_a_slow_answer_does_not_hold_up_the_command(self) -> None:
        agent = self.boot_agent()
        value = {"command": "standby.power_off", "seconds": 5}
        self.rack.control.order_fault(self.name, "slow_answer", value)
        self.assertRaises(requests.ConnectionError, agent.post, "standby.power_off", wait=False)
        wait_until(lambda: self.rack.control.machine(self.name)["state"] == "off", 60, "power off")


class VersionAndTokenFaultTest(RackTest):
    settings: ClassVar[dict[str, Any]] = {
        "steps": [{"step": "flash", "interface": "firmware", "priority": 90, "reboot_requested": True}]
    }

    def run_step(self, agent: AgentClient, kind: str, versions: dict[str, str], **args: Any) -> dict[str, Any]:
        step = {"step": "flash", "interface": "firmware", "args": args}
        params = {"step": step, "node": {}, "ports": [], f"{kind}_version": versions}
        return agent.run(f"{kind}.execute_{kind}_step", params)

    def test_an_agent_from_before_an_extension(self) -> None:
        agent = self.boot_agent()
        for extension in ("deploy", "service"):
            self.rack.control.order_fault(self.name, "agent_lacks_extension", extension)
            answer = agent.post(f"{extension}.get_{extension}_steps")
            self.assertEqual(404, answer.status_code)
            self.assertEqual(f"Not found: Extension with id {extension} not found.", answer.json()["faultstring"])
            self.assertEqual("SUCCEEDED", agent.ask_steps("clean")["command_status"])

    def test_a_hardware_manager_that_changes_at_the_end_of_a_step(self) -> None:
        agent = self.boot_agent()
        for number, kind in enumerate(("clean", "deploy", "service")):
            value = {"step": "flash", "hardware_manager": f"2.{number}"}
            self.rack.control.order_fault(self.name, "new_version_after_step", value, times=1)
            planned = agent.ask_steps(kind)["command_result"]["hardware_manager_version"]
            self.assertEqual("SUCCEEDED", self.run_step(agent, kind, planned)["command_status"])
            answer = self.run_step(agent, kind, planned)
            self.assertEqual("CLEAN_VERSION_MISMATCH", answer["command_status"])
            self.assertIn(f"2.{number}", answer["command_error"]["details"])

    def test_an_agent_that_is_another_one_after_the_reboot(self) -> None:
        agent = self.boot_agent()
        value = {"step": "flash", "agent": "14.2.0"}
        self.rack.control.order_fault(self.name, "new_version_after_step", value, times=1)
        planned = agent.ask_steps("clean")["command_result"]["hardware_manager_version"]
        self.run_step(agent, "clean", planned)
        self.assertEqual("13.0.0", self.service.heartbeats[-1]["agent_version"])
        self.rack.control.power(self.name, "reset")
        wait_until(lambda: self.service.heartbeats[-1]["agent_version"] == "14.2.0", 60, "the new agent")

    def test_wrong_tokens(self) -> None:
        agent = self.boot_agent()
        self.rack.control.order_fault(self.name, "command_token_wrong", times=1)
        self.assertEqual(401, agent.post("standby.sync").status_code)
        self.assertEqual(200, agent.post("standby.sync").status_code)
        self.rack.control.order_fault(self.name, "heartbeat_token_wrong")
        wait_until(lambda: self.service.heartbeats[-1]["agent_token"] != self.service.token, 60, "the wrong token")

    def test_a_malformed_offer(self) -> None:
        agent = self.boot_agent()
        self.rack.control.order_fault(self.name, "malformed_steps", times=1)
        offered = agent.ask_steps("clean")["command_result"]["clean_steps"]
        self.assertEqual("high", offered["GenericHardwareManager"][0]["priority"])

    def test_undescribed_arguments(self) -> None:
        answer = self.run_step(self.boot_agent(), "service", {}, colour="red")
        self.assertEqual("ServicingError", answer["command_error"]["type"])
        self.assertIn("does not take ['colour']", answer["command_error"]["details"])
