"""What agents answer, checked before it is used: what is malformed is the agent's error, not ours.

Hardware managers come from many vendors, so nothing of the offer of steps is trusted: whatever the engine relies on is
checked here, and a step that cannot be used is named with what is wrong in it.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple, TypedDict

from ingot.common import interfaces, steps
from ingot.common.json_types import Json
from ingot.common.steps import StepJson

_LONGEST_NAME = 255
"""Characters of the name of a step that the database keeps."""


class Command(TypedDict):
    """A command as the agent reports it."""

    id: str
    command_name: str
    command_status: str
    command_error: object
    command_result: object


class Malformed(ValueError):
    """The answer cannot be used; the text names the place in it, what stands there and what should."""

    def __init__(self, place: str, value: object, allowed: str) -> None:
        text = repr(value)
        shown = text if len(text) <= 120 else f"{text[:120]}..."
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


def read_arrays(place: str, result: Mapping[str, object]) -> Json:
    """Return the arrays that a step of the agent has built, as a raid configuration.

    :param place: key of the step's result that has them.
    :raises Malformed: it names none.
    """
    built = dict(read_object(place, result.get(place)))
    where = f"{place}.logical_disks"
    listed = built.get("logical_disks")
    if not isinstance(listed, list) or not listed:
        raise Malformed(where, listed, "it must be a list of at least one array")
    disks = [read_object(f"{where}[{number}]", disk) for number, disk in enumerate(listed)]
    for number, disk in enumerate(disks):
        read_object(f"{where}[{number}].root_device_hint", disk.get("root_device_hint") or {})
    if sum(bool(disk.get("is_root_volume")) for disk in disks) > 1:
        raise Malformed(where, listed, "it can have one root volume")
    return built


class StepOffer(NamedTuple):
    """:param versions: of the agent's hardware managers, to be sent back with each step; None: an agent without any."""

    steps: tuple[StepJson, ...]
    versions: dict[str, object] | None


def read_offer(answer: object, kind: str) -> StepOffer:
    """Return the result of the agent's command ``<kind>.get_<kind>_steps``.

    Of two hardware managers that offer one step the first wins, which is how a vendor's replaces the generic one's.

    :raises Malformed: with the place of what cannot be used.
    """
    listed = f"{kind}_steps"
    offered: dict[steps.Key, StepJson] = {}
    result = read_object("result", answer)
    for manager, values in read_object(listed, result.get(listed)).items():
        for number, value in enumerate(read_list(f"{listed}.{manager}", values)):
            step = _read_step(f"{listed}.{manager}[{number}]", value)
            offered.setdefault(steps.get_key(step), step)
    versions = read_object("hardware_manager_version", result.get("hardware_manager_version"))
    return StepOffer(tuple(offered.values()), dict(versions))


def _read_step(place: str, value: object) -> StepJson:
    step = read_object(place, value)
    name = step.get("step")
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise Malformed(f"{place}.step", name, "it must be the name of a step")
    interface = step.get("interface")
    if not isinstance(interface, str) or interface not in interfaces.TYPES:
        allowed = f"it must be one of {', '.join(interfaces.TYPES)}"
        raise Malformed(f"{place}.interface of step {name}", interface, allowed)
    about = f"of step {interface}.{name}"
    return {
        "interface": interface,
        "step": name,
        "priority": _read_priority(f"{place}.priority {about}", step.get("priority")),
        "abortable": _read_flag(f"{place}.abortable {about}", step.get("abortable"), False),
        "reboot_requested": _read_flag(f"{place}.reboot_requested {about}", step.get("reboot_requested"), False),
        "argsinfo": _read_argsinfo(f"{place}.argsinfo {about}", step.get("argsinfo")),
        "requires_ramdisk": _read_flag(f"{place}.requires_ramdisk {about}", step.get("requires_ramdisk"), True),
    }


def _read_priority(place: str, value: object) -> float:
    """Return the agent's default priority, an integer or a float (specification 002).

    It cannot be left out: a mistyped key would take an erasing step out of every cleaning.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise Malformed(place, value, "it must be a number of at least 0")
    return value


def _read_flag(place: str, value: object, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Malformed(place, value, "it must be true or false, or be left out")
    return value


def _read_argsinfo(place: str, value: object) -> dict[str, dict[str, object]] | None:
    """Return the arguments; None: the agent does not describe them, and checks them itself."""
    if value is None:
        return None
    argsinfo = {}
    for name, about in read_object(place, value).items():
        argument = argsinfo[name] = dict(read_object(f"{place}, argument {name}", about))
        if "required" in argument:
            argument["required"] = _read_flag(f"{place}, argument {name}, required", argument["required"], False)
    return argsinfo
