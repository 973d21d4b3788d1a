"""One deployment with everything that steps can be: out of band and in the agent, asked for by templates and by the
request, with a reboot in between, a hook after one and a core step that is switched off.

The plan before, the plan once the agent is known and the timeline after are compared field by field.
"""

import pathlib
import signal
from typing import Any

import fixtures
import testtools

from tests.functional.deployment import lab

PLUGINS = pathlib.Path(__file__).parent / "plugins"
MACHINE = "machine-0"
FIELDS = ("interface", "step", "priority", "args", "origin")

# What the rack's agents offer beside the usual: a step that runs by default, one that wants a reboot when it has ended,
# and one that fails.
OFFERED = [
    {"step": "burn_in", "priority": 70, "kinds": ["deploy", "service"], "abortable": True},
    {
        "step": "flash_nic",
        "interface": "firmware",
        "kinds": ["deploy", "service"],
        "reboot_requested": True,
        "argsinfo": {"url": {"description": "Where the firmware is.", "required": True}},
    },
    {"step": "drop_tools", "kinds": ["service"], "fail": "the screwdriver is gone"},
]

SETTINGS = {"settings": [{"name": "VMX", "value": "on"}]}
FLASH = {"interface": "firmware", "step": "flash_nic", "args": {"url": "http://firmware.example/7"}, "priority": 50}
TEMPLATES: dict[str, dict[str, Any]] = {
    "CUSTOM_BIOS_VMX": {"interface": "bios", "step": "apply_configuration", "args": SETTINGS, "priority": 150},
    "CUSTOM_RAID_MIRROR": {"interface": "raid", "step": "apply_configuration", "args": lab.MIRROR, "priority": 90},
    "CUSTOM_FLAT_NETWORK": {"interface": "deploy", "step": "switch_to_tenant_network", "args": {}, "priority": 0},
}

HOLD = {"interface": "power", "step": "hold"}
IN_AGENT = {"interface": "deploy", "step": "burn_in", "args": {}}
BROKEN = {"interface": "deploy", "step": "drop_tools"}
BURN_IN: tuple[Any, ...] = ("deploy", "burn_in", 70, {}, "agent")
WITHOUT_AGENT = [
    ("deploy", "prepare", 0, {}, "flow"),
    ("bios", "apply_configuration", 150, SETTINGS, "template CUSTOM_BIOS_VMX"),
    ("deploy", "deploy", 100, {}, "driver"),
    ("raid", "apply_configuration", 90, lab.MIRROR, "template CUSTOM_RAID_MIRROR"),
    ("deploy", "write_image", 80, {}, "driver"),
    ("deploy", "prepare_instance_boot", 60, {}, "driver"),
    ("firmware", "flash_nic", 50, FLASH["args"], "request"),
    ("deploy", "tear_down_agent", 40, {}, "driver"),
    ("deploy", "boot_instance", 20, {}, "driver"),
]
"""The plan as long as the agent's own steps are unknown."""

WHOLE = sorted([*WITHOUT_AGENT[1:], BURN_IN], key=lambda step: -step[2])
WHOLE.insert(0, WITHOUT_AGENT[0])


def compared(steps: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(step[field] for field in FIELDS) for step in steps]


class ManyStepsTest(testtools.TestCase):
    """A machine of a hardware type with BIOS settings, ready for its deployment."""

    def prepare(self, *traits: str, **rack: Any) -> None:
        self.useFixture(fixtures.EnvironmentVariable("PYTHONPATH", str(PLUGINS)))
        options = {"DEFAULT": {"enabled_hardware_types": "bench-hardware", "enabled_bios_interfaces": "fake"}}
        self.bench = self.useFixture(lab.Lab(rack={"steps": OFFERED, **rack}, options=options))
        self.user = self.bench.user
        self.uuid = self.bench.enroll(driver="bench-hardware", raid_interface="agent")
        for name in traits:
            self.user.post("/v1/deploy_templates", {"name": name, "steps": [TEMPLATES[name]]})
            self.user.put(f"/v1/nodes/{self.uuid}/traits/{name}", None)
        self.bench.make_available(self.uuid)
        self.bench.set_image(self.uuid, traits=list(traits))

    def machine(self) -> dict[str, Any]:
        return self.bench.rack.control.machine(MACHINE)

    def reach_step(self, step: str) -> None:
        """Wait until the node waits for a step."""

        def check() -> bool:
            node = self.user.node(self.uuid)
            current = node["deploy_step"] or node["service_step"]
            return current.get("step") == step and node["provision_state"].endswith(("call-back", "wait"))

        self.bench.eventually(check, f"{step} runs")

    def executed(self, since: int) -> list[tuple[str, int]]:
        """Return (step, boot) of the steps that agents were given, in boots after ``since``."""
        commands = [command for command in self.machine()["commands"] if ".execute_" in command["command"]]
        return [(one["step"], one["boot"] - since) for one in commands if one["boot"] > since]

    def check_result(self, boots: int) -> None:
        """Check that the machine is what the steps should have made of it.

        :param boots: how often it had booted before the deployment.
        """
        node = self.user.node(self.uuid)
        self.assertEqual(("power on", None, {}), (node["power_state"], node["last_error"], node["deploy_step"]))
        array = node["raid_config"]["logical_disks"][0]
        self.assertEqual(("1", "software"), (array["raid_level"], array["controller"]))
        self.assertTrue(self.bench.holds_image(0, disk=0) and self.bench.holds_image(0, disk=1))
        self.assertEqual({"VMX": "on"}, node["driver_internal_info"]["fake_bios_settings"])
        # The agent, the agent again after the requested reboot, and the user's system.
        machine = self.bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertEqual(3, machine["boots"] - boots)
        in_agent = ["apply_configuration", "write_image", "burn_in", "flash_nic"]
        self.assertEqual([(step, 1) for step in in_agent], self.executed(boots))


