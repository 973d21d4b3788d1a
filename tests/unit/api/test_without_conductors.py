"""What the API does while no conductor answers: whatever the database knows, and all that needs no machine."""

import datetime
import http
from typing import Any

import sqlalchemy as sa

from ingot.api import routes
from ingot.api.web.operations import Operation
from ingot.common import clock, states
from ingot.db import conductors, nodes
from tests import api_case, world

STREAM = "text/event-stream"  # does not end

ASKED = (
    "/ingot/v1/nodes/<node>/console/log",
    "/ingot/v1/nodes/<node>/plan",
    "/ingot/v1/nodes/<node>/sensors",
    "/ingot/v1/nodes/<node>/steps",
    "/v1/drivers/<name>/properties",
    "/v1/drivers/<name>/raid/logical_disk_properties",
    "/v1/drivers/<name>/vendor_passthru",
    "/v1/nodes/<node>/cleaning/steps",
    "/v1/nodes/<node>/management/boot_device",
    "/v1/nodes/<node>/management/indicators",
    "/v1/nodes/<node>/states/console",
    "/v1/nodes/<node>/validate",
    "/v1/nodes/<node>/vendor_passthru",
    "/v1/nodes/<node>/vifs",
    "/v1/nodes/<node>/vmedia",
    "/v1/nodes/states/console/<node>",
    "/v1/nodes/validate",
)
"""What, with all URLs below it, only a machine or a loaded driver can tell."""

EMPTY = (
    "/boot/loaders/<name>",
    "/boot/settings.cpio",
    "/ingot/v1/nodes/<node>/logs/<uuid>",
    "/ingot/v1/nodes/<node>/maintenance/<hold>",
    "/ingot/v1/runs/<run>",
    "/ingot/v1/step_lists/runbook/<ident>/nodes",
    "/ingot/v1/step_lists/template/<ident>/nodes",
    "/boot/images/<node>/<ticket>/<image>",
    "/boot/media/<node>/<ticket>/boot.iso",
    "/boot/media/<node>/<ticket>/config.img",
    "/boot/volumes/<node>/<ticket>",
    "/boot/volumes/<node>/<ticket>",
    "/v1/lookup",
    "/v1/nodes/<node>/bios/<name>",
    "/v1/nodes/<node>/inventory",
)
"""Of what there is nothing in the world."""


def _goes_on(operation: Operation) -> bool:
    """Return whether an answer has no end: that of a stream of events, or of a websocket."""
    return operation.answer.media == STREAM or operation.answer.status == http.HTTPStatus.SWITCHING_PROTOCOLS


class Unanswered(world.WorldCase):
    """The conductor is registered, but dead."""

    def setUp(self) -> None:
        super().setUp()
        self.bus.stop(api_case.HOST)
        self.conductor.asked.clear()

    def reads(self) -> list[routes.Route]:
        return [route for route in routes.ROUTES if "GET" in route.operations and not _goes_on(route.operations["GET"])]

    def last_seen(self, moment: datetime.datetime) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(conductors.CONDUCTORS).values(heartbeat_at=moment))

    def test_what_the_database_knows_is_shown(self) -> None:
        for route in self.reads():
            answer = self.api("GET", self.url(route.path))
            expected = 503 if route.path.startswith(ASKED) else 404 if route.path in EMPTY else route.operations["GET"]
            status = expected if isinstance(expected, int) else expected.answer.status
            self.assertEqual(status, answer.status, f"{route.path}: {answer}")
            if status == 503:
                self.assertIn(api_case.HOST, answer.message)
                self.assertIn("Retry-After", answer.headers)

    def test_nodes_and_ports_come_change_and_go(self) -> None:
        node = self.node(name="new")["uuid"]
        self.come_change_and_go("/v1/ports", {"node_uuid": node, "address": "52:54:00:00:00:02"})
        self.come_change_and_go("/v1/portgroups", {"node_uuid": node})
        patched = self.good("PATCH", f"/v1/nodes/{node}", [{"op": "add", "path": "/driver_info/a", "value": 1}])
        self.assertEqual({"a": 1}, patched["driver_info"])
        moved = [{"op": "replace", "path": "/boot_interface", "value": "ipxe"}]
        self.assertEqual("ipxe", self.good("PATCH", f"/v1/nodes/{node}", moved)["boot_interface"])
        for method, url, body in (
            ("PUT", "maintenance", {"reason": "hot"}),
            ("DELETE", "maintenance", None),
            ("PUT", "traits", {"traits": ["CUSTOM_A"]}),
            ("DELETE", "traits", None),
        ):
            self.good(method, f"/v1/nodes/{node}/{url}", body)
        self.good("DELETE", f"/v1/nodes/{node}")
        self.assertEqual([], self.conductor.asked)

    def come_change_and_go(self, path: str, body: dict[str, Any]) -> None:
        made = self.good("POST", path, body)["uuid"]
        self.assertEqual({"a": 1}, self.good("PATCH", f"{path}/{made}", world.ADD)["extra"])
        self.good("DELETE", f"{path}/{made}")

    def test_what_a_conductor_would_check_first_is_accepted_and_checked_when_it_begins(self) -> None:
        for verb, state in (("active", states.AVAILABLE), ("inspect", states.MANAGEABLE)):
            nodes.set_always(self.db, self.uuid, {"provision_state": state, "flow": None})
            self.good("PUT", "/v1/nodes/n/states/provision", {"target": verb})
            self.assertEqual({"project": None, "roles": []}, nodes.get(self.db, self.uuid).request["unchecked"])

    def test_a_dry_run_is_refused_as_no_conductor_can_check_it(self) -> None:
        nodes.set_always(self.db, self.uuid, {"provision_state": states.AVAILABLE})
        body = {"action": "provision", "nodes": ["n"], "body": {"target": "active"}, "dry_run": True}
        (answer,) = self.good("POST", "/ingot/v1/bulk", body)["results"]
        self.assertEqual(503, answer["status"], answer)

    def test_work_is_accepted_and_waits(self) -> None:
        for url, body in (("power", {"target": "power on"}), ("provision", {"target": "provide"})):
            self.assertEqual(202, self.api("PUT", f"/v1/nodes/n/states/{url}", body).status)
        self.assertEqual(2, self.client.lost_wakeups)


