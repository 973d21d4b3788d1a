"""How many statements a request may cost."""

from collections.abc import Iterator
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.api.web import collection
from ingot.common import states
from tests import api_case, database, sql_counter, world


class Budgets(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n", provision_state=states.MANAGEABLE)
        self.good("PUT", "/v1/nodes/n/traits/CUSTOM_A")
        # Fills the caches: ring, versions, selections.
        self.good("GET", "/v1/nodes/n")
        self.good("PUT", "/v1/nodes/n/states/power", {"target": "power on"})

    def statements(self, method: str, path: str, body: Any = None) -> int:
        with sql_counter.counting(self.db) as counted:
            self.good(method, path, body)
        return len(counted)

    def test_showing_a_node_costs_one_statement(self) -> None:
        self.assertEqual(1, self.statements("GET", "/v1/nodes/n"))
        self.assertEqual(1, self.statements("GET", "/v1/nodes/n?fields=uuid,power_state,chassis_uuid"))
        self.assertEqual(1, self.statements("GET", "/v1/nodes/n/states"))

    def test_json_goes_into_an_answer_as_it_is_kept(self) -> None:
        kept = '{"a":   [1,  2]}'
        with self.db.single() as connection:
            connection.execute(sa.text("UPDATE nodes SET extra = :kept, driver_info = :kept"), {"kept": kept})
        for path in ("/v1/nodes/n", "/v1/nodes/detail", "/v1/nodes?fields=extra"):
            self.assertEqual(1, self.api("GET", path).text.count(kept))  # not driver_info, which may hold secrets

    def test_a_statement_that_reads_nodes_is_built_once(self) -> None:
        paths = ("/v1/nodes/n", "/v1/nodes/n/states", "/v1/nodes/n?fields=name", "/v1/nodes", "/v1/nodes/detail")
        before = [self.good("GET", path) for path in paths]
        with fixtures.MonkeyPatch("sqlalchemy.select", None):
            self.assertEqual(before, [self.good("GET", path) for path in paths])

    def test_a_statement_of_a_list_is_built_once_for_all_values(self) -> None:
        other = database.make_node(self.db, name="other", provision_state=states.ENROLL, description="b_b")
        for path, first, second in (
            ("/v1/nodes?provision_state={}", states.MANAGEABLE, states.ENROLL),
            ("/v1/nodes?description_contains={}", "a", "_"),
            ("/v1/nodes?sort_key=name&marker={}", other.uuid, self.known.uuid),
            ("/v1/nodes/detail?owner={}", "one", "two"),
        ):
            self.good("GET", path.format(first))
            with fixtures.MonkeyPatch("sqlalchemy.select", None):
                found = self.good("GET", path.format(second))["nodes"]
            self.assertEqual([] if "owner" in path else ["other"], [node["name"] for node in found])

    def test_a_list_costs_the_same_however_long(self) -> None:
        costs = {}
        for length in (1, 50):
            while len(self.good("GET", "/v1/nodes")["nodes"]) < length:
                database.make_node(self.db, driver=f"driver-{length}")  # no conductor has these drivers
            costs[length] = [self.statements("GET", path) for path in ("/v1/nodes", "/v1/nodes/detail?limit=49")]
        self.assertEqual(costs[1][0], costs[50][0])
        self.assertEqual((1, 2), (costs[50][0], costs[50][1]))  # the second: does a conductor serve these drivers now?

    def test_writing_costs_little(self) -> None:
        self.assertEqual(2, self.statements("POST", "/v1/nodes", {**api_case.NODE, "name": "new"}))
        self.assertEqual(6, self.statements("DELETE", "/v1/nodes/new"))
        patch = [{"op": "add", "path": "/extra/a", "value": 1}]
        self.assertLessEqual(self.statements("PATCH", "/v1/nodes/n", patch), 4)
        port = {"node_uuid": self.known.uuid, "address": "52:54:00:00:00:01"}
        self.assertLessEqual(self.statements("POST", "/v1/ports", port), 4)  # one of them is its event
        self.assertEqual(2, self.statements("PUT", "/v1/nodes/n/states/provision", {"target": "provide"}))


class EveryResource(world.WorldCase):
    """Statements of lists, of single objects and of new ones, for all routes there are."""

    MOST_IN_LIST, MOST_IN_SHOW, MOST_IN_CREATE = 4, 4, 8
    MORE = 5

    def statements(self, method: str, url: str, body: Any = None) -> int:
        with sql_counter.counting(self.db) as counted:
            self.good(method, url, body)
        return len(counted)

    def lists(self) -> Iterator[str]:
        """Yield the URL of every list, with as little as possible and with all there is."""
        for route, method, operation in self.operations():
            if method == "GET" and isinstance(operation.answer.shows, collection.Page):
                yield self.url(route.path)
                if "detail" in operation.query:
                    yield self.url(route.path, "detail=true")

    def another(self, body: dict[str, Any], number: int) -> dict[str, Any]:
        """Return a body with other values where no two objects may have the same."""
        unlike = {
            "address": f"52:54:00:00:01:{number:02x}",
            "boot_index": number,
            "connector_id": f"c{number}",
            "name": f"{body.get('name')}_{number}",
        }
        return {name: unlike.get(name, value) for name, value in body.items()}

    def test_a_list_costs_the_same_however_long(self) -> None:
        urls = list(self.lists())
        self.assertGreater(len(urls), 30)
        before = {url: (self.good("GET", url), self.statements("GET", url))[1] for url in urls}
        for number in range(1, self.MORE):
            self.node(name=f"n{number}")
            for path, body in world.created(self.uuid).items():
                self.good("POST", path, self.another(body, number))
        after = {url: self.statements("GET", url) for url in urls}
        self.assertEqual(before, after)
        self.assertEqual({}, {url: count for url, count in after.items() if count > self.MOST_IN_LIST})

    def test_an_object_costs_little(self) -> None:
        counted = {}
        for route, method, operation in self.operations():
            if method == "GET" and isinstance(operation.answer.shows, collection.One):
                url = self.url(route.path)
                self.good("GET", url)  # fills the caches
                counted[url] = self.statements("GET", url)
        self.assertGreater(len(counted), 14)
        self.assertEqual({}, {url: count for url, count in counted.items() if count > self.MOST_IN_SHOW})

    def test_a_new_object_costs_little(self) -> None:
        counted = {}
        for route, method, operation in self.operations():
            if method == "POST" and operation.answer.status == 201:
                body = self.another(self.body(route.path, method), len(counted) + self.MORE)
                counted[route.path] = self.statements("POST", self.url(route.path), body)
        self.assertEqual({*self.made, "/ingot/v1/inbox/<ident>/accept", "/ingot/v1/session"}, set(counted))
        self.assertEqual({}, {path: count for path, count in counted.items() if count > self.MOST_IN_CREATE})
