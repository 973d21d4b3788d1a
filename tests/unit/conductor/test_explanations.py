"""What flows that really wait say of it."""

from typing import Any
from unittest import mock

from ingot.common import clock, errors, states
from ingot.common.json_types import Json
from ingot.common.waits import Wait
from ingot.db import explanations, models, nodes
from ingot.drivers.images import fetches
from tests import conductor_case, database
from tests.unit.drivers.file_server import SlowServer


class Explained(conductor_case.ConductorCase):
    def begin(self, **request: Any) -> models.Node:
        node = database.make_node(self.db, deploy_interface="fake")
        self.accept(node, "deploy", states.DEPLOYING, **request)
        self.notify(node)
        return node

    def explain(self, node: models.Node) -> Json:
        found = nodes.get(self.db, node.uuid, explanations.COLUMNS)
        return explanations.explain_now(self.db, self.conf, found)

    def eventually_waits(self, node: models.Node, wait: Wait) -> Json:
        def look() -> Json | None:
            found = self.explain(node)
            return found if found["kind"] == wait else None

        found: Json = conductor_case.eventually(look, f"it waits for {wait}")
        return found

    def patch_power(self, **methods: Any) -> None:
        power = self.conductor.services.hardware.interface("power", "fake")
        for name, method in methods.items():
            self.enterContext(mock.patch.object(power, name, method))

    def test_a_bmc_that_does_not_answer(self) -> None:
        silent = errors.HardwareUnreachable(what="BMC of a test", reason="silence")
        self.patch_power(get_power_state=mock.Mock(side_effect=silent))
        node = self.begin(deploy_steps=[{"interface": "deploy", "step": "reboot", "priority": 150, "args": {}}])
        found = self.eventually_waits(node, Wait.BMC)
        self.assertIn("tried again", found["waits_for"])

    def test_a_power_state(self) -> None:
        self.patch_power(get_power_state=lambda _task: states.POWER_OFF, start_power_change=mock.Mock())
        limit = self.conf.conductor.power_state_change_timeout
        node = self.begin(deploy_steps=[{"interface": "deploy", "step": "power_on", "priority": 150, "args": {}}])
        found = self.eventually_waits(node, Wait.POWER)
        self.assertEqual("deploy.power_on", found["step"])
        self.assertLessEqual(found["until"], clock.after(limit))
        self.assertIn("deploy failed", found["next"])
        alone = database.make_node(self.db, power_state=states.POWER_OFF)
        values = {"power_request": {"target": states.POWER_ON}, "due_at": clock.now()}
        nodes.compare_and_set(self.db, nodes.get(self.db, alone.uuid), values)
        self.notify(alone)
        conductor_case.eventually(lambda: self.explain(alone)["until"], "its command is sent")
        self.assertEqual(Wait.POWER, self.eventually_waits(alone, Wait.POWER)["kind"])

    def test_a_time_and_an_operator(self) -> None:
        step = {"interface": "deploy", "step": "wait", "priority": 150, "args": {"seconds": 600}}
        found = self.eventually_waits(self.begin(deploy_steps=[step]), Wait.TIME)
        self.assertAlmostEqual(600, (found["until"] - clock.now()).total_seconds(), delta=conductor_case.PATIENCE)
        node = self.begin(deploy_steps=[{"interface": "deploy", "step": "hold", "priority": 150, "args": {}}])
        self.eventually_waits(node, Wait.OPERATOR)

    def test_a_file(self) -> None:
        self.patch(fetches, "_PATIENCE", 0.05)
        self.conf.set_override("url_denied_networks", [], group="deploy")
        server = SlowServer()
        self.addCleanup(server.stop)
        node = self.begin(configdrive=f"{server.url}/drive")
        self.eventually_waits(node, Wait.FILE)
        nodes.request_abort(self.db, node.uuid, "deploy")
        self.notify(node)
        self.assertIn("aborted", self.settled(node).last_error)
        self.assertEqual(Wait.REQUEST, self.explain(node)["kind"])
