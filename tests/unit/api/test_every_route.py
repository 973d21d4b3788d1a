"""What holds for every route: one walk over the table with all that must be refused, one with all that must be done."""

import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema
import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.api import routes
from ingot.api.web import fields, tables
from ingot.common import errors, masking
from tests import api_case, route_walk, world
from tests.route_walk import Visit

METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND"}
LIMIT = 2**20
REQUEST_ID = r"^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
REFERENCES = ("node_uuid", "node", "node_ident", "portgroup_uuid", "chassis_uuid", "parent_node")
SECRET = "correct horse"
WRONG: tuple[Any, ...] = (7, 1.5, True, SECRET, "", "\0", "x" * 70_000, [7], [SECRET], {"password": SECRET}, {}, [])
TEXTS = ("", "\0", "nope", "-1", "x" * 300, "a b", "é")

BROKEN: tuple[tuple[bytes, int, tuple[str, ...]], ...] = (
    (b'{"a": ', 400, ("not JSON",)),
    (b"a=b&c=d", 400, ("not JSON",)),
    (b"\xff", 400, ("not JSON",)),
    (b"null", 400, ("null",)),
    (b'{"a": "' + b"x" * LIMIT + b'"}', 413, ("too large", str(LIMIT), "faultcode")),
    (b'{"a": ' * 30 + b"1" + b"}" * 30, 400, ("too deep", "faultcode")),
)
"""Bodies that are no JSON, too large or too deep; the status and what the answer says."""

NOT_APPLICABLE = (
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
)
"""Operations of a patch that end it."""

NESTED: tuple[tuple[list[tuple[str, str, Any]], Any], ...] = (
    ([("add", "/extra/a", {"b": 1})], {"a": {"b": 1}}),
    ([("add", "/extra/a/c", [1]), ("replace", "/extra/a/b", 2)], {"a": {"b": 2, "c": [1]}}),
    ([("add", "/extra/a/c/-", 2), ("add", "/extra/a/c/0", 0)], {"a": {"b": 2, "c": [0, 1, 2]}}),
    ([("remove", "/extra/a/c/1", None), ("remove", "/extra/a/b", None)], {"a": {"c": [0, 2]}}),
    ([("add", "/extra/x~1y~0z", 1), ("remove", "/extra/a", None)], {"x/y~z": 1}),
    ([("remove", "/extra", None)], {}),
)
"""Patches one after the other, and what ``extra`` is after each."""

ADVICE = re.compile(
    r"of type|one of|at most|at least|expected|send |allowed|accepted|are:|must|can be|reserved|required|called by|"
    r"has \d|has: |leave |not a uuid|could not be found|cannot be found|enabled|before version|there is one|supports? ",
    re.IGNORECASE,
)
"""What tells a client how to go on."""


def parts(value: Any) -> list[str]:
    """Return the ways in which a message may show a value: whole, its beginning, its length, or what of it is wrong."""
    text = repr(masking.mask(value))
    whole = [text, json.dumps(value), str(value)] if len(text) < 100 else [text[:40], str(value)[:40]]
    if isinstance(value, str):
        whole.append(f"... {len(value)} characters ...")
    if isinstance(value, list):
        return whole + [part for inner in value for part in parts(inner)]
    return whole + [repr(key) for key in value] if isinstance(value, dict) else whole


def refused_values(field: fields.Field) -> Iterator[tuple[str, Any]]:
    """Return values that a field does not take, and whether its schema or its parser says so."""
    assert field.type
    fits = jsonschema.Draft202012Validator(field.type.schema)
    yield from (("values", value) for value in WRONG if not fits.is_valid(value))
    for value in (*WRONG, *TEXTS) if field.type.parse else ():
        if fits.is_valid(value):
            try:
                field.type.parse(field.name, value)
            except errors.Invalid:
                yield "parsed values", value


