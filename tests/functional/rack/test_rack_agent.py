"""The simulated agent's protocol: lookup, heartbeat, TLS and the commands API."""

import base64
import io
import tarfile
from typing import Any, ClassVar

import requests

from tests.functional.rack.base import RackTest
from tests.functional.rack.stand_in import TOKEN, AgentClient, wait_until

EXTRA_STEPS = [
    {"step": "burn_in", "priority": 95, "duration": 0.3, "abortable": True, "kinds": ["clean"]},
    {"step": "flash", "interface": "firmware", "priority": 90, "reboot_requested": True, "kinds": ["deploy"]},
    {"step": "break", "kinds": ["clean"], "fail": "it broke"},
]


class LookupTest(RackTest):
    def test_lookup_is_repeated_until_the_service_knows_the_machine(self) -> None:
        self.service.lookup_statuses = [404, 409, 500]
        self.boot_agent()
        lookups = [line for line in self.service.requests if "/v1/lookup" in line]
        self.assertEqual(4, len(lookups))
        self.assertIn("addresses=52%3A54%3A00%3A00%3A00%3A00", lookups[0])

    def test_the_boot_script_was_read_and_the_files_were_fetched(self) -> None:
        self.boot_agent()
        order = ["GET /boot/ipxe/52-54-00-00-00-00", "HEAD /kernel", "HEAD /initrd", "GET /"]
        self.assertEqual(order, self.service.requests[:4])
        arguments = self.rack.control.machine(self.name)["agent"]["arguments"]
        self.assertEqual("52:54:00:00:00:00", arguments["BOOTIF"])

    def test_an_agent_whose_token_was_given_away_stops(self) -> None:
        self.service.token = "******"
        self.rack.control.power(self.name, "on")
        self.assertIn("agent token", self.rack.control.wait_for_state(self.name, "hung")["reason"])

    def test_without_the_service_url_there_is_no_agent(self) -> None:
        self.service.scripts[None] = f"#!ipxe\nkernel {self.service.url}/kernel\nboot\n"
        self.rack.control.power(self.name, "on")
        self.assertIn("ipa-api-url", self.rack.control.wait_for_state(self.name, "hung")["reason"])

    def test_heartbeat(self) -> None:
        heartbeat = self.boot_agent() and self.service.heartbeats[0]
        self.assertEqual("node-52:54:00:00:00:00", heartbeat["node"])
        self.assertEqual((TOKEN, "13.0.0"), (heartbeat["agent_token"], heartbeat["agent_version"]))
        self.assertTrue(heartbeat["callback_url"].startswith("https://127.0.0.1:"))
        self.assertIn("BEGIN CERTIFICATE", heartbeat["agent_verify_ca"])

    def test_each_agent_has_its_own_certificate(self) -> None:
        first = self.boot_agent()
        self.rack.control.power(self.rack.machines[1]["name"], "on")
        wait_until(lambda: len({h["callback_url"] for h in self.service.heartbeats}) == 2, 10, "second agent")
        other = next(h for h in self.service.heartbeats if h["callback_url"] != first.url)
        mixed = AgentClient({**other, "callback_url": first.url})
        self.addCleanup(mixed.close)
        self.assertRaises(requests.exceptions.SSLError, mixed.get, "/")

    def test_a_service_without_auto_tls_gets_a_plain_agent(self) -> None:
        self.service.api_version = "1.67"
        agent = self.boot_agent()
        self.assertTrue(agent.url.startswith("http://"))
        self.assertNotIn("agent_verify_ca", self.service.heartbeats[0])


