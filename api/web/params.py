"""Query parameters: each is declared once with its version, its parser and, for a filter, its column and test."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from werkzeug.datastructures import MultiDict

from ingot.api.web import field_types
from ingot.common import errors
from ingot.db import listing


class Param(NamedTuple):
    """A query parameter.

    :param parse: makes the value of the text; gets the parameter's name for its message.
    :param since: minor version that brought it; older requests with it are answered 406.
    :param column: for a filter, the column (or the columns, any of which may match) that it looks at.
    :param test: for a filter, the name of a test of :data:`ingot.db.listing.TESTS`.
    :param repeats: whether it may be given several times; the values are then joined with commas.
    """

    name: str
    parse: Callable[[str, str], Any]
    since: int = 1
    column: str | tuple[str, ...] | None = None
    test: str = "equals"
    repeats: bool = False


text = field_types.storable


def lowered(name: str, given: str) -> str:
    return text(name, given).lower()


def filled(name: str, given: str) -> str:
    """Text that is not empty."""
    if not given:
        raise errors.Invalid(field=name, value=given, allowed="Send a value, or leave the parameter out.")
    return text(name, given)


def names(name: str, given: str) -> tuple[str, ...]:
    """A list separated by commas."""
    return tuple(dict.fromkeys(part.strip() for part in text(name, given).split(",") if part.strip()))


def limit(name: str, given: str) -> int:
    if not given.isascii() or not given.removeprefix("-").isdecimal() or len(given) > 12:
        raise errors.Invalid(field=name, value=given, allowed="Send a whole number from 1 on.")
    if int(given) < 1:
        raise errors.Invalid(field=name, value=given, allowed="Send a whole number from 1 on; limit must be positive.")
    return int(given)


def direction(name: str, given: str) -> str:
    if given not in ("asc", "desc"):
        raise errors.Invalid(field=name, value=given, allowed="Send asc or desc.")
    return given


FIELDS = Param("fields", names, since=8, repeats=True)
DETAIL = Param("detail", field_types.flag)


def paging(marker: Callable[[str, str], str] = field_types.uuid) -> tuple[Param, ...]:
    """The parameters of every list.

    :param marker: parses what names the last item of the page before.
    """
    return (
        Param("sort_key", text),
        Param("sort_dir", direction),
        Param("limit", limit),
        Param("marker", marker),
    )


def read(declared: Mapping[str, Param], given: MultiDict[str, str], minor: int) -> dict[str, Any]:
    """The parsed parameters of a request.

    :raises Invalid: one is unknown, given twice, or cannot be parsed.
    :raises VersionRefused: one is newer than the request's version.
    """
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise errors.Invalid(
            f"Unexpected arguments: {', '.join(unknown)[:200]}. Accepted here: {', '.join(sorted(declared)) or 'none'}."
        )
    return {name: _value(declared[name], given.getlist(name), minor) for name in given}


def _value(param: Param, given: list[str], minor: int) -> Any:
    if minor < param.since:
        raise errors.VersionRefused(minor=param.since)
    if len(given) > 1 and not param.repeats:
        raise errors.Invalid(field=param.name, value=given, allowed="Give it only once.")
    return param.parse(param.name, ",".join(given))


def conditions(filters: Iterable[Param], query: Mapping[str, Any]) -> list[listing.Condition]:
    """What the given filters mean for the database."""
    return [
        listing.Condition(param.column, param.test, query[param.name])
        for param in filters
        if param.column is not None and param.name in query
    ]
