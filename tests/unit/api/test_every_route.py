"""The generic behaviour of the API on every URL, made from the table of routes."""

import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.api import fields, patch, routes
from ingot.api.call import Operation
from tests import api_case, world

LIMIT = 2**20
STREAM = "text/event-stream"  # does not end

REQUEST_ID = r"^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


class Methods(world.WorldCase):
    def test_head_is_not_served_and_told_what_is(self) -> None:
        for route in routes.ROUTES:
            answer = self.api("HEAD", self.url(route.path))
            self.assertEqual((405, ", ".join(route.operations)), (answer.status, answer.headers["Allow"]), route.path)

    def test_options_tells_the_methods(self) -> None:
        for route in routes.ROUTES:
            answer = self.api("OPTIONS", self.url(route.path))
            told = (answer.status, answer.text, answer.headers["Allow"])
            self.assertEqual((200, "", ", ".join(route.operations)), told, route.path)

    def test_any_other_method_is_refused_with_those_there_are(self) -> None:
        for route in routes.ROUTES:
            for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"} - set(route.operations):
                answer = self.api(method, self.url(route.path), {})
                self.assertEqual(
                    (405, ", ".join(route.operations)), (answer.status, answer.headers["Allow"]), route.path
                )
                for told in (method, *route.operations):
                    self.assertIn(told, answer.message)


class Answers(world.WorldCase):
    def test_have_a_request_id_and_a_content_type_whatever_they_say(self) -> None:
        for route, method, operation in self.operations():
            if operation.answer.media == STREAM:
                continue
            for query in ("", "colour=red"):
                body = self.body(route.path, method)
                answer = self.api(method, self.url(route.path, query), body, Accept="*/*")
                told = f"{method} {route.path}: {answer}"
                self.assertLess(answer.status, 500, told)
                self.assertRegex(answer.headers["OpenStack-Request-Id"], REQUEST_ID, told)
                self.assertEqual(answer.headers["OpenStack-Request-Id"], answer.headers["X-OpenStack-Request-Id"])
                if answer.status >= 400:
                    self.assertEqual("application/json", answer.headers["Content-Type"], told)
                    self.assertTrue(answer.message, told)
                if answer.status in (202, 204) and not operation.answer.shows:
                    self.assertEqual("", answer.text, told)

    def test_are_json_or_nothing(self) -> None:
        for route, method, _operation in self.operations():
            if not route.text:
                answer = self.api(method, self.url(route.path), self.body(route.path, method), Accept="text/html")
                self.assertEqual((406, True), (answer.status, "application/json" in answer.message), route.path)

    def test_name_range_and_version(self) -> None:
        for route, method, operation in self.operations():
            if operation.answer.media == STREAM:
                continue
            answer = self.api(method, self.url(route.path), self.body(route.path, method), "1.115")
            names = ("Minimum-Version", "Maximum-Version", "Version")
            told = tuple(answer.headers.get(f"X-OpenStack-Ironic-API-{name}") for name in names)
            self.assertEqual(("1.1", "1.115", "1.115"), told, f"{method} {route.path}: {answer}")
            self.assertIn("X-OpenStack-Ironic-API-Version", answer.headers["Vary"])


