"""The shape of JSON: which keys there are and of which types their values, and the few values that are protocol.

A shape maps places to types: ``{"": {"object"}, "node": {"object"}, "node/uuid": {"string"}, "ports/[]": {"object"}}``.
``absent`` is the type of a key that only some of several objects have. Steps in lists are distinguished by their names:
``clean_steps/deploy.erase_devices/priority``. A value that is no protocol is not in a shape, so neither is a secret.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Shape = Mapping[str, frozenset[str]]

_KEPT = {
    "abortable",
    "agent_version",
    "code",
    "command_name",
    "command_status",
    "faultcode",
    "headers",
    "interface",
    "priority",
    "reboot_requested",
    "type",
    "wait",
}
"""Keys whose values belong to the protocol, and so do those inside of them."""

_CLOSED = "node"
"""The key of an object whose values are of users and operators; only which keys it has is protocol."""

_TYPES: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    dict: "object",
    list: "list",
}


def of(value: Any, place: str = "", kept: bool = False) -> dict[str, frozenset[str]]:
    """Return the shape of a decoded JSON value.

    :param place: where it stands in a larger one.
    :param kept: whether its values belong to the protocol.
    """
    found = {place: frozenset({_type(value, kept)})}
    if isinstance(value, dict):
        for key, inner in value.items():
            known = (
                _keys(inner, _at(place, key)) if key == _CLOSED else of(inner, _at(place, key), kept or key in _KEPT)
            )
            found.update(known)
    if isinstance(value, list):
        found.update(union(of(item, _at(place, _name(item)), kept) for item in value))
    return found


def _type(value: Any, kept: bool) -> str:
    return f"={value}" if kept and not isinstance(value, dict | list) else _TYPES[type(value)]


def _at(place: str, key: str) -> str:
    return f"{place}/{key}" if place else key


def _keys(value: Any, place: str) -> dict[str, frozenset[str]]:
    inner = value if isinstance(value, dict) else ()
    return {place: frozenset({_type(value, False)}), **{_at(place, key): frozenset({"any"}) for key in inner}}


def _name(item: Any) -> str:
    return f"{item.get('interface')}.{item['step']}" if isinstance(item, dict) and "step" in item else "[]"


def union(shapes: Iterable[Shape]) -> dict[str, frozenset[str]]:
    """Return the shape of all values that have one of some shapes."""
    result: dict[str, frozenset[str]] = {}
    for number, shape in enumerate(shapes):
        places = [*result, *(place for place in shape if place not in result)]
        result = {place: _within(result, place) | _within(shape, place) for place in places} if number else dict(shape)
    return result


def _within(shape: Shape, place: str) -> frozenset[str]:
    """Return the types at a place; ``absent`` for a key that the object there does not have."""
    lacks = place not in shape and "object" in shape.get(_parent(place), ())
    return frozenset({"absent"}) if lacks else shape.get(place, frozenset())


def _parent(place: str) -> str:
    return place.rpartition("/")[0]


def differences(one: Shape, other: Shape) -> Iterator[tuple[str, str, str]]:
    """Yield (place, types in the one, types in the other); nothing from inside of what only one has."""
    for place in sorted({*one, *other}):
        types = [shape.get(place, frozenset({"absent"})) for shape in (one, other)]
        parents = [shape.get(_parent(place), frozenset()) for shape in (one, other)]
        if types[0] != types[1] and all({"object", "list"} & parent for parent in parents):
            yield place, join_types(types[0]), join_types(types[1])


def join_types(types: Iterable[str]) -> str:
    """Join types into one text: ``null|string``."""
    return "|".join(sorted(types))
