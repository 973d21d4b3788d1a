"""Every API version: what it brought is not there one version before, and there from it on; made from the tables."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ingot.api import collection, fields, kinds, params, provision, routes, versions
from ingot.api.call import Operation
from ingot.common import states
from tests import api_case, world

TOO_NEW = ("needs API version", "minimal required API version")

SAMPLES: dict[Callable[[str, str], Any], str] = {
    kinds.flag: "true",
    kinds.uuid: "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
    kinds.mac: world.MAC,
    params.direction: "asc",
    params.limit: "1",
}
NAMED = {"fault": "power failure", "type": "dynamic", "provision_state": "manageable", "fields": "links"}

ELSEWHERE: dict[int, str] = {
    1: "the first",
    2: "tests.unit.api.test_fields.NodeValues.test_available_was_shown_as_null_before_1_2",
    10: "nothing: names are as free at every version (intended)",
    11: "tests.unit.api.test_every_version.Values.test_new_nodes_are_available_before_1_11_and_in_enroll_from_it_on",
    13: "tests.unit.api.test_provision",
    25: "nothing: a node leaves its chassis at every version (intended)",
    35: "tests.unit.api.test_every_version.Verbs.test_arguments",
    39: "tests.unit.api.test_every_version.Values.test_inspect_wait_is_inspecting_before_1_39",
    41: "tests.unit.api.test_provision",
    43: "tests.unit.api.test_every_version.Values.test_lists_of_nodes_take_detail_from_1_43_on",
    56: "tests.unit.api.test_every_version.Values.test_a_config_drive_is_an_object_from_1_56_on",
    59: "tests.unit.api.test_every_version.Values.test_a_config_drive_is_an_object_from_1_56_on",
    63: "nothing: indicators answer at every version, as measured",
    64: "nothing: network_type is taken at every version (intended)",
    67: "tests.unit.api.test_every_version.Values.test_a_vif_has_a_place_from_1_67_on",
    71: "nothing: it announces rules of policy",
    79: "nothing: an allocation prefers the node of its name at every version (intended)",
    80: "nothing: it announces rules of policy",
    84: "tests.unit.api.test_every_version.Values.test_the_end_of_an_inspection_is_announced_from_1_84_on",
    90: "nothing: the form is taken at every version (intended)",
    91: "tests.unit.api.test_every_version.Values.test_a_name_may_end_with_json_from_1_91_on",
    98: "tests.unit.api.test_every_version.Values.test_paths_of_a_patch_are_escaped_from_1_98_on",
    105: "nothing: the form is still accepted, as measured",
    107: "nothing: the header is sent at every version, as measured",
    110: "tests.unit.api.test_provision",
}
"""Versions that brought no route, parameter, field or key: where their test is, or why there is none."""


class Brought(NamedTuple):
    """A request that needs a version.

    :param since: that version.
    :param refusals: statuses of which older requests get one.
    :param names: what the refusal says.
    """

    since: int
    method: str
    url: str
    body: Any
    refusals: tuple[int, ...]
    names: str = ""


class Walking(world.WorldCase):
    def check(self, brought: Brought) -> None:
        """Refused one version before, and not for its version from it on."""
        told = f"{brought.method} {brought.url} {brought.body}"
        before = self.api(brought.method, brought.url, brought.body, f"1.{brought.since - 1}")
        self.assertIn(before.status, brought.refusals, f"{told} at 1.{brought.since - 1}: {before}")
        self.assertIn(brought.names, before.message, told)
        at = self.api(brought.method, brought.url, brought.body, f"1.{brought.since}")
        self.assertFalse(at.status >= 400 and any(words in at.message for words in TOO_NEW), f"{told}: {at}")
        self.assertNotIn(at.status, (405, 406), f"{told} at 1.{brought.since}: {at}")

    def check_all(self, made: Iterator[Brought], least: int) -> None:
        """
        :param least: how many there are at least; fewer mean that the tables are not walked any more.
        """
        every = list(made)
        for brought in every:
            self.check(brought)
        self.assertGreaterEqual(len(every), least)


def shown(operation: Operation) -> tuple[fields.Table, bool] | None:
    """The table that an operation shows, and whether as a list."""
    shape = operation.answer.shows
    if isinstance(shape, collection.Page):
        return shape.one.table, True
    return (shape.table, False) if isinstance(shape, collection.One) else None


def declared(operation: Operation) -> tuple[fields.Field, ...]:
    """The keys of an operation's body, where it is described by fields."""
    keys: tuple[fields.Field, ...] = getattr(operation.body, "declared", ())
    return keys