class Urls(world.WorldCase):
    def test_may_end_with_a_slash(self) -> None:
        for route, method, operation in self.operations():
            if method == "GET" and operation.answer.media != STREAM:
                path, mark, query = self.url(route.path).partition("?")
                plain, slashed = (
                    self.api("GET", path + mark + query),
                    self.api("GET", f"{path.rstrip('/')}/{mark}{query}"),
                )
                self.assertEqual(plain.status, slashed.status, f"{route.path}: {slashed}")

    def test_that_nobody_serves_are_404(self) -> None:
        for route in routes.ROUTES:
            answer = self.api("GET", self.url(route.path).partition("?")[0].rstrip("/") + "/a/b/c/d")
            self.assertEqual(404, answer.status, route.path)

    def test_parameters_that_nobody_knows_are_named_with_those_there_are(self) -> None:
        for route, method, operation in self.operations():
            answer = self.api(method, self.url(route.path, "colour=red"), self.body(route.path, method))
            self.assertEqual(400, answer.status, f"{method} {route.path}: {answer}")
            self.assertIn("colour", answer.message)
            for name in operation.query:
                self.assertIn(name, answer.message)

    def test_parameters_are_given_once(self) -> None:
        for route, method, operation in self.operations():
            for param in operation.query.values():
                if not param.repeats and f"{param.name}=" not in self.url(route.path):
                    answer = self.api(method, self.url(route.path, f"{param.name}=1&{param.name}=1"), [])
                    self.assertEqual(400, answer.status, f"{method} {route.path} {param.name}: {answer}")

    def test_uuids_are_found_in_any_spelling(self) -> None:
        for collection, known in self.made.items():
            plain = self.good("GET", f"{collection}/{known}")
            for spelled in (known.upper(), known.replace("-", ""), f"{{{known}}}"):
                self.assertEqual(plain, self.good("GET", f"{collection}/{spelled}"), f"{collection}/{spelled}")

    def test_names_stand_for_objects_that_have_them(self) -> None:
        for collection, known in self.made.items():
            name = self.good("GET", f"{collection}/{known}").get("name")
            if name:
                self.assertEqual(known, self.good("GET", f"{collection}/{name}")["uuid"])
                self.assertEqual(known, self.good("PATCH", f"{collection}/{name}", world.ADD)["uuid"])

    def test_what_is_not_there_is_404_and_what_names_nothing_is_400(self) -> None:
        for collection in self.made:
            gone = str(uuid.uuid4())
            for method, body in (("GET", None), ("PATCH", world.ADD), ("DELETE", None)):
                self.assertIn(gone, self.refused(404, method, f"{collection}/{gone}", body))
            for wrong in ("a%20b", "%00", "x" * 300, "%F0%9F%92%A5", "a,b"):
                answer = self.api("GET", f"{collection}/{wrong}")
                self.assertIn(answer.status, (400, 404), f"{collection}/{wrong}: {answer}")


class Bodies(world.WorldCase):
    """Whatever takes a body takes only one that is JSON, not too large, not too deep, and of the declared form."""

    def taking(self) -> list[tuple[str, str, Operation]]:
        found = [(route.path, method, op) for route, method, op in self.operations() if op.body is not None]
        self.assertGreater(len(found), 40)
        return found

    def refused_everywhere(self, body: bytes, status: int, *told: str) -> None:
        for path, method, _operation in self.taking():
            answer = self.api(method, self.url(path), body)
            self.assertEqual(status, answer.status, f"{method} {path}: {answer}")
            for words in told:
                self.assertIn(words, answer.text, f"{method} {path}")

    def test_that_are_no_json(self) -> None:
        self.refused_everywhere(b'{"a": ', 400, "not JSON")
        self.refused_everywhere(b"a=b&c=d", 400, "not JSON")
        self.refused_everywhere(b"\xff", 400, "not JSON")
        self.refused_everywhere(b"null", 400, "null")

    def test_that_are_too_large(self) -> None:
        self.refused_everywhere(b'{"a": "' + b"x" * LIMIT + b'"}', 413, "too large", str(LIMIT), "faultcode")

    def test_that_are_too_deep(self) -> None:
        self.refused_everywhere(b'{"a": ' * 30 + b"1" + b"}" * 30, 400, "too deep", "faultcode")

    def test_of_another_type(self) -> None:
        for path, method, operation in self.taking():
            wrong: Any = {} if operation.body is patch.BODY else [1]
            answer = self.api(method, self.url(path), wrong)
            self.assertEqual(400, answer.status, f"{method} {path}: {answer}")

    def test_with_keys_that_nobody_knows(self) -> None:
        for path, method, operation in self.taking():
            if isinstance(operation.body, fields.Body):
                answer = self.api(method, self.url(path), {**self.body(path, method), "colour": "red"})
                self.assertEqual((400, True), (answer.status, "colour" in answer.message), f"{method} {path}: {answer}")
                for field in operation.body.declared:
                    self.assertIn(field.name, answer.message, f"{method} {path}")

    def test_are_json_whatever_their_type_says(self) -> None:
        for number, kind in enumerate(("application/json", "text/plain", "application/json-patch+json", "")):
            answer = self.http.post("/v1/chassis", data=b'{"description": "d"}', content_type=kind)
            self.assertEqual(201, answer.status_code, f"{number}: {kind}")
        patched = self.http.patch(
            "/v1/nodes/n", data=json.dumps(world.ADD), headers=self.latest(), content_type="text/plain"
        )
        self.assertEqual(200, patched.status_code)

    def latest(self) -> dict[str, str]:
        return {"X-OpenStack-Ironic-API-Version": api_case.LATEST}


