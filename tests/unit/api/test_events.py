"""Live events over HTTP: what a stream sends, where it begins, what is refused."""

import json
import threading
from typing import Any

from ingot.common import states
from ingot.db import events, nodes
from tests import api_case, conductor_case, database

PATH = "/ingot/v1/events"


def read(chunks: Any, count: int) -> list[dict[str, Any]]:
    """Return the next events of a stream: their fields, data parsed."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        for block in next(chunks).decode().split("\n\n"):
            lines = [line.split(": ", 1) for line in block.splitlines() if not line.startswith(":")]
            event = dict(lines)
            if "data" in event:
                found.append({**event, "data": json.loads(event["data"])})
    return found


class Streams(api_case.ApiCase):
    def configure(self) -> None:
        self.conf.set_override("max_event_streams", 3, group="api")
        self.conf.set_override("event_heartbeat_interval", 1, group="api")

    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n")

    def follow(self, query: str = "", **headers: str) -> Any:
        """Open a stream; return its response and the chunks that follow the first."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        response = self.http.get(f"{PATH}{query}", headers=sent, buffered=False)
        self.addCleanup(response.close)
        self.assertEqual(200, response.status_code, response)
        chunks = response.iter_encoded()
        response.opening = next(chunks).decode()
        return response, chunks

    def change(self, **values: Any) -> None:
        nodes.set_always(self.db, self.known.uuid, values)

    def test_what_happens_from_now_on(self) -> None:
        self.change(provision_state=states.MANAGEABLE)
        response, chunks = self.follow()
        self.assertEqual("text/event-stream; charset=utf-8", response.headers["Content-Type"])
        self.assertEqual("no-cache", response.headers["Cache-Control"])
        self.change(provision_state=states.CLEANING, target_provision_state=states.AVAILABLE)
        (event,) = read(chunks, 1)
        self.assertEqual("provision", event["event"])
        data = event["data"]
        self.assertEqual(
            (self.known.uuid, "n", "cleaning"), (data["node_uuid"], data["node_name"], data["provision_state"])
        )
        self.assertEqual(event["id"], str(data["id"]))
        self.assertTrue(data["at"].endswith("+00:00"))

    def test_goes_on_where_the_client_was(self) -> None:
        for number in range(5):
            self.change(maintenance=True, maintenance_reason=str(number))
        events.collect(self.db, 60)
        first = events.bounds(self.db)[1] - 5
        for _response, chunks in (self.follow(f"?after={first + 2}"), self.follow(Last_Event_ID=str(first + 2))):
            reasons = [event["data"]["maintenance_reason"] for event in read(chunks, 3)]
            self.assertEqual(["2", "3", "4"], reasons)
        _response, chunks = self.follow(f"?after={first}", Last_Event_ID=str(first + 4))
        self.assertEqual("4", read(chunks, 1)[0]["data"]["maintenance_reason"])

    def test_filters(self) -> None:
        other = database.make_node(self.db, name="other")
        _response, chunks = self.follow(f"?node=other&node={self.known.uuid}&kind=power,maintenance")
        _response, only = self.follow("?node=other")
        self.change(power_state=states.POWER_ON)
        self.change(provision_state=states.MANAGEABLE)
        self.change(maintenance=True)
        nodes.set_always(self.db, other.uuid, {"maintenance": True})
        self.assertEqual(["power", "maintenance", "maintenance"], [event["event"] for event in read(chunks, 3)])
        self.assertEqual(["other"], [event["data"]["node_name"] for event in read(only, 1)])

    def test_a_client_that_was_away_for_too_long_gets_a_missed_event(self) -> None:
        for number in range(5):
            self.change(maintenance=True, maintenance_reason=str(number))
        events.collect(self.db, 60)
        events.prune(self.db, 2)
        oldest, latest = events.bounds(self.db)
        response, chunks = self.follow("?after=1")
        self.assertIn("event: missed", response.opening)
        self.assertIn(f'"oldest":{oldest}', response.opening)
        self.assertEqual([str(oldest), str(latest)], [event["id"] for event in read(chunks, 2)])
        response, _chunks = self.follow("?after=1000000")
        self.assertIn("event: missed", response.opening)

    def test_silence_is_broken_by_comments_that_tell_how_far_it_is(self) -> None:
        _response, chunks = self.follow("?kind=power")
        self.change(maintenance=True)
        self.assertIn(": heartbeat", next(chunks).decode())
        latest = f"id: {events.bounds(self.db)[1]}\n"
        self.assertTrue(any(latest in next(chunks).decode() for _ in range(60)), latest)

    def test_a_client_that_does_not_read_costs_little_memory(self) -> None:
        start = events.bounds(self.db)[1]
        for number in range(200):
            self.change(maintenance=True, maintenance_reason=f"{number} {'x' * 100_000}")
        events.collect(self.db, 60)
        _response, chunks = self.follow(f"?after={start}&kind=maintenance")
        seen: list[str] = []
        while len(seen) < 200:
            block = next(chunks)
            self.assertTrue(len(block) < 150_000, len(block))
            texts = [line for line in block.decode().splitlines() if line.startswith("data: ")]
            seen += [json.loads(text.removeprefix("data: "))["maintenance_reason"] for text in texts]
        self.assertEqual([str(number) for number in range(200)], [text.partition(" ")[0] for text in seen])
        self.assertTrue(all(text.endswith("more characters)") and len(text) < 2100 for text in seen))
        self.assertTrue(len(nodes.get(self.db, self.known.uuid).maintenance_reason or "") > 100_000)

    def test_there_are_only_so_many_and_one_that_ends_makes_room(self) -> None:
        responses = [self.follow()[0] for _ in range(3)]
        answer = self.api("GET", PATH)
        self.assertEqual(503, answer.status)
        self.assertIn("max_event_streams", answer.message)
        self.assertIn("Retry-After", answer.headers)
        responses[0].close()
        self.follow()

    def test_what_is_wrong_is_refused_before_the_stream(self) -> None:
        for query, named in (
            ("?kind=weather", "weather"),
            ("?kind=", "provision"),
            ("?after=x", "x"),
            ("?a=b", "kind"),
        ):
            self.assertIn(named, self.refused(400, "GET", PATH + query))
        self.assertIn("missing", self.refused(404, "GET", f"{PATH}?node=missing"))
        self.assertEqual(400, self.api("GET", PATH, Last_Event_ID="-1").status)

    def test_the_thread_ends_with_the_last_stream(self) -> None:
        response, _chunks = self.follow()
        response.close()

        def running() -> bool:
            return any(thread.name == "events" for thread in threading.enumerate())

        conductor_case.eventually(lambda: not running(), "it has ended")
