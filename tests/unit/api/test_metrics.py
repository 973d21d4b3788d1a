"""What an API counts: requests by route, whatever clients make up; wake-ups and calls; nodes that are overdue."""

from typing import Any

from ingot.common import clock, errors, states
from tests import api_case, database, metric_values, server_case

COUNT = "ingot_api_requests_total"


class TestRequests(api_case.ApiCase):
    def count(self, method: str, route: str, status: str) -> float:
        return metric_values.read(COUNT, method=method, route=route, status=status)

    def test_they_are_counted_by_route_and_class_of_status(self) -> None:
        uuid = self.node()["uuid"]
        shown = "/v1/nodes/<node>"
        before = [self.count("GET", shown, status) for status in ("2xx", "4xx")]
        seconds = metric_values.read("ingot_api_request_duration_seconds_count", method="GET", route=shown)
        self.good("GET", f"/v1/nodes/{uuid}")
        self.refused(404, "GET", "/v1/nodes/nope")
        self.refused(400, "GET", f"/v1/nodes/{uuid}?fields=nope")
        after = [self.count("GET", shown, status) for status in ("2xx", "4xx")]
        self.assertEqual([before[0] + 1, before[1] + 2], after)
        measured = metric_values.read("ingot_api_request_duration_seconds_count", method="GET", route=shown)
        self.assertEqual(seconds + 3, measured)

    def test_what_clients_make_up_is_no_series(self) -> None:
        self.unchecked("GET", "/v1/nothing-0")
        self.unchecked("MADE-UP-0", "/v1/nodes")
        before = len(metric_values.list_series(COUNT)), self.count("GET", "none", "4xx")
        for number in range(1, 50):
            self.unchecked("GET", f"/v1/nothing-{number}")
            self.unchecked("GET", f"/v1/nodes/made-up-{number}/power")
            self.unchecked(f"MADE-UP-{number}", "/v1/nodes")
        self.assertEqual(
            (before[0], before[1] + 98), (len(metric_values.list_series(COUNT)), self.count("GET", "none", "4xx"))
        )

    def test_calls_and_wakeups_are_counted_by_outcome(self) -> None:
        uuid = self.node()["uuid"]

        def outcomes() -> dict[str, float]:
            names = ("answered", "refused", "unanswered")
            return {
                name: metric_values.read("ingot_rpc_calls_total", method="get_boot_device", outcome=name)
                for name in names
            }

        before = outcomes()
        path = f"/v1/nodes/{uuid}/management/boot_device"
        self.good("GET", path)
        self.conductor.answers["get_boot_device"] = errors.Conflict(reason="no")
        self.refused(409, "GET", path)
        self.bus.stop(api_case.HOST)
        self.refused(503, "GET", path)
        self.assertEqual({name: count + 1 for name, count in before.items()}, outcomes())

        lost = metric_values.read("ingot_wakeups_total", outcome="lost")
        self.good("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"})
        self.assertEqual(lost + 1, metric_values.read("ingot_wakeups_total", outcome="lost"))


class TestServer(server_case.ServerCase):
    def test_a_request_that_no_application_sees_is_counted(self) -> None:
        self.serve()
        before = metric_values.read(COUNT, method="other", route="none", status="4xx")
        self.assertIn("400", self.read(self.connect(b"no request\r\n\r\n")))
        self.assertEqual(before + 1, metric_values.read(COUNT, method="other", route="none", status="4xx"))

    def test_threads_and_connections_are_shown(self) -> None:
        self.serve()
        idle = self.connect(server_case.ASK)
        self.read_head(idle)
        self.assertEqual(1, metric_values.read("ingot_api_threads", state="most"))
        self.assertGreaterEqual(metric_values.read("ingot_api_connections"), 1)


class TestOverdue(api_case.ApiCase):
    def overdue(self, query: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.good("GET", f"/ingot/v1/overdue{query}")["nodes"]
        return found

    def test_nodes_are_listed_that_are_in_their_state_for_too_long(self) -> None:
        self.assertEqual([], self.overdue())
        for name, seconds in (("late", 4000), ("later", 5000), ("fine", 10)):
            since = clock.after(-seconds)
            database.make_node(self.db, name=name, provision_state=states.DEPLOYING, provision_updated_at=since)
        database.make_node(self.db, provision_state=states.ACTIVE, provision_updated_at=clock.after(-(10**7)))
        later, late = self.overdue()
        self.assertEqual(["later", "late"], [later["name"], late["name"]])
        self.assertEqual((states.DEPLOYING, 3600), (late["provision_state"], late["expected_seconds"]))
        self.assertLess(abs(late["seconds"] - 4000), 60)
        self.assertEqual(["later"], [node["name"] for node in self.overdue("?limit=1")])

    def test_limits_are_those_of_the_option(self) -> None:
        since = clock.after(-100)
        database.make_node(self.db, name="slow", provision_state=states.DEPLOYING, provision_updated_at=since)
        self.assertEqual([], self.overdue())
        self.conf.set_override("state_time_limits", "deploying:60", group="metrics")
        self.assertEqual(["slow"], [node["name"] for node in self.overdue()])
        self.conf.set_override("state_time_limits", "deploying:0", group="metrics")
        self.assertEqual([], self.overdue())
