"""Agents name their steps as they like, also as the flow's own entries and the reserved steps are named."""

from typing import Any

from ingot.common import clock, states
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.base import BaseInterface
from tests import database
from tests.steps_case import StepsCase, step

ENTRIES = ("prepare", "prepare_cleaning", "tear_down_cleaning", "prepare_service", "tear_down_service", "tear_down")
OFFERED = [
    *(step(name, 95 - i, "deploy") for i, name in enumerate(ENTRIES)),
    *(step(name, 85 - i, "power") for i, name in enumerate(("power_on", "power_off", "reboot", "verify_power"))),
    *(step(name, 75 - i, "vendor") for i, name in enumerate(("wait", "hold", "apply_inventory"))),
]
NAMES = [f"{one['interface']}.{one['step']}" for one in OFFERED]


class TestNamesOfSteps(StepsCase):
    def setUp(self) -> None:
        super().setUp()
        self.agent(*OFFERED)

    def test_a_deployment_runs_each_step_of_the_agent_once(self) -> None:
        self.assertEqual(states.ACTIVE, self.deploy().provision_state)
        self.assertEqual(NAMES, [name for name, _args in self.calls])
        rows = [(row.step, row.origin) for row in self.step_runs(self.node)]
        self.assertEqual(
            [("prepare", "flow"), ("deploy", "driver"), *((one["step"], "agent") for one in OFFERED)], rows
        )

    def test_a_cleaning_does_and_asks_for_the_logs_at_its_end_only(self) -> None:
        self.conf.set_override("deploy_logs_collect", "always", group="agent")
        deploy: BaseInterface = self.interface("deploy")
        self.put(deploy, "prepare_cleaning", lambda _task: results.DONE)
        self.put(deploy, "tear_down_cleaning", lambda _task: self.calls.append(("end", {})))
        self.put(deploy, "collect_logs", lambda _task: self.calls.append(("logs", {})))
        self.clean("automated_clean")
        self.assertEqual([*NAMES, "logs", "end"], [name for name, _args in self.calls])

    def test_hooks_of_a_step_do_not_run_for_an_entry_of_its_name(self) -> None:
        hooked: list[Any] = []
        hook = base.post_clean_step_hook(interface="deploy", step="prepare_cleaning")
        self.addCleanup(base.find_hooks("clean", "deploy", "prepare_cleaning").clear)
        hook(lambda task, _result: hooked.append(task.step.runner.value))
        self.clean("automated_clean")
        self.assertEqual(["agent"], hooked)

    def clean(self, flow: str, **request: Any) -> Any:
        there = {"agent_url": "http://agent", "agent_last_heartbeat": clock.after(60)}
        self.node = database.make_node(self.db, **there)
        return self.run_flow(self.node, flow, states.CLEANING, **request)
