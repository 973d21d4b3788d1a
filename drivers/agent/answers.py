"""What agents answer, checked before anybody relies on it: what is malformed is the agent's error, not ours."""

from collections.abc import Mapping
from typing import Any

Command = dict[str, Any]
"""A command as the agent tells of it: ``id``, ``command_name``, ``command_status``, and what became of it."""

_PROMISED = ("id", "command_name", "command_status")
_SHOWN = 120


class Malformed(ValueError):
    """The answer cannot be used; the text names the place in it, what stands there and what should."""

    def __init__(self, place: str, found: Any, allowed: str) -> None:
        shown = repr(found)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}..."
        super().__init__(f"its answer has {shown} as {place}; {allowed}")


def mapping(place: str, value: Any) -> Mapping[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, Mapping):
        raise Malformed(place, value, "it must be an object")
    return value


def sequence(place: str, value: Any) -> list[Any]:
    """The value, which must be a list."""
    if not isinstance(value, list):
        raise Malformed(place, value, "it must be a list")
    return value


def command(value: Any, place: str = "command") -> Command:
    """One command."""
    found = mapping(place, value)
    for key in _PROMISED:
        if not isinstance(found.get(key), str):
            raise Malformed(f"{place}.{key}", found.get(key), "it must be a text")
    return {"command_error": None, "command_result": None, **found}


def commands(value: Any) -> list[Command]:
    """The list of all commands."""
    listed = sequence("commands", mapping("body", value).get("commands"))
    return [command(one, f"commands[{number}]") for number, one in enumerate(listed)]
