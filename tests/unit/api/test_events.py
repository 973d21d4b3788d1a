"""Live events over HTTP: what a stream sends, where it begins, what is refused."""

import json
import pathlib
import threading
from typing import Any

import fixtures
from oslo_policy import opts

from ingot.common import states
from ingot.db import events, inbox, nodes, step_lists
from ingot.db.engine import Database
from tests import api_case, conductor_case, database, identity_case, sql_counter

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


class StreamCase(api_case.ApiCase):
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


class Streams(StreamCase):
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


class Speed(StreamCase):
    """Events come as soon as they are written: the read that comes in any case is an hour away here."""

    def setUp(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.api.web.streams._INTERVAL_S", 3600))
        super().setUp()

    def read_soon(self, chunks: Any) -> dict[str, Any]:
        """Return the next event; with it may come a few comments."""
        for _ in range(30):
            text = next(chunks).decode()
            if "data: " in text:
                found: dict[str, Any] = json.loads(text.partition("data: ")[2].partition("\n")[0])
                return found
        return self.fail("no event has come")

    def test_what_this_process_writes_is_read_at_once_and_not_looked_for(self) -> None:
        _response, chunks = self.follow()
        with sql_counter.counting(self.db) as counted:
            self.change(provision_state=states.MANAGEABLE)
            self.assertEqual("manageable", self.read_soon(chunks)["provision_state"])
            self.assertIn(": heartbeat", next(chunks).decode())
        self.assertLessEqual(len(counted), 14, counted)

    def test_what_another_process_writes_is_found_by_looks_of_one_statement(self) -> None:
        self.bus.stays_inside = False
        self.http = self.application().test_client()
        _response, chunks = self.follow()
        other = Database(self.conf)
        self.addCleanup(other.dispose)
        nodes.set_always(other, self.known.uuid, {"provision_state": states.MANAGEABLE})
        self.assertEqual("manageable", self.read_soon(chunks)["provision_state"])
        with sql_counter.counting(self.db) as counted:
            self.assertIn(": heartbeat", next(chunks).decode())
        self.assertEqual(1, len(set(counted.statements)), counted)


_STEP = {"interface": "deploy", "step": "erase", "args": {}}
_FOUND = {"client_address": "192.0.2.7", "facts": {"addresses": []}, "inventory": {}, "plugin_data": {}}


class OtherKinds(StreamCase):
    def test_of_what_is_no_node(self) -> None:
        _response, chunks = self.follow("?kind=plan,inbox,conductor")
        self.good("POST", "/v1/deploy_templates", {"name": "CUSTOM_A", "steps": [{**_STEP, "priority": 10}]})
        inbox.record(self.db, ["52:54:00:aa:bb:01"], _FOUND, 10)
        self.good("PUT", f"/ingot/v1/conductors/{api_case.HOST}/drain?force=true", version=None)
        found = [event["data"] for event in read(chunks, 3)]
        self.assertEqual(["plan", "inbox", "conductor"], [event["kind"] for event in found])
        template = self.good("GET", "/v1/deploy_templates/CUSTOM_A")
        shown = {"plan": "deploy_template", "uuid": template["uuid"], "name": "CUSTOM_A", "change": "created"}
        self.assertEqual(shown, {name: found[0].get(name) for name in shown})
        self.assertEqual("created", found[1]["change"])
        self.assertEqual((api_case.HOST, "draining"), (found[2]["conductor"], found[2]["state"]))
        self.assertEqual([None] * 3, [event["node_uuid"] for event in found])


class SeenByWhomTheyConcern(identity_case.IdentityCase):
    """Who may follow events does not get those of what they may not see."""

    def configure(self) -> None:
        super().configure()
        policy = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "policy.yaml"
        policy.write_text('"ingot:events:get": "role:reader"\n"ingot:inbox:get": "role:admin"\n')
        for group, options in opts.list_opts():
            self.conf.register_opts(options, group=group)
        self.conf.set_override("policy_file", str(policy), group="oslo_policy")
        self.conf.set_override("event_heartbeat_interval", 1, group="api")

    def test_of_the_inbox_and_of_plans_of_others(self) -> None:
        inbox.record(self.db, ["52:54:00:aa:bb:01"], _FOUND, 10)
        for name, owner in (("theirs", "owner"), ("others", "stranger")):
            step_lists.RUNBOOKS.create(self.db, {"name": name, "owner": owner, "steps": [{**_STEP, "order": 1}]})
        step_lists.TEMPLATES.create(self.db, {"name": "CUSTOM_A", "steps": [{**_STEP, "priority": 10}]})
        events.collect(self.db, 60)
        everything = ["created", "theirs", "others", "CUSTOM_A"]
        self.assertEqual(everything, self.list_shown("system admin"))
        self.assertEqual(everything[1:], self.list_shown("system reader"))
        self.assertEqual(["theirs"], self.list_shown("owner reader"))

    def list_shown(self, person: str) -> list[str]:
        """Return the plans and changes of the inbox that are in all that was kept."""
        headers = {"X-Auth-Token": person}
        response = self.http.get(f"{PATH}?after=0&kind=plan,inbox", headers=headers, buffered=False)
        chunks = response.iter_encoded()
        text = next(chunks).decode()
        while "heartbeat" not in text:
            text += next(chunks).decode()
        response.close()
        found = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        return [one.get("name", one["change"]) for one in found]