class Patches(world.WorldCase):
    """JSON patch, the same on every resource that has it."""

    def test_nested_keys_are_added_replaced_and_removed(self) -> None:
        for url in self.patchable():
            for operations, after in (
                ([("add", "/extra/a", {"b": 1})], {"a": {"b": 1}}),
                ([("add", "/extra/a/c", [1]), ("replace", "/extra/a/b", 2)], {"a": {"b": 2, "c": [1]}}),
                ([("add", "/extra/a/c/-", 2), ("add", "/extra/a/c/0", 0)], {"a": {"b": 2, "c": [0, 1, 2]}}),
                ([("remove", "/extra/a/c/1", None), ("remove", "/extra/a/b", None)], {"a": {"c": [0, 2]}}),
                ([("add", "/extra/x~1y~0z", 1), ("remove", "/extra/a", None)], {"x/y~z": 1}),
                ([("remove", "/extra", None)], {}),
            ):
                sent = [{"op": op, "path": path, "value": value} for op, path, value in operations]
                self.assertEqual(after, self.good("PATCH", url, sent)["extra"], f"{url} {sent}")

    def test_what_cannot_be_applied_changes_nothing(self) -> None:
        for url in self.patchable():
            before = self.api("GET", url)
            for op, path in (
                ("remove", "/extra/nope"),
                ("replace", "/extra/nope/deeper"),
                ("add", "/extra/a/b/c"),
                ("add", "/nope"),
                ("replace", "/uuid"),
                ("remove", "/created_at"),
                ("move", "/extra"),
                ("test", "/extra"),
                ("add", "extra/a"),
                ("add", "/extra/"),
                ("add", "/extra/a~2b"),
            ):
                sent = [*world.ADD, {"op": op, "path": path, "value": 1}]
                answer = self.api("PATCH", url, sent)
                self.assertEqual(400, answer.status, f"{url} {op} {path}: {answer}")
                self.assertTrue(answer.message)
            after = self.api("GET", url)
            self.assertEqual((before.text, before.headers["ETag"]), (after.text, after.headers["ETag"]), url)

    def patchable(self) -> list[str]:
        """One URL for each kind of object, and nothing that is named twice."""
        urls = [self.url(route.path) for route, method, operation in self.operations() if operation.body is patch.BODY]
        found = [
            url for url in dict.fromkeys(urls) if "deploy-templates" not in url and "extra" in self.good("GET", url)
        ]
        self.assertGreater(len(found), 7)
        return found


class Deadlocks(world.WorldCase):
    """The database ends one of two transactions that wait for each other: nobody hears of it."""

    @contextlib.contextmanager
    def deadlock(self) -> Iterator[list[str]]:
        """The first write of the block ends like that."""
        ended: list[str] = []

        def end(_c: Any, _cursor: Any, text: str, *_rest: Any) -> None:
            if not ended and text.startswith(("INSERT", "UPDATE", "DELETE")):
                ended.append(text)
                raise db_exc.DBDeadlock

        for engine in self.db.engines:
            sa.event.listen(engine, "before_cursor_execute", end)
        try:
            yield ended
        finally:
            for engine in self.db.engines:
                sa.event.remove(engine, "before_cursor_execute", end)

    def test_are_tried_again(self) -> None:
        for path, known in reversed(self.made.items()):
            if "deploy-templates" in path:
                continue
            url = f"{path}/{known}"
            change = world.ADD if "extra" in self.good("GET", url) else [{"op": "add", "path": "/priority", "value": 1}]
            body = api_case.NODE if path == "/v1/nodes" else world.created(self.uuid)[path]
            for method, where, sent in (("PATCH", url, change), ("DELETE", url, None), ("POST", path, body)):
                with self.deadlock() as ended:
                    self.good(method, where, sent)
                self.assertEqual(1, len(ended), f"{method} {where}")

    def test_of_what_belongs_to_a_node_are_tried_again(self) -> None:
        for method, name, body in (
            ("PUT", "traits", {"traits": ["CUSTOM_B"]}),
            ("DELETE", "allocation", None),
            ("PUT", "maintenance", {}),
            ("PUT", "states/power", {"target": "power on"}),
            ("PUT", "states/raid", {}),
        ):
            with self.deadlock() as ended:
                self.good(method, f"/v1/nodes/n/{name}", body)
            self.assertEqual(1, len(ended), f"{method} {name}")
