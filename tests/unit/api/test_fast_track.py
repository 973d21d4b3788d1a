"""With fast track, heartbeats are accepted also while no flow waits for them."""

from typing import Any

from ingot.common import states
from ingot.db import nodes
from tests import api_case, database

# Contract: agent.md.
ALWAYS = {
    "deploying", "wait call-back", "cleaning", "clean wait", "inspecting", "inspect wait", "rescuing", "rescue wait",
    "service wait",
}  # fmt: skip
WITH_FAST_TRACK = ALWAYS | {"enroll", "manageable", "available", "servicing", "service hold"}


class FastTrack(api_case.ApiCase):
    def served(self, state: str) -> tuple[int, int]:
        """Return the statuses that lookup and heartbeat of a node's agent get."""
        node = database.make_node(self.db, provision_state=state)
        found = self.api("GET", f"/v1/lookup?node_uuid={node.uuid}")
        token = found.json["config"]["agent_token"] if found.status == 200 else "none"
        body: dict[str, Any] = {"callback_url": "https://10.0.0.9:9999", "agent_version": "13", "agent_token": token}
        return found.status, self.api("POST", f"/v1/heartbeat/{node.uuid}", body).status

    def test_without_it_only_where_a_flow_expects_them(self) -> None:
        for state in states.ALL:
            self.assertEqual((200, 202) if state in ALWAYS else (404, 400), self.served(state), state)

    def test_with_it_where_a_flow_may_use_them_later(self) -> None:
        self.conf.set_override("fast_track", True, group="deploy")
        for state in states.ALL:
            self.assertEqual((200, 202) if state in WITH_FAST_TRACK else (404, 400), self.served(state), state)

    def test_a_heartbeat_is_kept_and_no_conductor_is_notified(self) -> None:
        self.conf.set_override("fast_track", True, group="deploy")
        self.served(states.AVAILABLE)
        node = nodes.get(self.db, self.good("GET", "/v1/nodes")["nodes"][0]["uuid"])
        self.assertEqual("https://10.0.0.9:9999", node.agent_url)
        self.assertIsNotNone(node.agent_last_heartbeat)
        self.assertEqual([], self.conductor.wakeups)