class Routes(Walking):
    def test_are_hidden_before_their_version(self) -> None:
        self.check_all(self.brought(), 80)

    def brought(self) -> Iterator[Brought]:
        for route, method, _operation in self.operations():
            if route.needs(method) > 1 and not route.any_version:
                below = route.below.get(method, route.below["*"])
                yield Brought(
                    route.needs(method), method, self.url(route.path), self.body(route.path, method), (below,)
                )


class Parameters(Walking):
    def test_are_refused_before_their_version(self) -> None:
        self.check_all(self.brought(), 60)

    def brought(self) -> Iterator[Brought]:
        for route, method, operation in self.operations():
            for param in operation.query.values():
                if param.since > route.needs(method) and not route.any_version:
                    value = NAMED.get(param.name, SAMPLES.get(param.parse, "n"))
                    url = self.url(route.path, f"{param.name}={value}")
                    yield Brought(param.since, method, url, self.body(route.path, method), (406,))


class Keys(Walking):
    """Of request bodies."""

    def test_are_refused_before_their_version(self) -> None:
        self.check_all(self.brought(), 40)

    def brought(self) -> Iterator[Brought]:
        for route, method, operation in self.operations():
            for field in declared(operation) if not route.any_version else ():
                since = field.post_since or field.since
                if since > route.needs(method):
                    body = {**self.body(route.path, method), field.name: None}
                    yield Brought(since, method, self.url(route.path), body, (400, 406), field.name)

    def test_cannot_be_patched_before_their_version(self) -> None:
        self.check_all(self.patched(), 35)

    def patched(self) -> Iterator[Brought]:
        for route, method, operation in self.operations():
            found = shown(operation) if method == "PATCH" else None
            for field in found[0].patchable().values() if found else ():
                since = field.patch_since or field.since
                if since > route.needs(method) and not field.required:
                    patch = [{"op": "add", "path": f"/{field.name}", "value": None}]
                    yield Brought(since, method, self.url(route.path), patch, (400, 406), field.name)


class Fields(Walking):
    def setUp(self) -> None:
        super().setUp()
        self.seen: dict[tuple[str, int], frozenset[str]] = {}

    def test_are_shown_from_their_version_on(self) -> None:
        number = 0
        for route, found in self.tables(as_list=False):
            for field in found.fields.values():
                since = max(field.since, route.needs("GET"))
                number += 1
                self.assertEqual(
                    not field.hidden, field.name in self.shown_at(route, since), f"{field.name} at 1.{since}"
                )
                if field.since > route.needs("GET"):
                    self.assertNotIn(field.name, self.shown_at(route, since - 1), f"{route.path} at 1.{since - 1}")
        self.assertGreater(number, 180)

    def test_are_selected_from_their_version_on(self) -> None:
        self.check_all(self.selected(), 100)

    def selected(self) -> Iterator[Brought]:
        for route, operation, table in self.readable():
            selects = operation.query.get("fields")
            for field in table.fields.values():
                if selects and not field.hidden and field.since > max(route.needs("GET"), selects.since):
                    yield Brought(field.since, "GET", self.url(route.path, f"fields={field.name}"), None, (400, 406))

    def test_sort_from_their_version_on(self) -> None:
        self.check_all(self.sorting(), 80)

    def sorting(self) -> Iterator[Brought]:
        for route, operation, table in self.readable():
            for field in table.fields.values():
                if "sort_key" in operation.query and field.sortable and field.since > route.needs("GET"):
                    url = self.url(route.path, f"sort_key={field.name}")
                    yield Brought(field.since, "GET", url, None, (406,), field.name)

    def readable(self) -> Iterator[tuple[routes.Route, Operation, fields.Table]]:
        for route, method, operation in self.operations():
            found = shown(operation)
            if method == "GET" and found and not route.any_version:
                yield route, operation, found[0]

    def tables(self, as_list: bool) -> Iterator[tuple[routes.Route, fields.Table]]:
        for route, operation, table in self.readable():
            if (table, as_list) == shown(operation):
                yield route, table

    def shown_at(self, route: routes.Route, minor: int) -> frozenset[str]:
        key = (route.path, minor)
        if key not in self.seen:
            self.seen[key] = frozenset(self.good("GET", self.url(route.path), version=f"1.{minor}"))
        return self.seen[key]


