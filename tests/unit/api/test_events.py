"""Live events over HTTP: what a stream sends, where it begins, what is refused."""

import json
import pathlib
import threading
import time
from typing import Any

import fixtures
from oslo_policy import opts

from ingot.common import states
from ingot.db import events, inbox, nodes, outbox, step_lists
from ingot.db.engine import Database
from tests import api_case, conductor_case, database, identity_case, sql_counter

PATH = "/ingot/v1/events"


def read(chunks: Any, count: int) -> list[dict[str, Any]]:
    """Return the next events of a stream: their fields, data parsed."""
    found: list[dict[str, Any]] = []
    until = time.monotonic() + conductor_case.PATIENCE
    while len(found) < count:
        if time.monotonic() > until:
            raise AssertionError(f"{count} events were expected, and these came: {found}")
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
        return [one.get("name", one["change"]) for one in read_kept(self.http, person, "kind=plan,inbox")]


def read_kept(http: Any, person: str, query: str = "") -> list[dict[str, Any]]:
    """Return the data of all events that are kept and that a person sees."""
    response = http.get(f"{PATH}?after=0&{query}", headers={"X-Auth-Token": person}, buffered=False)
    chunks = response.iter_encoded()
    text = next(chunks).decode()
    while "heartbeat" not in text:
        text += next(chunks).decode()
    response.close()
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


class OfProjects(identity_case.IdentityCase):
    """Users of a project follow the events of its nodes, as far as their nodes show these things to them."""

    def configure(self) -> None:
        super().configure()
        self.conf.set_override("event_heartbeat_interval", 1, group="api")
        self.conf.set_override("max_event_streams", 4, group="api")
        self.conf.set_override("max_event_streams_of_project", 2, group="api")

    def change(self, node: Any, **values: Any) -> None:
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), values)

    def test_see_their_own_nodes_only(self) -> None:
        own, other = self.own_node(name="own"), database.make_node(self.db, name="other", owner="else")
        for node in (own, other):
            step = outbox.build_step_event({"step": "erase", "state": "running"})
            held = nodes.lock(self.db, node.uuid, "one", "test")
            hold = {"maintenance": True, "maintenance_holds": [], "maintenance_reason": "hot"}
            values = {"provision_state": states.DEPLOYFAIL, "last_error": "secret", **hold, **nodes.UNLOCKED}
            nodes.write_locked(self.db, held, values, events=[step, *outbox.build_events(values)])
        inbox.record(self.db, ["52:54:00:aa:bb:01"], _FOUND, 10)
        step_lists.TEMPLATES.create(self.db, {"name": "CUSTOM_A", "steps": [{**_STEP, "priority": 10}]})
        step_lists.RUNBOOKS.create(self.db, {"name": "r", "owner": "owner", "steps": [{**_STEP, "order": 1}]})
        events.collect(self.db, 60)
        everything = read_kept(self.http, "system admin")
        self.assertEqual({"own", "other"}, {event["node_name"] for event in everything if event["node_uuid"]})
        self.assertTrue({"inbox", "plan", "conductor"} <= {event["kind"] for event in everything})
        seen = read_kept(self.http, "owner reader")
        self.assertEqual(["plan"], [event["kind"] for event in seen if event["node_name"] != "own"])
        self.assertEqual(["step", "maintenance", "provision"], [e["kind"] for e in seen if e["node_name"] == "own"])
        self.assertEqual(["secret"], [event["last_error"] for event in seen if event["kind"] == "provision"])
        by_lessee = read_kept(self.http, "lessee reader")
        self.assertEqual(["maintenance", "provision"], [event["kind"] for event in by_lessee])
        self.assertEqual(
            ("hot", "deploy failed"), (by_lessee[0]["maintenance_reason"], by_lessee[1]["provision_state"])
        )
        self.assertFalse({"last_error", "maintenance_holds"} & {*by_lessee[0], *by_lessee[1]})
        self.assertEqual([], read_kept(self.http, "stranger reader"))
        self.assertEqual(403, self.ask("owner none", "GET", PATH).status)

    def test_a_node_takes_nothing_of_its_past_along(self) -> None:
        node = self.own_node(name="n", provision_state=states.MANAGEABLE)
        headers = {"X-Auth-Token": "stranger reader"}
        response = self.http.get(PATH, headers=headers, buffered=False)
        chunks = response.iter_encoded()
        next(chunks)
        self.change(node, provision_state=states.CLEANFAIL, last_error="secret of the owner")
        self.change(node, owner="stranger", lessee=None)
        self.change(node, name="m")
        self.change(node, provision_state=states.AVAILABLE, last_error="secret of the stranger")
        found = [event["data"] for event in read(chunks, 3)]
        response.close()
        self.assertEqual(["node", "node", "provision"], [event["kind"] for event in found])
        self.assertEqual((["lessee", "owner"], ["name"]), (found[0]["fields"], found[1]["fields"]))
        self.assertNotIn("was", found[0])
        for person in ("owner reader", "lessee reader"):
            seen = read_kept(self.http, person)
            self.assertEqual(["provision", "node"], [event["kind"] for event in seen], person)
            self.assertEqual({"n"}, {event["node_name"] for event in seen})

    def test_the_last_event_of_a_node_is_for_those_who_saw_it(self) -> None:
        node = self.own_node()
        self.good_as("system admin", "DELETE", f"/v1/nodes/{node.uuid}")
        for person, seen in (("owner reader", 1), ("lessee reader", 1), ("stranger reader", 0)):
            found = read_kept(self.http, person)
            self.assertEqual([(None, True)] * seen, [(one["provision_state"], one["deleted"]) for one in found])

    def good_as(self, person: str, method: str, path: str, body: Any = None) -> None:
        answer = self.ask(person, method, path, body)
        self.assertLess(answer.status, 300, answer)

    def test_names_of_others_are_names_of_nothing(self) -> None:
        self.own_node(name="own")
        database.make_node(self.db, name="other", owner="else")
        self.assertEqual([], read_kept(self.http, "owner reader", "node=own"))
        for name in ("other", "missing"):
            answer = self.ask("owner reader", "GET", f"{PATH}?node={name}")
            self.assertEqual((404, f"Node {name} could not be found."), (answer.status, answer.message))

    def test_have_some_of_the_streams(self) -> None:
        def follow(person: str) -> int:
            response = self.http.get(PATH, headers={"X-Auth-Token": person}, buffered=False)
            self.addCleanup(response.close)
            return int(response.status_code)

        self.assertEqual([200, 200, 503], [follow("owner reader") for _ in range(3)])
        self.assertIn("of_project", self.ask("owner member", "GET", PATH).message)
        self.assertEqual([200, 200], [follow("lessee reader"), follow("system reader")])

    def test_cost_no_statement_more(self) -> None:
        node, costs = self.own_node(), []
        for persons in (("system reader",), ("system reader", "owner reader", "lessee reader", "stranger reader")):
            opened = [self.http.get(PATH, headers={"X-Auth-Token": one}, buffered=False) for one in persons]
            streams = [response.iter_encoded() for response in opened]
            for chunks in streams:
                next(chunks)
            with sql_counter.counting(self.db) as counted:
                self.change(node, power_state=states.POWER_OFF if costs else states.POWER_ON)
                for chunks in streams[:3]:
                    read(chunks, 1)
            costs.append(len([text for text in counted.statements if "FROM events" in text and "node_owner" in text]))
            for response in opened:
                response.close()
        self.assertEqual([1, 1], costs)

    def test_begin_not_too_far_back(self) -> None:
        self.useFixture(fixtures.MonkeyPatch("ingot.api.web.streams._MOST_BACK_OF_PROJECT", 2))
        node = self.own_node()
        for number in range(5):
            self.change(node, maintenance=True, maintenance_reason=str(number))
        events.collect(self.db, 60)
        self.assertEqual(2 + 1, len(read_kept(self.http, "owner reader")))  # and what says that some are missing
        self.assertLess(4, len(read_kept(self.http, "system reader")))