class CommandsTest(RackTest):
    settings: ClassVar[dict[str, Any]] = {"steps": EXTRA_STEPS}

    def test_commands_need_the_token_and_status_does_not(self) -> None:
        agent = self.boot_agent()
        stranger = AgentClient(self.service.heartbeats[0], token="wrong")
        self.addCleanup(stranger.close)
        self.assertEqual("13.0.0", stranger.get("/v1/status").json()["version"])
        self.assertEqual(200, stranger.get("/").status_code)
        for answer in (stranger.get("/v1/commands/"), stranger.post("standby.sync")):
            self.assertEqual(401, answer.status_code)
            self.assertEqual("401 Unauthorized: Token invalid.", answer.json()["faultstring"])
        self.assertEqual({"commands": []}, agent.get("/v1/commands/").json())

    def test_a_command_can_be_asked_for_and_listed(self) -> None:
        agent = self.boot_agent()
        done = agent.run("standby.sync")
        self.assertEqual(done, agent.get(f"/v1/commands/{done['id']}").json())
        self.assertEqual([done], agent.get("/v1/commands/").json()["commands"])
        self.assertEqual("sync", done["command_name"])
        self.assertEqual(404, agent.get("/v1/commands/unknown").status_code)

    def test_a_path_without_its_slash_leads_to_the_one_with_it(self) -> None:
        agent = self.boot_agent()
        answer = agent.get("/v1/commands")
        self.assertEqual((200, [308]), (answer.status_code, [one.status_code for one in answer.history]))

    def test_unknown_commands_and_bad_bodies(self) -> None:
        agent = self.boot_agent()
        unknown = agent.post("foo.bar")
        self.assertEqual(404, unknown.status_code)
        self.assertEqual("Not found: Extension with id foo not found.", unknown.json()["faultstring"])
        self.assertEqual(400, agent.post("standby.bar").status_code)
        for body in ([], {"name": 1, "params": {}}, {"name": "standby.sync", "params": []}):
            self.assertEqual(400, agent.send(body).status_code, body)

    def test_one_command_at_a_time_and_a_heartbeat_at_its_end(self) -> None:
        agent = self.boot_agent()
        step = {"step": {"step": "burn_in", "interface": "deploy"}, "node": {}, "ports": []}
        running = agent.post("clean.execute_clean_step", step, wait=False).json()
        self.assertEqual("RUNNING", running["command_status"])
        for other in ("standby.power_off", "standby.sync"):
            busy = agent.post(other, wait=False)
            self.assertEqual(409, busy.status_code)
            self.assertEqual("Agent is busy: executing command execute_clean_step", busy.json()["faultstring"])
        wait_until(
            lambda: agent.get("/v1/commands/").json()["commands"][0]["command_status"] == "SUCCEEDED",
            5,
            "end of the step",
        )

    def test_steps_are_offered_with_their_managers(self) -> None:
        agent = self.boot_agent()
        clean = agent.ask_steps("clean")["command_result"]
        deploy = agent.ask_steps("deploy")["command_result"]["deploy_steps"]
        by_name = {step["step"]: step for step in clean["clean_steps"]["GenericHardwareManager"]}
        self.assertEqual(99, by_name["erase_devices_metadata"]["priority"])
        self.assertEqual("raid", by_name["create_configuration"]["interface"])
        extra = clean["clean_steps"]["RackHardwareManager"]
        self.assertEqual([("burn_in", 95), ("break", 0)], [(s["step"], s["priority"]) for s in extra])
        self.assertIn("write_image", [step["step"] for step in deploy["GenericHardwareManager"]])
        self.assertTrue(deploy["RackHardwareManager"][0]["reboot_requested"])
        self.assertEqual({"generic_hardware_manager", "rack_hardware_manager"}, set(clean["hardware_manager_version"]))

    def test_failures_say_why(self) -> None:
        agent = self.boot_agent()
        failures = {
            "it broke": agent.step("clean", "break"),
            "no hardware manager has the clean step deploy.nope": agent.step("clean", "nope"),
            "apply_configuration: .*raid_config": agent.step("deploy", "apply_configuration", "raid"),
            "write_image: .*unknown": agent.step("deploy", "write_image", image_info={}, unknown=1),
            "sync.*unknown": agent.run("standby.sync", {"unknown": 1}),
        }
        for reason, failed in failures.items():
            self.assertEqual("FAILED", failed["command_status"])
            self.assertRegex(failed["command_error"]["details"], reason)
        kinds = [failed["command_error"]["type"] for failed in failures.values()]
        self.assertEqual(
            [
                "CommandExecutionError",
                "HardwareManagerMethodNotFound",
                "DeploymentError",
                "DeploymentError",
                "CommandExecutionError",
            ],
            kinds,
        )

    def test_logs_are_a_tar_gz_without_the_token(self) -> None:
        agent = self.boot_agent()
        logs = base64.b64decode(agent.run("log.collect_system_logs")["command_result"]["system_logs"])
        with tarfile.open(fileobj=io.BytesIO(logs)) as archive:
            member = archive.extractfile("journal")
            text = member.read().decode() if member else ""
        self.assertIn("network boot", text)
        self.assertNotIn(TOKEN, text)
        self.assertNotIn(TOKEN, self.rack.log_path.read_text())
