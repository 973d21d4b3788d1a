"""Refusals of verbs, states and versions say what was wrong and what is allowed instead.

Those of fields, parameters and URLs are checked by ``test_every_route``.
"""

from typing import Any

from ingot.api.nodes import verbs
from ingot.common import states
from ingot.db import nodes
from tests import world
from tests.api_case import DRIVE

SECRET = "correct horse"


class Versions(world.WorldCase):
    def test_of_versions_that_there_are_not(self) -> None:
        for given in ("1.0", "1.999", "2.1", "one", "1", "1.1.1"):
            message = self.refused(406, "GET", "/v1/nodes", version=given)
            for part in (given, "1.1 to 1.115", "latest"):
                self.assertIn(part, message)


class States(world.WorldCase):
    def test_that_allow_no_such_request(self) -> None:
        arguments: dict[str, dict[str, Any]] = {
            "clean": {"clean_steps": [{"interface": "deploy", "step": "x"}]},
            "service": {"service_steps": [{"interface": "deploy", "step": "x"}]},
            "rescue": {"rescue_password": SECRET},
        }
        asked = 0
        for state in sorted(states.ALL):
            nodes.set_always(self.db, self.uuid, {"provision_state": state})
            for verb, record in verbs.VERBS.items():
                if states.requested_state(state, record.event) is None:
                    answer = self.api(
                        "PUT", "/v1/nodes/n/states/provision", {"target": verb, **arguments.get(verb, {})}
                    )
                    self.assertEqual(400, answer.status, answer)
                    for part in (f'"{verb}"', self.uuid, f'"{state}"', "Possible here: "):
                        self.assertIn(part, answer.message)
                    for other in verbs.find_allowed(state):
                        self.assertIn(other, answer.message)
                    asked += 1
        self.assertGreater(asked, 350)

    def test_that_allow_no_change(self) -> None:
        for state in sorted(states.ALL - states.UPDATE_ALLOWED):
            nodes.set_always(self.db, self.uuid, {"provision_state": state})
            message = self.refused(409, "PATCH", "/v1/nodes/n", world.ADD)
            for part in (self.uuid, state, *states.UPDATE_ALLOWED):
                self.assertIn(part, message)

    def test_for_which_arguments_are_meant(self) -> None:
        for name in verbs.ARGUMENTS:
            takers = {verb.name for verb in verbs.VERBS.values() if name in verb.arguments}
            value = {"configdrive": DRIVE, "disable_ramdisk": True, "runbook": "CUSTOM_R", "rescue_password": "x"}
            for verb in verbs.VERBS.keys() - takers:
                body = {"target": verb, name: value.get(name, [world.STEP])}
                answer = self.api("PUT", "/v1/nodes/n/states/provision", body)
                self.assertEqual(400, answer.status, answer)
                if f'"{name}" is only valid' in answer.message:
                    for part in (verb, *takers):
                        self.assertIn(part, answer.message)
