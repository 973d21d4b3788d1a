"""A node that a conductor works on: a client that must wait learns for which conductor, since when and why."""

import contextlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, states
from ingot.db import agents, nodes
from tests import database, world


class Locked(world.WorldCase):
    def setUp(self) -> None:
        super().setUp()
        lock = {"reservation": "conductor-9", "lock_purpose": "flashing the BIOS", "locked_at": clock.after(-60)}
        nodes.set_always(self.db, self.uuid, lock)
        self.since = clock.iso(lock["locked_at"])

    def test_every_409_says_who_has_it_since_when_and_for_what(self) -> None:
        refused = set()
        for route, method, operation in self.operations():
            if operation.answer.media == "text/event-stream":  # does not end
                continue
            answer = self.unchecked(method, self.url(route.path), self.body(route.path, method))
            if answer.status != 409 or any(words in answer.text for words in ("already", "No other conductor")):
                continue  # so it is in this world, locked or not
            refused.add((method, route.path))
            for part in ("conductor-9", self.since, "flashing the BIOS"):
                self.assertIn(part, answer.text, f"{method} {route.path}")
        self.assertEqual(set(), {(method, path) for method, path in refused if method == "GET"})
        for expected in (
            ("DELETE", "/v1/nodes/<node>"),
            ("DELETE", "/v1/ports/<ident>"),
            ("PATCH", "/v1/nodes/<node>"),
            ("PUT", "/v1/nodes/<node>/states/power"),
            ("PUT", "/v1/nodes/<node>/states/provision"),
        ):
            self.assertIn(expected, refused)


class Housekeeping(world.WorldCase):
    def test_of_agents_takes_no_lock(self) -> None:
        nodes.set_always(self.db, self.uuid, {"provision_state": states.CLEANWAIT})
        with database.statements(self.db) as sent:
            token = self.good("GET", f"/v1/lookup?addresses={world.MAC}")["config"]["agent_token"]
            beat = {"callback_url": "https://192.0.2.1:9999", "agent_version": "13.0.0", "agent_token": token}
            self.good("POST", f"/v1/heartbeat/{self.uuid}", beat)
            agents.request_check(self.db, nodes.get(self.db, self.uuid))
        self.assertEqual([], [one for one in sent if one.startswith("UPDATE nodes SET reservation")])
        self.assertEqual(0, nodes.get(self.db, self.uuid).lock_epoch)

    def test_that_changes_a_node_while_a_request_is_decided_does_not_make_it_fail(self) -> None:
        for method, path, body in (
            ("PATCH", "/v1/nodes/n", world.ADD),
            ("PUT", "/v1/nodes/n/maintenance", {"reason": "hot"}),
            ("PUT", "/v1/nodes/n/states/power", {"target": "power on"}),
            ("PUT", "/v1/nodes/n/traits", {"traits": ["CUSTOM_A"]}),
        ):
            with self.reading_noted_meanwhile() as noted:
                self.good(method, path, body)
            self.assertEqual([True], noted, f"{method} {path}")

    @contextlib.contextmanager
    def reading_noted_meanwhile(self) -> Iterator[list[bool]]:
        """Write a reading of the BMC, as another process, as soon as a request has read the node."""
        other, noted = self.database.another(), list[bool]()

        def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            if not noted and statement.startswith("SELECT") and "FROM nodes" in statement:
                noted.append(True)
                nodes.compare_and_set(other, nodes.get(other, self.uuid), {"health": "OK"})

        sa.event.listen(self.db.engine, "after_cursor_execute", note)
        try:
            yield noted
        finally:
            sa.event.remove(self.db.engine, "after_cursor_execute", note)
