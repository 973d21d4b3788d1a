"""Operations: what a handler accepts and answers, declared beside it, and the URLs where it is served."""

import re
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from werkzeug.datastructures import MultiDict

from ingot.api.web import fields
from ingot.api.web.call import Reply
from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import listing

_MEDIA_RANGE = re.compile(r"(?P<name>\*|[\w!#$%&'*+.^`|~-]+/[\w!#$%&'*+.^`|~-]+)\s*(?P<parameters>(;.*)?)", re.ASCII)
_WEIGHT = re.compile(r";\s*q\s*=\s*(0(?:\.\d*)?|1(?:\.0*)?)\s*(?:;|$)", re.ASCII | re.IGNORECASE)


class Param(NamedTuple):
    """A query parameter.

    :param parse: makes the value of the text; gets the parameter's name for its message.
    :param since: minor version that brought it; older requests with it are answered 406.
    :param column: for a filter, its column, or the columns of which any may match.
    :param test: for a filter, the name of a test of :data:`ingot.db.listing.TESTS`.
    :param repeats: whether it may be given several times; the values are then joined with commas.
    """

    name: str
    parse: Callable[[str, str], object]
    since: int = 1
    column: str | tuple[str, ...] | None = None
    test: str = "equals"
    repeats: bool = False


class Body(Protocol):
    """A declared request body."""

    @property
    def schema(self) -> fields.Schema:
        """What is checked first, and what the API's description says."""

    def check(self, value: object, minor: int) -> object:
        """Return the value in the form the handler works with.

        :raises Invalid: it is not what is declared.
        :raises VersionRefused: it holds something newer than the version of the request.
        """


class Shape(Protocol):
    """What the body of an answer looks like, for the API's description."""

    def schema(self, named: Json) -> Json:
        """Return its JSON schema.

        :param named: schemas that others refer to as ``#/components/schemas/<name>``; those it needs are added.
        """


class Plain(NamedTuple):
    """A shape that is a JSON schema of its own."""

    document: Json

    def schema(self, named: Json) -> Json:
        return self.document


class Answer(NamedTuple):
    """What an operation answers when it succeeds.

    :param shows: the body; None: there is none.
    :param also: another status, with an empty body.
    """

    status: int = 200
    shows: Shape | None = None
    media: str = "application/json"
    also: int | None = None


EMPTY_202, EMPTY_204 = Answer(202), Answer(204)


class Escalation(NamedTuple):
    """The value of a query parameter with which reading is more than that: the audit trail has it, with a rule."""

    parameter: str
    value: str
    rule: str

    def find_rule(self, given: Mapping[str, str]) -> str | None:
        """Return the rule for a request with this query; None: it only reads."""
        return self.rule if given.get(self.parameter) == self.value else None


class Operation(NamedTuple):
    """A handler with what it accepts.

    :param query: declared query parameters; any other is refused.
    :param body: declared body; None: a body is ignored.
    :param answer: what it answers; what the API's description says, and tests compare with.
    :param since: minor version that brought it; in the table of routes not older than its URL.
    :param rule: in the table of routes, the rule of policy for it; see :mod:`ingot.api.auth.rules`.
    :param escalation: when a GET is recorded as what changes something is.
    """

    handler: Callable[..., Reply]
    query: Mapping[str, Param]
    body: Body | None
    answer: Answer
    since: int = 1
    rule: str = ""
    escalation: Escalation | None = None


def operation(
    *query: Param, answer: Answer, body: Body | None = None, since: int = 1, escalation: Escalation | None = None
) -> Callable[[Callable[..., Reply]], Operation]:
    """Declare what a handler accepts."""

    def declare(handler: Callable[..., Reply]) -> Operation:
        declared = {param.name: param for param in query}
        return Operation(handler, declared, body, answer, since, escalation=escalation)

    return declare


_REFUSALS: Mapping[int, type[errors.IngotError]] = {
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    406: errors.VersionRefused,
}


_ALSO: Mapping[str, str] = {"GET": "HEAD"}


def accepts_json(accept: str) -> bool:
    """Return whether a client accepts JSON (RFC 9110, 12.5.1). A header in which nothing can be read says nothing.

    The most exact range that matches decides. Parameters do not matter: JSON has none.
    """
    ranges: dict[str, float] = {}
    for given in urllib.request.parse_http_list(accept):
        if found := _MEDIA_RANGE.fullmatch(given):
            name = "*/*" if found["name"] == "*" else found["name"].lower()
            weight = _WEIGHT.search(found["parameters"])
            ranges[name] = max(ranges.get(name, 0.0), float(weight[1]) if weight else 1.0)
    exact = next((name for name in ("application/json", "application/*", "*/*") if name in ranges), None)
    return ranges[exact] > 0 if exact else not ranges