class Verbs(Walking):
    def test_are_refused_before_their_version(self) -> None:
        url = f"/v1/nodes/{self.uuid}/states/provision"
        for name, verb in states.VERBS.items():
            if (verb.since or 1) > 1 and name != "undeploy":  # that one has no version, as measured
                self.check(Brought(verb.since or 1, "PUT", url, {"target": name}, (406,)))

    def test_arguments(self) -> None:
        url = f"/v1/nodes/{self.uuid}/states/provision"
        values: dict[str, Any] = {"configdrive": "aGVsbG8=", "disable_ramdisk": True, "runbook": "CUSTOM_R"}
        for name, argument in provision.ARGUMENTS.items():
            for verb, since in argument.verbs.items():
                verb_since = (states.VERBS[verb].since or 1) if verb != "undeploy" else 1
                if since > verb_since:
                    body = {"target": verb, name: values.get(name, [world.STEP])}
                    self.check(Brought(since, "PUT", url, body, (400, 406)))

    def test_power(self) -> None:
        for target in ("soft power off", "soft rebooting"):
            url = f"/v1/nodes/{self.uuid}/states/power"
            self.check(Brought(27, "PUT", url, {"target": target}, (406,)))


class Values(Walking):
    """What a version brought that is no name in a table."""

    def test_new_nodes_are_available_before_1_11_and_in_enroll_from_it_on(self) -> None:
        for version, state in (("1.10", "available"), ("1.11", "enroll")):
            self.assertEqual(state, self.good("POST", "/v1/nodes", api_case.NODE, version)["provision_state"])

    def test_inspect_wait_is_inspecting_before_1_39(self) -> None:
        world.nodes.set_always(self.db, self.uuid, {"provision_state": states.INSPECTWAIT})
        for version, state in (("1.38", states.INSPECTING), ("1.39", states.INSPECTWAIT)):
            self.assertEqual(state, self.good("GET", "/v1/nodes/n", version=version)["provision_state"])

    def test_lists_of_nodes_take_detail_from_1_43_on(self) -> None:
        self.check(Brought(43, "GET", "/v1/nodes?detail=true", None, (400,), "detail"))

    def test_a_vif_has_a_place_from_1_67_on(self) -> None:
        body = {**world.BODIES["vifs"], "port_uuid": self.made["/v1/ports"]}
        self.check(Brought(67, "POST", "/v1/nodes/n/vifs", body, (406,)))

    def test_the_end_of_an_inspection_is_announced_from_1_84_on(self) -> None:
        for version, announced in (("1.83", False), ("1.84", True)):
            self.assertEqual(announced, "continue_inspection" in self.good("GET", "/v1", version=version))

    def test_a_config_drive_is_an_object_from_1_56_on(self) -> None:
        url = f"/v1/nodes/{self.uuid}/states/provision"
        for since, drive in ((56, {"meta_data": {}}), (59, {"vendor_data": {}})):
            self.check(Brought(since, "PUT", url, {"target": "active", "configdrive": drive}, (406,)))

    def test_a_name_may_end_with_json_from_1_91_on(self) -> None:
        self.assertEqual(200, self.api("GET", "/v1/nodes/n.json", version="1.90").status)
        self.assertEqual(404, self.api("GET", "/v1/nodes/n.json", version="1.91").status)

    def test_paths_of_a_patch_are_escaped_from_1_98_on(self) -> None:
        patch = [{"op": "add", "path": "/extra/a~1b", "value": 1}]
        self.check(Brought(98, "PATCH", "/v1/nodes/n", patch, (400,)))
        self.assertEqual({"a/b": 1}, self.good("GET", "/v1/nodes/n")["extra"])


class Completeness(Walking):
    def test_every_version_has_a_test(self) -> None:
        seen = set(ELSEWHERE)
        for route, method, operation in self.operations():
            seen |= {route.needs(method), *(param.since for param in operation.query.values())}
            seen |= {field.post_since or field.since for field in declared(operation)}
            found = shown(operation)
            seen |= {field.since for field in found[0].fields.values()} if found else set()
        seen |= {verb.since or 1 for verb in states.VERBS.values()}
        seen |= {since for argument in provision.ARGUMENTS.values() for since in argument.verbs.values()}
        self.assertEqual([], [f"1.{n}: {versions.HISTORY[n]}" for n in sorted(set(versions.HISTORY) - seen)])