class EveryRoute(route_walk.Walk):
    def setUp(self) -> None:
        super().setUp()
        for own in ("provision", "inspection"):
            self.conf.set_override(f"max_json_body_size_{own}", LIMIT // 1024, group="api")
        self.fields_at: dict[tuple[str, int], frozenset[str]] = {}

    def test_refusals(self) -> None:
        checks = (
            self.check_deeper_url, self.check_identifier, self.check_accept,
            self.check_unknown_parameter, self.check_repeated_parameter, self.check_parameter_value,
            self.check_version, self.check_shown_fields, self.check_broken_body, self.check_body_type,
            self.check_unknown_key, self.check_missing_key, self.check_value, self.check_reference,
            self.check_patched_value, self.check_patched_field, self.check_patch_operation, self.check_failed_patch,
        )  # fmt: skip
        least = {
            "routes": 80, "parameters": 60, "keys": 40, "patched keys": 35, "selected": 100, "sorted": 80,
            "fields": 180, "values": 900, "parsed values": 200, "patched values": 500, "parameter values": 800,
            "body types": 40, "failed patches": 8 * len(NOT_APPLICABLE), "references": 9,
        }  # fmt: skip
        self.walk(self.visits(), checks, least)

    def test_requests_that_fit(self) -> None:
        order = ("GET", "PATCH", "POST", "PUT", "DELETE")
        checks = (self.check_slash, self.check_nested_patch, self.check_from_version, self.check_answer)
        visits = [visit for visit in self.visits() if not visit.stream]
        least = {
            "routes": 80, "parameters": 60, "keys": 40, "patched keys": 35, "selected": 100, "sorted": 80,
            "nested patches": 8 * len(NESTED), "answers": 150,
        }  # fmt: skip
        self.walk(sorted(visits, key=lambda visit: order.index(visit.method)), checks, least)

    def test_methods(self) -> None:
        """Methods that a route does not have are refused with those that it has; OPTIONS lists them.

        Not part of the walk, which does not visit a route without operations.
        """
        self.assertIn({}, [route.operations for route in routes.ROUTES])
        for route in routes.ROUTES:
            served = [
                name for method in route.operations for name in ((method, "HEAD") if method == "GET" else (method,))
            ]
            url, allowed = self.url(route.path), ", ".join(served)
            for method in {*METHODS, "HEAD"} - set(served):
                about = f"{method} {route.path}"
                answer = self.api(method, url, None if method == "HEAD" else {})
                self.assertEqual((405, allowed), (answer.status, answer.headers["Allow"]), about)
                for part in (method, *served) if method != "HEAD" else ():
                    self.assertIn(part, answer.message, about)
            answer = self.api("OPTIONS", url)
            self.assertEqual((200, "", allowed), (answer.status, answer.text, answer.headers["Allow"]), route.path)
            self.assertNotIn("Content-Type", answer.headers)

    # URLs

    def check_deeper_url(self, visit: Visit) -> Iterator[str]:
        if visit.first:
            answer = self.api("GET", visit.url.partition("?")[0].rstrip("/") + "/a/b/c/d")
            self.assertEqual(404, answer.status)
            yield "deeper URLs"

    def check_slash(self, visit: Visit) -> Iterator[str]:
        """Check that a slash at the end changes nothing."""
        if visit.method == "GET":
            path, mark, query = visit.url.partition("?")
            plain, slashed = self.api("GET", visit.url), self.api("GET", f"{path.rstrip('/')}/{mark}{query}")
            self.assertEqual(plain.status, slashed.status, slashed)
            yield "slashes"

    def check_identifier(self, visit: Visit) -> Iterator[str]:
        """Check that an answer names an object that does not exist or cannot have such a name."""
        path = visit.route.path
        if "<" not in path or "<mac>" in path or "<ticket>" in path:  # strangers see nothing
            return
        for given in ("missing", "a b", "x" * 300):
            url = re.sub(r"<\w+>", "x", re.sub(r"<\w+>", quote(given), path, count=1))
            answer = self.api(visit.method, url, visit.body)
            if answer.status >= 400 and not ("vendor_passthru" in url and answer.status == 400):
                self.assertIn(answer.status, (400, 404), f"{url}: {answer}")
                if answer.status == 404 and "resource could not be found" not in answer.message:
                    self.assertIn(given[:40], answer.message, url)
            yield "identifiers"

    # Headers and versions

    def check_signed(self, answer: api_case.Answer) -> None:
        """Check that every answer has a request id, and one that refuses a message in JSON."""
        self.assertLess(answer.status, 500, answer)
        self.assertRegex(answer.headers["OpenStack-Request-Id"], REQUEST_ID, answer)
        self.assertEqual(answer.headers["OpenStack-Request-Id"], answer.headers["X-OpenStack-Request-Id"])
        if answer.status >= 400:
            self.assertEqual("application/json", answer.headers["Content-Type"], answer)
            self.assertTrue(answer.message, answer)

    def check_answer(self, visit: Visit) -> Iterator[str]:
        answer = self.api(visit.method, visit.url, visit.body, Accept="*/*")
        self.check_signed(answer)
        if answer.status in (202, 204) and not visit.operation.answer.shows:
            self.assertEqual("", answer.text)
        self.assertEqual(answer.text != "", "Content-Type" in answer.headers, answer)
        if visit.method == "GET":
            self.check_head(visit, answer)
        names = ("Minimum-Version", "Maximum-Version", "Version")
        shown = tuple(answer.headers.get(f"X-OpenStack-Ironic-API-{name}") for name in names)
        self.assertEqual(("1.1", api_case.LATEST, api_case.LATEST), shown, answer)
        self.assertIn("X-OpenStack-Ironic-API-Version", answer.headers["Vary"])
        yield "answers"

    def check_head(self, visit: Visit, got: api_case.Answer) -> None:
        """Check that HEAD answers as GET, without the body."""
        head = self.api("HEAD", visit.url, None, Accept="*/*")
        self.assertEqual((got.status, ""), (head.status, head.text), visit.url)
        passes = visit.url.endswith(
            ("/overview", "/explanation", "/ingot/v1/conductors")
        )  # they say how long ago things were
        for name in ("Content-Type",) if passes else ("Content-Type", "Content-Length", "ETag"):
            self.assertEqual(got.headers.get(name), head.headers.get(name), visit.url)

    def check_accept(self, visit: Visit) -> Iterator[str]:
        """Check that answers are JSON or nothing; the root sends browsers to the web console."""
        if visit.operation.answer.media == "application/json" and visit.route.path != "/":
            answer = self.api(visit.method, visit.url, visit.body, Accept="text/html")
            self.assertEqual((406, True), (answer.status, "application/json" in answer.message), answer)
            yield "media"

    def check_version(self, visit: Visit) -> Iterator[str]:
        for newer in self.newer(visit):
            self.check_before(newer)
            yield newer.what

    def check_from_version(self, visit: Visit) -> Iterator[str]:
        for newer in self.newer(visit):
            self.check_from(newer)
            yield newer.what

    def check_shown_fields(self, visit: Visit) -> Iterator[str]:
        """Check that a field is shown from its version on."""
        if visit.method != "GET" or visit.route.any_version or not visit.shown or visit.shown[1]:
            return
        for field in visit.shown[0].fields.values():
            since = max(field.since, visit.since)
            self.assertEqual(not field.hidden, field.name in self.fields_in(visit, since), f"{field.name} at 1.{since}")
            if field.since > visit.since:
                self.assertNotIn(field.name, self.fields_in(visit, since - 1), f"1.{since - 1}")
            yield "fields"

    def fields_in(self, visit: Visit, minor: int) -> frozenset[str]:
        key = (visit.route.path, minor)
        if key not in self.fields_at:
            self.fields_at[key] = frozenset(self.good("GET", visit.url, version=f"1.{minor}"))
        return self.fields_at[key]

    # Parameters

    def check_unknown_parameter(self, visit: Visit) -> Iterator[str]:
        answer = self.api(visit.method, self.url(visit.route.path, "colour=red"), visit.body, Accept="*/*")
        self.check_signed(answer)
        self.assertEqual(400, answer.status, answer)
        for name in ("colour", *visit.operation.query):
            self.assertIn(name, answer.message)
        yield "unknown parameters"

    def check_repeated_parameter(self, visit: Visit) -> Iterator[str]:
        for param in visit.operation.query.values():
            if not param.repeats and f"{param.name}=" not in visit.url:
                url = self.url(visit.route.path, f"{param.name}=1&{param.name}=1")
                self.assertEqual(400, self.api(visit.method, url, []).status, url)
                yield "repeated parameters"

    def check_parameter_value(self, visit: Visit) -> Iterator[str]:
        for param in visit.operation.query.values() if not visit.stream else ():
            for value in TEXTS if f"{param.name}=" not in visit.url else ():
                url = self.url(visit.route.path, f"{param.name}={quote(value)}")
                answer = self.api(visit.method, url, visit.body)
                if answer.status in (400, 406):
                    self.check_message(answer, param.name, value)
                    yield "parameter values"

    def check_message(self, answer: api_case.Answer, name: str, value: Any) -> None:
        """Check that a refusal names field and value and says how to go on.

        It does not repeat secrets, and is not endless.
        """
        message, about = answer.message, f"{name} with {str(value)[:60]!r}: {answer}"
        self.assertEqual(400, answer.status, about)
        self.assertIn(name, message, about)
        self.assertRegex(message, ADVICE, about)
        self.assertLess(len(message), 2500, about)
        if masking.describe_value(name, value) == masking.MASK:
            self.assertNotIn(SECRET, message, about)
        elif "is a required property" not in message:
            self.assertTrue(any(part in message for part in parts(value)), about)

    # Bodies

    def check_broken_body(self, visit: Visit) -> Iterator[str]:
        for body, status, words in BROKEN if visit.operation.body is not None else ():
            answer = self.api(visit.method, visit.url, body)
            self.assertEqual(status, answer.status, answer)
            for part in words:
                self.assertIn(part, answer.text)
            yield "broken bodies"

    def check_body_type(self, visit: Visit) -> Iterator[str]:
        if visit.operation.body is not None:
            wrong: Any = {} if visit.operation.body is tables.PATCH_BODY else [1]
            answer = self.api(visit.method, visit.url, wrong)
            self.assertEqual(400, answer.status, answer)
            yield "body types"

    def check_unknown_key(self, visit: Visit) -> Iterator[str]:
        if isinstance(visit.operation.body, fields.Body):
            answer = self.api(visit.method, visit.url, {**visit.body, "colour": "red"})
            self.assertEqual(400, answer.status, answer)
            for name in ("colour", *(field.name for field in visit.keys)):
                self.assertIn(name, answer.message)
            yield "unknown keys"

    def declared(self, visit: Visit) -> list[fields.Field]:
        """Return the keys of a body that may be sent."""
        return [field for field in visit.keys if field.type and isinstance(visit.operation.body, fields.Body)]

    def check_missing_key(self, visit: Visit) -> Iterator[str]:
        for field in self.declared(visit):
            if field.required:
                body = {name: value for name, value in visit.body.items() if name != field.name}
                answer = self.api(visit.method, visit.url, body)
                self.assertEqual(
                    (400, True), (answer.status, f"'{field.name}' is a required" in answer.message), answer
                )
                yield "missing keys"

    def check_value(self, visit: Visit) -> Iterator[str]:
        for field in self.declared(visit):
            for what, value in refused_values(field):
                answer = self.api(visit.method, visit.url, {**visit.body, field.name: value})
                self.check_message(answer, field.name, value)
                yield what

    def check_reference(self, visit: Visit) -> Iterator[str]:
        """Check that the answer names a key that refers to a missing object, and that object."""
        gone = str(uuid.uuid4())
        for field in (field for field in self.declared(visit) if field.name in REFERENCES):
            body = {name: value for name, value in visit.body.items() if name != "node_uuid"}
            needed = {"node_uuid": self.uuid} if field.name == "portgroup_uuid" else {}
            answer = self.api(visit.method, visit.url, {**body, **needed, field.name: gone})
            self.assertEqual((400, True), (answer.status, f"{field.name}: " in answer.message), answer)
            self.assertIn(gone, answer.message)
            yield "references"

    # Patches

    def check_patched_value(self, visit: Visit) -> Iterator[str]:
        for field in visit.patched.patchable.values() if visit.patched else ():
            for value in (value for what, value in refused_values(field) if what == "values"):
                answer = self.api("PATCH", visit.url, [{"op": "add", "path": f"/{field.name}", "value": value}])
                self.check_message(answer, field.name, value)
                yield "patched values"

    def check_patched_field(self, visit: Visit) -> Iterator[str]:
        for name in ("colour", "uuid", "links") if visit.patched else ():
            assert visit.patched
            message = self.refused(400, "PATCH", visit.url, [{"op": "replace", "path": f"/{name}", "value": 1}])
            for part in (name, *visit.patched.patchable):
                self.assertIn(part, message)
            yield "patched fields"

    def check_patch_operation(self, visit: Visit) -> Iterator[str]:
        if visit.patched and "extra" in visit.patched.fields:
            for operation, expected in (
                ({"op": "remove", "path": "/extra/a/b"}, "/extra/a/b"),
                ({"op": "replace", "path": "/extra/a", "value": 1}, "/extra/a"),
                ({"op": "move", "path": "/extra"}, "move"),
                ({"op": "add", "path": "extra"}, "extra"),
                ({"path": "/extra"}, "'op' is a required"),
            ):
                self.assertIn(expected, self.refused(400, "PATCH", visit.url, [operation]), operation)
                yield "patch operations"

    def has_extra(self, visit: Visit) -> bool:
        """Return whether a patch can change ``extra``, once for each kind of object."""
        return bool(visit.patched and "extra" in visit.patched.fields and "deploy-templates" not in visit.url)

    def check_failed_patch(self, visit: Visit) -> Iterator[str]:
        """Check that a patch that cannot be applied whole changes nothing."""
        if self.has_extra(visit):
            before = self.api("GET", visit.url)
            for op, path in NOT_APPLICABLE:
                answer = self.api("PATCH", visit.url, [*world.ADD, {"op": op, "path": path, "value": 1}])
                self.assertEqual(400, answer.status, f"{op} {path}: {answer}")
                self.assertTrue(answer.message)
                yield "failed patches"
            after = self.api("GET", visit.url)
            self.assertEqual((before.text, before.headers["ETag"]), (after.text, after.headers["ETag"]))

    def check_nested_patch(self, visit: Visit) -> Iterator[str]:
        for operations, after in NESTED if self.has_extra(visit) else ():
            sent = [{"op": op, "path": path, "value": value} for op, path, value in operations]
            self.assertEqual(after, self.good("PATCH", visit.url, sent)["extra"], sent)
            yield "nested patches"


class Objects(world.WorldCase):
    """How objects are named in URLs."""

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

    def test_bodies_are_json_whatever_their_type_says(self) -> None:
        for kind in ("application/json", "text/plain", "application/json-patch+json", ""):
            answer = self.http.post("/v1/chassis", data=b'{"description": "d"}', content_type=kind)
            self.assertEqual(201, answer.status_code, kind)
        latest = {"X-OpenStack-Ironic-API-Version": api_case.LATEST}
        patched = self.http.patch("/v1/nodes/n", data=json.dumps(world.ADD), headers=latest, content_type="text/plain")
        self.assertEqual(200, patched.status_code)


class Deadlocks(world.WorldCase):
    """The database ends one of two transactions that wait for each other: no client sees it."""

    @contextlib.contextmanager
    def deadlock(self) -> Iterator[list[str]]:
        """End the first write of the block with a deadlock."""
        ended: list[str] = []

        def end(_c: Any, _cursor: Any, text: str, *_rest: Any) -> None:
            if not ended and text.startswith(("INSERT", "UPDATE", "DELETE")):
                ended.append(text)
                raise db_exc.DBDeadlock

        sa.event.listen(self.db.engine, "before_cursor_execute", end)
        try:
            yield ended
        finally:
            sa.event.remove(self.db.engine, "before_cursor_execute", end)

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