class TestManySteps(ManyStepsTest):
    def test_the_plan_is_what_happens(self) -> None:
        self.prepare(*TEMPLATES)
        boots = self.machine()["boots"]
        body = {"deploy_steps": [FLASH], "configdrive": {"user_data": "#!"}}
        plan = self.user.post(f"/ingot/v1/nodes/{self.uuid}/plan?flow=deploy", body)
        self.assertEqual(([], False), (plan["errors"], plan["in_band_steps_known"]))
        self.assertEqual(WITHOUT_AGENT, compared(plan["steps"]))
        self.assertEqual(["flash_nic"], [step["step"] for step in plan["steps"] if step["presumed"]])

        self.bench.rack.control.order_fault(MACHINE, "agent_hangs_at_step", "burn_in")
        self.user.provision(self.uuid, "active", **body)
        self.reach_step("burn_in")
        collected = self.bench.step_runs(self.uuid)
        self.assertEqual(WHOLE, compared(collected))
        place = WHOLE.index(BURN_IN)
        states = [step["state"] for step in collected]
        self.assertEqual((["done"] * place, ["planned"]), (states[:place], sorted(set(states[place + 1 :]))))
        known = {(step["interface"], step["step"]): step["runner"] for step in plan["steps"]}
        self.assertEqual(known, {key: runner for key, runner in self.runners(collected).items() if key in known})

        self.bench.rack.control.clear_faults(MACHINE)
        self.bench.reach(self.uuid, "active")
        ran = self.bench.step_runs(self.uuid)
        self.assertEqual(compared(collected), compared(ran))
        self.assertEqual({("done", 1)}, {(step["state"], step["attempt"]) for step in ran})
        self.assertEqual(sorted(step["started_at"] for step in ran), [step["started_at"] for step in ran])
        self.check_result(boots)
        self.check_history()

    def runners(self, steps: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
        return {(step["interface"], step["step"]): step["runner"] for step in steps}

    def check_history(self) -> None:
        """Check that there is one entry for each step, in their order."""
        history = [entry["event"] for entry in self.user.get(f"/v1/nodes/{self.uuid}/history")["history"]]
        expected = [f"Step {step[0]}.{step[1]} ({step[4]}) of flow deploy completed." for step in WHOLE]
        self.assertEqual(expected, [event for event in history if "of flow deploy" in event])

    def test_killed_in_a_step_and_in_its_reboot_it_does_nothing_twice(self) -> None:
        self.prepare(*TEMPLATES, boot_delay=2.0)
        boots = self.machine()["boots"]
        self.bench.rack.control.order_fault(MACHINE, "agent_hangs_at_step", "burn_in")
        self.user.provision(self.uuid, "active", deploy_steps=[FLASH])
        self.reach_step("burn_in")
        self.bench.process.stop(signal.SIGKILL)
        self.bench.rack.control.clear_faults(MACHINE)
        self.bench.process.start()

        # The machine finds its boot script, but its agent is not heard before the conductor is gone.
        self.bench.eventually(lambda: self.machine()["boots"] == boots + 2, "the reboot that flash_nic asked for")
        self.bench.rack.control.order_fault(MACHINE, "heartbeat_lost")
        self.bench.rack.control.wait_for_state(MACHINE, "agent")
        self.reach_step("flash_nic")
        self.bench.process.stop(signal.SIGKILL)
        self.bench.rack.control.clear_faults(MACHINE)
        self.bench.process.start()
        self.bench.reach(self.uuid, "active")
        rows = self.bench.step_runs(self.uuid)
        self.assertEqual(WHOLE, compared([row for row in rows if row["state"] == "done"]))
        self.assertEqual({"done"}, {row["state"] for row in rows} - {"interrupted"})
        self.check_result(boots)


class TestService(ManyStepsTest):
    """A machine in use is serviced, and is its user's again."""

    def setUp(self) -> None:
        super().setUp()
        self.prepare()
        self.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        self.bench.rack.control.wait_for_state(MACHINE, "os")

    def serve(self, *steps: dict[str, Any]) -> dict[str, Any]:
        """Request a service with steps that have a place in templates, too; return its plan."""
        requested = [{name: value for name, value in step.items() if name != "priority"} for step in steps]
        path, body = f"/ingot/v1/nodes/{self.uuid}/plan?flow=service", {"service_steps": requested}
        plan: dict[str, Any] = self.user.post(path, body)
        self.user.provision(self.uuid, "service", **body)
        return plan

    def check_given_back(self, boots: int) -> None:
        """Check that the machine runs its user's system.

        :param boots: how often it has booted, the last time from its own disk.
        """
        node = self.bench.reach(self.uuid, "active")
        self.assertEqual(("power on", {}), (node["power_state"], node["service_step"]))
        self.assertEqual((False, None), (node["maintenance"], node["fault"]))
        self.bench.rack.control.wait_for_state(MACHINE, "os")
        self.assertTrue(self.bench.holds_image(0))
        device = self.user.get(f"/v1/nodes/{self.uuid}/management/boot_device")
        self.assertEqual({"boot_device": "disk", "persistent": True}, device)
        self.assertEqual(boots, self.machine()["boots"])

    def test_steps_run_before_and_after_a_hold_and_the_image_is_untouched(self) -> None:
        boots = self.machine()["boots"]
        bios = TEMPLATES["CUSTOM_BIOS_VMX"]
        plan = self.serve(IN_AGENT, HOLD, bios, FLASH)
        self.assertEqual([], plan["errors"])
        held = self.bench.reach(self.uuid, "service hold")
        self.assertEqual("hold", held["service_step"]["step"])
        self.assertEqual("agent", self.machine()["state"])
        self.assertEqual([("burn_in", 1)], self.executed(boots))
        self.assertNotIn("fake_bios_settings", held["driver_internal_info"])
        self.user.provision(self.uuid, "unhold")
        node = self.bench.reach(self.uuid, "active")
        self.assertEqual({"VMX": "on"}, node["driver_internal_info"]["fake_bios_settings"])
        ran = self.bench.step_runs(self.uuid)
        self.assertEqual(compared(plan["steps"]), compared(ran))
        self.assertEqual({("done", 1)}, {(step["state"], step["attempt"]) for step in ran})
        self.assertEqual([("burn_in", 1), ("flash_nic", 1)], self.executed(boots))
        self.check_given_back(boots + 3)

    def test_a_held_service_is_aborted_and_the_machine_is_given_back(self) -> None:
        boots = self.machine()["boots"]
        self.serve(HOLD, IN_AGENT)
        self.bench.reach(self.uuid, "service hold")
        self.user.provision(self.uuid, "abort")
        self.check_given_back(boots + 2)
        self.assertIn("was aborted in step power.hold", self.user.node(self.uuid)["last_error"])
        states = {step["step"]: step["state"] for step in self.bench.step_runs(self.uuid)}
        self.assertEqual({"prepare_service": "done", "hold": "aborted", "tear_down_service": "done"}, states)
        self.assertEqual([], self.executed(boots))

    def test_a_failed_service_leaves_the_machine_as_it_is_until_it_is_given_back(self) -> None:
        boots = self.machine()["boots"]
        self.serve(BROKEN)
        failed = self.bench.reach(self.uuid, "service failed")
        for part in ("deploy.drop_tools", "the screwdriver is gone", "abort to give the machine back"):
            self.assertIn(part, failed["last_error"])
        self.assertEqual((True, "service failure"), (failed["maintenance"], failed["fault"]))
        self.assertEqual(("agent", boots + 1), (self.machine()["state"], self.machine()["boots"]))
        self.user.put(f"/v1/nodes/{self.uuid}/maintenance", {"reason": "inspected by an operator"})
        self.user.delete(f"/v1/nodes/{self.uuid}/maintenance")
        self.user.provision(self.uuid, "abort")
        self.check_given_back(boots + 2)
