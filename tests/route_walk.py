"""A walk over the table of routes: each operation is visited once, with every check that holds for all of them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ingot.api import routes
from ingot.api.web import collection, fields, operations, tables
from ingot.api.web.operations import Operation
from tests import api_case, world

TOO_NEW = ("needs API version", "minimal required API version")

SAMPLES: dict[Callable[[str, str], Any], str] = {
    fields.parse_flag: "true",
    fields.parse_uuid: "1be26c0b-03f2-4d2e-ae87-c02d7f33c123",
    fields.parse_mac: world.MAC,
    operations.parse_direction: "asc",
    operations.parse_limit: "1",
}
NAMED = {"fault": "power failure", "type": "dynamic", "provision_state": "manageable", "fields": "links"}


class Visit(NamedTuple):
    """An operation of the table, with a URL and a body that fit."""

    route: routes.Route
    method: str
    operation: Operation
    url: str
    body: Any

    @property
    def since(self) -> int:
        return self.operation.since

    @property
    def first(self) -> bool:
        """Whether this is the first operation of its route."""
        return self.method == next(iter(self.route.operations))

    @property
    def stream(self) -> bool:
        """Whether the answer does not end."""
        return self.operation.answer.media == "text/event-stream"

    @property
    def keys(self) -> tuple[fields.Field, ...]:
        """The keys of the body, where it is described by fields."""
        keys: tuple[fields.Field, ...] = getattr(self.operation.body, "declared", ())
        return keys

    @property
    def shown(self) -> tuple[tables.Table, bool] | None:
        """The table that the answer shows, and whether as a list."""
        shape = self.operation.answer.shows
        if isinstance(shape, collection.Page):
            return shape.one.table, True
        return (shape.table, False) if isinstance(shape, collection.One) else None

    @property
    def patched(self) -> tables.Table | None:
        """The table whose fields a JSON patch may change."""
        return self.shown[0] if self.operation.body is tables.PATCH_BODY and self.shown else None


class Newer(NamedTuple):
    """A request that needs a version.

    :param what: of what the version is: routes, parameters, keys ...
    :param since: that version.
    :param refusals: statuses of which older requests get one.
    :param names: what the refusal says.
    """

    what: str
    since: int
    method: str
    url: str
    body: Any
    refusals: tuple[int, ...]
    names: tuple[str, ...] = ()


Check = Callable[[Visit], Iterator[str]]
"""Checks one visit; yields for each request that it has checked what that was about."""


class Walk(world.WorldCase):
    def visits(self) -> list[Visit]:
        return [
            Visit(route, method, operation, self.url(route.path), self.body(route.path, method))
            for route, method, operation in self.operations()
        ]

    def walk(self, visits: Iterable[Visit], checks: Collection[Check], least: Mapping[str, int]) -> None:
        """Make all checks at each visit and fail with all that was found, or if a check never made a request.

        :param least: how many requests there are at least; fewer mean that the tables are not walked any more.
        """
        found, counted, idle = [], Counter[str](), {check.__name__ for check in checks}
        for visit in visits:
            for check in checks:
                try:
                    for what in check(visit):
                        counted[what] += 1
                        idle.discard(check.__name__)
                except AssertionError as exc:
                    found.append(f"{check.__name__}: {visit.method} {visit.route.path}: {exc}")
        self.assertEqual([], found, "\n".join(found))
        self.assertEqual(set(), idle, "checks without a request")
        self.assertEqual({}, {what: counted[what] for what in least if counted[what] < least[what]}, counted)

    def newer(self, visit: Visit) -> Iterator[Newer]:
        """Yield everything about an operation that needs a version."""
        route = visit.route
        if route.any_version:
            return
        if visit.since > 1:
            below = route.below.get(visit.method, route.below["*"])
            names = (visit.method, route.path, f"1.{visit.since} or newer")
            yield Newer("routes", visit.since, visit.method, visit.url, visit.body, (below,), names)
        for param in visit.operation.query.values():
            if param.since > visit.since:
                url = self.url(route.path, f"{param.name}={NAMED.get(param.name, SAMPLES.get(param.parse, 'n'))}")
                yield Newer("parameters", param.since, visit.method, url, visit.body, (406,))
        for field in visit.keys:
            if (since := field.post_since or field.since) > visit.since:
                body = {**visit.body, field.name: None}
                yield Newer("keys", since, visit.method, visit.url, body, (400, 406), (field.name,))
        for field in visit.patched.patchable.values() if visit.patched else ():
            if (since := field.patch_since or field.since) > visit.since and not field.required:
                body = [{"op": "add", "path": f"/{field.name}", "value": None}]
                yield Newer("patched keys", since, visit.method, visit.url, body, (400, 406), (field.name,))
        yield from self._newer_of_answer(visit)

    def _newer_of_answer(self, visit: Visit) -> Iterator[Newer]:
        """Yield requests that select or sort by a field."""
        if visit.method != "GET" or not visit.shown:
            return
        query = visit.operation.query
        for field in visit.shown[0].fields.values():
            selects = query.get("fields")
            if selects and not field.hidden and field.since > max(visit.since, selects.since):
                url = self.url(visit.route.path, f"fields={field.name}")
                yield Newer("selected", field.since, "GET", url, None, (400, 406))
            if "sort_key" in query and field.sortable and field.since > visit.since:
                url = self.url(visit.route.path, f"sort_key={field.name}")
                yield Newer("sorted", field.since, "GET", url, None, (406,), (field.name,))

    def check_before(self, newer: Newer) -> None:
        """Check that a request is refused one version before its own."""
        answer = self.api(newer.method, newer.url, newer.body, f"1.{newer.since - 1}")
        self.assertIn(answer.status, newer.refusals, f"{newer}: {answer}")
        for name in newer.names:
            self.assertIn(name, answer.message, newer)

    def check_from(self, newer: Newer) -> api_case.Answer:
        """Check that a request is not refused for its version from that version on."""
        answer = self.api(newer.method, newer.url, newer.body, f"1.{newer.since}")
        self.assertFalse(
            answer.status >= 400 and any(words in answer.message for words in TOO_NEW), f"{newer}: {answer}"
        )
        self.assertNotIn(answer.status, (405, 406), f"{newer}: {answer}")
        return answer