class Route(NamedTuple):
    """A URL.

    :param operations: by method.
    :param since: minor version that brought it.
    :param below: what older requests get, by method.
    :param public: whether it needs no authentication.
    :param any_version: whether the request's version does not matter.
    :param first: what refuses users who may not use it, even where it is newer than the version of the request;
        everywhere else the version is checked first.
    :param for_machines: whether booting machines and their agents ask for it, in place of users.
    """

    path: str
    operations: Mapping[str, Operation]
    since: int
    below: Mapping[str, int]
    public: bool
    any_version: bool
    first: Callable[..., object] | None = None
    for_machines: bool = False

    @property
    def allowed(self) -> str:
        """The methods, as the header Allow has them."""
        methods = dict.fromkeys(name for method in self.operations for name in (method, _ALSO.get(method, method)))
        return ", ".join(methods)

    @property
    def tagged(self) -> bool:
        """Whether writing to it is writing to one object, which has an entity tag."""
        return not self.public and ("<node>" in self.path or "<ident>" in self.path)

    def too_new_error(self, method: str) -> errors.IngotError:
        """Return the error for a request of an older version, whether it has the method or not."""
        since = self.operations[method].since if method in self.operations else self.since
        refusal = _REFUSALS[self.below.get(method, self.below["*"])]
        return refusal(f"{method} {self.path} needs API version 1.{since} or newer.")


def parse_lower_case(name: str, given: str) -> str:
    return fields.parse_text(name, given).lower()


def parse_filled(name: str, given: str) -> str:
    """Return text that is not empty."""
    if not given:
        raise errors.Invalid(field=name, value=given, allowed="Send a value, or leave the parameter out.")
    return fields.parse_text(name, given)


def parse_names(name: str, given: str) -> tuple[str, ...]:
    """Return the items of a list separated by commas."""
    return tuple(dict.fromkeys(part.strip() for part in fields.parse_text(name, given).split(",") if part.strip()))


def parse_limit(name: str, given: str) -> int:
    if not given.isascii() or not given.removeprefix("-").isdecimal() or len(given) > 12:
        raise errors.Invalid(field=name, value=given, allowed="Send a whole number from 1 on.")
    if int(given) < 1:
        raise errors.Invalid(field=name, value=given, allowed="Send a whole number from 1 on; limit must be positive.")
    return int(given)


def parse_offset(name: str, given: str) -> int:
    if not given.isascii() or not given.isdecimal() or len(given) > 9:
        raise errors.Invalid(field=name, value=given, allowed="Send a whole number from 0 to 999999999.")
    return int(given)


def build_choice(values: Iterable[str]) -> Callable[[str, str], str]:
    """Return what parses a parameter that must be one of the values."""
    allowed = sorted(values)

    def parse(name: str, given: str) -> str:
        if given not in allowed:
            raise errors.Invalid(field=name, value=given, allowed=f"Allowed are: {', '.join(allowed)}.")
        return given

    return parse


def parse_direction(name: str, given: str) -> str:
    if given not in ("asc", "desc"):
        raise errors.Invalid(field=name, value=given, allowed="Send asc or desc.")
    return given


FIELDS = Param("fields", parse_names, since=8, repeats=True)
DETAIL = Param("detail", fields.parse_flag)


PAGING = (Param("sort_key", fields.parse_text), Param("sort_dir", parse_direction), Param("limit", parse_limit))
"""The parameters of every list, besides the marker."""


def read_query(declared: Mapping[str, Param], given: MultiDict[str, str], minor: int) -> dict[str, Any]:
    """Return the parsed parameters of a request.

    :raises Invalid: one is unknown, given twice, or cannot be parsed.
    :raises VersionRefused: one is newer than the request's version.
    """
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise errors.Invalid(
            f"Unexpected arguments: {', '.join(unknown)[:200]}. Accepted here: {', '.join(sorted(declared)) or 'none'}."
        )
    parsed, since = {}, minor
    for name, values in given.lists():
        param = declared[name]
        since = max(since, param.since)
        if len(values) > 1 and not param.repeats:
            raise errors.Invalid(field=name, value=values, allowed="Give it only once.")
        if param.since <= minor:
            parsed[name] = param.parse(name, ",".join(values))
    if minor < since:
        raise errors.VersionRefused(minor=since)
    return parsed


def build_conditions(filters: Iterable[Param], query: Mapping[str, Any]) -> list[listing.Condition]:
    """Return what the given filters mean for the database."""
    return [
        listing.Condition(param.column, param.test, query[param.name])
        for param in filters
        if param.column is not None and param.name in query
    ]
