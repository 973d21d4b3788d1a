"""Refusals say what was wrong: the field, the value, and what is allowed instead; asked of all tables there are."""

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import jsonschema

from ingot.api import collection, fields, patch, provision
from ingot.common import errors, masking, states
from ingot.db import nodes
from tests import world

SECRET = "correct horse"
WRONG: tuple[Any, ...] = (7, 1.5, True, SECRET, "", "\0", "x" * 70_000, [7], [SECRET], {"password": SECRET}, {}, [])
TEXTS = ("", "\0", "nope", "-1", "x" * 300, "a b", "é")

SAID = re.compile(
    r"of type|one of|at most|at least|expected|send |allowed|accepted|are:|must|can be|reserved|required|called by|"
    r"has \d|has: |leave |not a uuid|could not be found|cannot be found|enabled|before version|there is one|supports? ",
    re.IGNORECASE,
)
"""What tells a client how to go on."""


def parts(value: Any) -> list[str]:
    """The ways in which a message may show a value: whole, its beginning, or what of it is wrong."""
    text = repr(masking.mask(value))
    whole = [text, json.dumps(value), str(value)] if len(text) < 100 else [text[:40], str(value)[:40]]
    if isinstance(value, list):
        return whole + [part for inner in value for part in parts(inner)]
    return whole + [repr(key) for key in value] if isinstance(value, dict) else whole


class Refused(world.WorldCase):
    def check(self, told: str, status: int, message: str, name: str, value: Any) -> None:
        about = f"{told} with {str(value)[:60]!r}: {status} {message[:600]}"
        self.assertIn(name, message, about)
        self.assertRegex(message, SAID, about)
        self.assertLess(len(message), 2500, about)
        if masking.shown(name, value) == masking.MASK:
            self.assertNotIn(SECRET, message, about)
        elif "is a required property" not in message:
            self.assertTrue(any(part in message for part in parts(value)), about)


class Keys(Refused):
    """Of request bodies."""

    def declared(self) -> Iterator[tuple[str, str, fields.Field]]:
        for route, method, operation in self.operations():
            if isinstance(operation.body, fields.Body):
                for field in operation.body.declared:
                    if field.kind:
                        yield method, route.path, field

    def test_with_wrong_values(self) -> None:
        asked = 0
        for method, path, field in self.declared():
            assert field.kind
            fits = jsonschema.Draft202012Validator(field.kind.schema)
            for value in WRONG:
                if fits.is_valid(value):
                    continue
                body = {**self.body(path, method), field.name: value}
                answer = self.api(method, self.url(path), body)
                self.assertEqual(400, answer.status, f"{method} {path} {field.name} {value!r:.60}: {answer}")
                self.check(f"{method} {path}", answer.status, answer.message, field.name, value)
                asked += 1
        self.assertGreater(asked, 900)

    def test_that_are_missing(self) -> None:
        for method, path, field in self.declared():
            if field.required:
                body = {name: value for name, value in self.body(path, method).items() if name != field.name}
                answer = self.api(method, self.url(path), body)
                told = f"{method} {path} {field.name}: {answer}"
                self.assertEqual((400, True), (answer.status, f"'{field.name}' is a required" in answer.message), told)

    def test_that_name_what_is_not_there(self) -> None:
        gone, asked = str(uuid.uuid4()), 0
        for method, path, field in self.declared():
            if field.name in ("node_uuid", "node", "node_ident", "portgroup_uuid", "chassis_uuid", "parent_node"):
                body = {name: value for name, value in self.body(path, method).items() if name != "node_uuid"}
                needed = {"node_uuid": self.uuid} if field.name == "portgroup_uuid" else {}
                answer = self.api(method, self.url(path), {**body, **needed, field.name: gone})
                told = f"{method} {path} {field.name}: {answer}"
                self.assertEqual((400, True), (answer.status, f"{field.name}: " in answer.message), told)
                self.assertIn(gone, answer.message)
                asked += 1
        self.assertEqual(9, asked)

    def test_whose_parser_refuses_them(self) -> None:
        asked = 0
        for method, path, field in self.declared():
            assert field.kind
            if not field.kind.parse:
                continue
            fits = jsonschema.Draft202012Validator(field.kind.schema)
            for value in (value for value in (*WRONG, *TEXTS) if fits.is_valid(value)):
                try:
                    field.kind.parse(field.name, value)
                except errors.Invalid:
                    answer = self.api(method, self.url(path), {**self.body(path, method), field.name: value})
                    self.assertEqual(400, answer.status, f"{method} {path} {field.name} {value!r:.60}: {answer}")
                    self.check(f"{method} {path}", answer.status, answer.message, field.name, value)
                    asked += 1
        self.assertGreater(asked, 200)