class OfNodes(StreamCase):
    """What pages show of a node, and changes by requests."""

    def test_fields_by_their_names_only(self) -> None:
        _response, chunks = self.follow("?kind=node")
        patch = [
            {"op": "replace", "path": "/name", "value": "renamed"},
            {"op": "add", "path": "/driver_info/ipmi_password", "value": "secret"},
            {"op": "add", "path": "/description", "value": "left of the door"},
        ]
        self.good("PATCH", f"/v1/nodes/{self.known.uuid}", patch)
        self.good("PUT", "/v1/nodes/renamed/traits/CUSTOM_A")
        self.good("POST", "/v1/ports", {"node_uuid": self.known.uuid, "address": "52:54:00:aa:bb:01"})
        found = [event["data"] for event in read(chunks, 3)]
        by_fields = {tuple(event["fields"]): event for event in found}
        self.assertEqual({("description", "driver_info", "name"), ("traits",), ("ports",)}, set(by_fields))
        self.assertEqual({self.known.uuid}, {event["node_uuid"] for event in found})
        renamed = by_fields["description", "driver_info", "name"]
        self.assertEqual("renamed", renamed["name"])
        self.assertEqual({"id", "kind", "at", "node_uuid", "node_name", "fields", "name"}, set(renamed))

    def test_new_and_deleted_nodes_say_so(self) -> None:
        _response, chunks = self.follow()
        made = self.good("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "new"})
        self.good("DELETE", f"/v1/nodes/{made['uuid']}")
        found = [event["data"] for event in read(chunks, 2)]
        self.assertEqual([("enroll", True, None), (None, None, True)], [
            (event["provision_state"], event.get("created"), event.get("deleted")) for event in found])  # fmt: skip
        self.assertEqual({made["uuid"]}, {event["node_uuid"] for event in found})
