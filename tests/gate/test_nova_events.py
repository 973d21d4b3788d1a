"""Events with power states are such as Nova's own rules want them; so are the answers that other tests give to them."""

import json
from typing import Any

import testtools

from ingot.common import states
from ingot.notifications import nova
from tests import compute_service, database, patience
from tests.conductor_case import eventually
from tests.gate import environments
from tests.gate.test_nova import REQUIREMENTS

PROGRAM = environments.ROOT / "tests" / "gate" / "programs" / "nova_schema.py"
SERVER, UNKNOWN = "0e4b1a9c-3d52-4c6e-8a52-3f6de2bb1c58", "3b0e7b3c-5b0f-4a54-9d5e-b5f3d2a8d1aa"


class TestNovaEvents(testtools.TestCase):
    def judge(self, request: Any, answer: Any) -> str:
        """Return what Nova has against a request or its answer; nothing if all is well."""
        command = (environments.cached("nova", *REQUIREMENTS) / "python", PROGRAM)
        sent = json.dumps([request, answer])
        return environments.run(*command, input=sent, timeout=environments.BUILD_TIMEOUT_S).strip()

    def test_nova_has_nothing_against_them(self) -> None:
        service = self.useFixture(compute_service.ComputeService())
        service.codes = {UNKNOWN: 404}
        conf = database.configuration("sqlite://")
        service.configure(conf)
        updates = nova.PowerUpdates(conf)
        for server, state in ((SERVER, states.POWER_ON), (UNKNOWN, states.POWER_OFF)):
            updates.tell(server, state)
            eventually(lambda: any(server == event["server_uuid"] for event in self.sent(service)), "it is sent")  # noqa: B023
        updates.close(patience.seconds(10))
        request = {"events": self.sent(service)}
        self.assertEqual("", self.judge(request, service.answer_events(request["events"])[1]))
        (first, *_others) = request["events"]
        wrong = self.judge({"events": [{**first, "name": "power"}]}, {"events": []})
        self.assertIn("power", wrong, "it does judge")

    def sent(self, service: compute_service.ComputeService) -> list[dict[str, Any]]:
        """Return all events that were sent."""
        return [event for _headers, body in service.requests for event in body["events"]]