class Patched(Refused):
    def tables(self) -> Iterator[tuple[str, fields.Table]]:
        for route, _method, operation in self.operations():
            if operation.body is patch.BODY:
                assert isinstance(operation.answer.shows, collection.One)
                yield self.url(route.path), operation.answer.shows.table

    def test_values_that_do_not_fit(self) -> None:
        asked = 0
        for url, table in self.tables():
            for field in table.patchable().values():
                assert field.kind
                fits = jsonschema.Draft202012Validator(field.kind.schema)
                for value in WRONG:
                    if not fits.is_valid(value):
                        answer = self.api("PATCH", url, [{"op": "add", "path": f"/{field.name}", "value": value}])
                        self.assertEqual(400, answer.status, f"{url} {field.name} {value!r:.60}: {answer}")
                        self.check(f"PATCH {url}", answer.status, answer.message, field.name, value)
                        asked += 1
        self.assertGreater(asked, 500)

    def test_fields_that_there_are_not(self) -> None:
        for url, table in self.tables():
            for name in ("colour", "uuid", "links"):
                message = self.refused(400, "PATCH", url, [{"op": "replace", "path": f"/{name}", "value": 1}])
                for told in (name, *table.patchable()):
                    self.assertIn(told, message)

    def test_operations_that_cannot_be_done(self) -> None:
        for url in (url for url, table in self.tables() if "extra" in table.fields):
            for operation, told in (
                ({"op": "remove", "path": "/extra/a/b"}, "/extra/a/b"),
                ({"op": "replace", "path": "/extra/a", "value": 1}, "/extra/a"),
                ({"op": "move", "path": "/extra"}, "move"),
                ({"op": "add", "path": "extra"}, "extra"),
                ({"path": "/extra"}, "'op' is a required"),
            ):
                self.assertIn(told, self.refused(400, "PATCH", url, [operation]), f"{url} {operation}")


class Parameters(Refused):
    def test_that_cannot_be_parsed(self) -> None:
        asked = 0
        for route, method, operation in self.operations():
            for param in operation.query.values():
                if f"{param.name}=" in self.url(route.path):
                    continue
                for value in TEXTS:
                    url = self.url(route.path, f"{param.name}={quote(value)}")
                    if route.path == "/ingot/v1/events":
                        continue  # it does not end where it is not refused
                    answer = self.api(method, url, self.body(route.path, method))
                    if answer.status in (400, 406):
                        self.check(f"{method} {route.path}", answer.status, answer.message, param.name, value)
                        asked += 1
                        self.assertEqual(400, answer.status, f"{url}: {answer}")
        self.assertGreater(asked, 800)


class Urls(Refused):
    def test_of_what_is_not_there_or_cannot_be_called_so(self) -> None:
        for route, method, _operation in self.operations():
            if "<" not in route.path or "<mac>" in route.path or "<ticket>" in route.path:  # strangers are told nothing
                continue
            for given in ("nobody", "a b", "x" * 300):
                url = re.sub(r"<\w+>", quote(given), route.path, count=1)
                url = re.sub(r"<\w+>", "x", url)
                answer = self.api(method, url, self.body(route.path, method))
                if answer.status < 400 or ("vendor_passthru" in url and answer.status == 400):
                    continue
                about = f"{method} {url}: {answer}"
                self.assertIn(answer.status, (400, 404), about)
                if answer.status == 404 and "resource could not be found" not in answer.message:
                    self.assertIn(given[:40], answer.message, about)

    def test_of_newer_versions(self) -> None:
        for route, method, _operation in self.operations():
            since = route.needs(method)
            if since > 1 and not route.any_version:
                answer = self.api(method, self.url(route.path), self.body(route.path, method), f"1.{since - 1}")
                for told in (method, route.path, f"1.{since} or newer"):
                    self.assertIn(told, answer.message)

    def test_of_versions_that_there_are_not(self) -> None:
        for given in ("1.0", "1.999", "2.1", "one", "1", "1.1.1"):
            message = self.refused(406, "GET", "/v1/nodes", version=given)
            for told in (given, "1.1 to 1.115", "latest"):
                self.assertIn(told, message)


class States(Refused):
    def test_that_allow_no_such_request(self) -> None:
        arguments: dict[str, dict[str, Any]] = {
            "clean": {"clean_steps": [{"interface": "deploy", "step": "x"}]},
            "service": {"service_steps": [{"interface": "deploy", "step": "x"}]},
            "rescue": {"rescue_password": SECRET},
        }
        asked = 0
        for state in sorted(states.ALL):
            nodes.set_always(self.db, self.uuid, {"provision_state": state})
            for verb in states.VERBS:
                if states.asked_for(state, verb) is None:
                    answer = self.api(
                        "PUT", "/v1/nodes/n/states/provision", {"target": verb, **arguments.get(verb, {})}
                    )
                    self.assertEqual(400, answer.status, answer)
                    for told in (f'"{verb}"', self.uuid, f'"{state}"', "Possible here: "):
                        self.assertIn(told, answer.message)
                    for other in states.allowed_verbs(state):
                        self.assertIn(other, answer.message)
                    asked += 1
        self.assertGreater(asked, 350)

    def test_that_allow_no_change(self) -> None:
        for state in sorted(states.ALL - states.UPDATE_ALLOWED):
            nodes.set_always(self.db, self.uuid, {"provision_state": state})
            message = self.refused(409, "PATCH", "/v1/nodes/n", world.ADD)
            for told in (self.uuid, state, *states.UPDATE_ALLOWED):
                self.assertIn(told, message)

    def test_for_which_arguments_are_meant(self) -> None:
        for name, argument in provision.ARGUMENTS.items():
            value = {"configdrive": "aGVsbG8=", "disable_ramdisk": True, "runbook": "CUSTOM_R", "rescue_password": "x"}
            for verb in states.VERBS.keys() - argument.verbs.keys():
                body = {"target": verb, name: value.get(name, [world.STEP])}
                answer = self.api("PUT", "/v1/nodes/n/states/provision", body)
                self.assertEqual(400, answer.status, answer)
                if f'"{name}" is only valid' in answer.message:
                    for told in (verb, *argument.verbs):
                        self.assertIn(told, answer.message)
