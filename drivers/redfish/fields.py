"""Fields of Redfish documents by their types: one of another type counts as one that is not there.

BMCs leave out what they do not know, or put something else there. What needs a field says itself that it is missing.
"""

from typing import cast

from ingot.common.json_types import Json

_LONGEST = 255  # characters that a database takes in most columns

_LARGEST = 1e15


def text(document: Json, name: str) -> str | None:
    """Return a text that is not empty, cut to what can be kept; some write numbers where texts belong."""
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip()[:_LONGEST] or None


def path(document: Json, name: str) -> str | None:
    """Return a text that is where something is."""
    value = document.get(name)
    return value if isinstance(value, str) and value else None


def number(document: Json, name: str) -> int | float | None:
    """Return a number that is not negative."""
    value = document.get(name)
    return None if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 else value


def measure(document: Json, name: str) -> float | None:
    """Return what was measured, which may be below zero; what no machine can have counts as not there."""
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    return float(value)


def integer(document: Json, name: str) -> int | None:
    value = number(document, name)
    return None if value is None else int(value)


def part(document: Json, *names: str) -> Json:
    """Return an object inside of objects; an empty one if it is not there."""
    found: object = document
    for name in names:
        found = cast(Json, found).get(name)
        if not isinstance(found, dict):
            return {}
    return cast(Json, found)


def parts(document: Json, name: str) -> list[Json]:
    """Return the objects of a list."""
    value = document.get(name)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(document: Json, name: str) -> list[str]:
    """Return the texts of a list."""
    value = document.get(name)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def link(document: Json, *names: str) -> str | None:
    """Return the path that an object inside of objects links to; of ``document`` itself, without names."""
    return path(part(document, *names), "@odata.id")


def next_page(collection: Json) -> str | None:
    """Return where a collection goes on, of which BMCs show some dozens of members at a time."""
    return path(collection, "Members@odata.nextLink")


def find_name(document: Json, *formats: str) -> str | None:
    """Return the name in one of some formats that a disk has for good, as operating systems write it."""
    named = (one for one in parts(document, "Identifiers") if one.get("DurableNameFormat") in formats)
    name = next(filter(None, (text(one, "DurableName") for one in named)), None)
    return None if name is None else f"0x{name.lower().removeprefix('0x').replace(':', '')}"


def links(document: Json, name: str) -> list[str]:
    """Return the paths that a list links to."""
    return [place for place in map(link, parts(document, name)) if place]
