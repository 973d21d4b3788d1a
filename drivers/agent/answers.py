"""What agents answer, checked before it is used: what is malformed is the agent's error, not ours."""

from collections.abc import Mapping
from typing import TypedDict


class Command(TypedDict):
    """A command as the agent reports it."""

    id: str
    command_name: str
    command_status: str
    command_error: object
    command_result: object


_SHOWN = 120


class Malformed(ValueError):
    """The answer cannot be used; the text names the place in it, what stands there and what should."""

    def __init__(self, place: str, value: object, allowed: str) -> None:
        shown = repr(value)
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}..."
        super().__init__(f"its answer has {shown} as {place}; {allowed}")


def read_object(place: str, value: object) -> Mapping[str, object]:
    """Return the value, which must be an object."""
    if not isinstance(value, Mapping):
        raise Malformed(place, value, "it must be an object")
    return value


def read_list(place: str, value: object) -> list[object]:
    """Return the value, which must be a list."""
    if not isinstance(value, list):
        raise Malformed(place, value, "it must be a list")
    return value


def read_text(place: str, value: object) -> str:
    """Return the value, which must be a text."""
    if not isinstance(value, str):
        raise Malformed(place, value, "it must be a text")
    return value


def read_command(value: object, place: str = "command") -> Command:
    """Return one command."""
    command = read_object(place, value)
    return {
        "id": read_text(f"{place}.id", command.get("id")),
        "command_name": read_text(f"{place}.command_name", command.get("command_name")),
        "command_status": read_text(f"{place}.command_status", command.get("command_status")),
        "command_error": command.get("command_error"),
        "command_result": command.get("command_result"),
    }


def read_commands(value: object) -> list[Command]:
    """Return the list of all commands."""
    listed = read_list("commands", read_object("body", value).get("commands"))
    return [read_command(one, f"commands[{number}]") for number, one in enumerate(listed)]