class Unregistered(Unanswered):
    """There is no conductor at all: which drivers and interfaces there are is unknown."""

    def setUp(self) -> None:
        super().setUp()
        known = conductors.get(self.db, api_case.HOST, 60)
        conductors.unregister(self.db, conductors.Entry(known.id, None))
        self.last_seen(clock.after(-7 * 24 * 3600))

    def test_one_that_was_stopped_just_now_may_come_back(self) -> None:
        self.last_seen(clock.now())
        for method, url, body in (
            ("POST", "/v1/nodes", api_case.NODE),
            ("GET", "/v1/drivers/fake-hardware", None),
        ):
            self.assertIn(f"just stopped, when it is back: {api_case.HOST}", self.refused(503, method, url, body))

    def test_what_the_database_knows_is_shown(self) -> None:
        for route in self.reads():
            if not route.path.startswith(ASKED) and not route.path.startswith("/v1/drivers/"):
                status = 404 if route.path in EMPTY else route.operations["GET"].answer.status
                self.assertEqual(status, self.api("GET", self.url(route.path)).status, route.path)

    def test_nodes_and_ports_come_change_and_go(self) -> None:
        self.assertIn("fake-hardware", self.refused(400, "POST", "/v1/nodes", api_case.NODE))
        self.come_change_and_go("/v1/ports", {"node_uuid": self.uuid, "address": "52:54:00:00:00:02"})
        self.good("PATCH", "/v1/nodes/n", world.ADD)
        self.good("DELETE", "/v1/nodes/n")


class Silent(Unanswered):
    """The database was away: the conductors live, but have not been able to say so yet."""

    def setUp(self) -> None:
        super().setUp()
        known = conductors.get(self.db, api_case.HOST, 60)
        self.entry_of_host = conductors.Entry(known.id, None)
        self.last_seen(clock.after(-7 * 24 * 3600))

    def test_what_the_database_knows_is_shown(self) -> None:
        for route in self.reads():
            asked = route.path.startswith(ASKED) or route.path.startswith("/v1/drivers/")
            expected = 503 if asked else 404 if route.path in EMPTY else route.operations["GET"].answer.status
            answer = self.api("GET", self.url(route.path))
            self.assertEqual(expected, answer.status, f"{route.path}: {answer}")
            if asked:
                self.assertIn("Retry-After", answer.headers)

    def test_nodes_and_ports_come_change_and_go(self) -> None:
        self.assertIn(api_case.HOST, self.refused(503, "POST", "/v1/nodes", api_case.NODE))
        conductors.touch(self.db, self.entry_of_host)
        super().test_nodes_and_ports_come_change_and_go()

    def test_a_driver_that_never_existed_is_a_bad_request(self) -> None:
        self.refused(400, "POST", "/v1/nodes", {"driver": "ipmi"})
        self.refused(404, "GET", "/v1/drivers/ipmi")
