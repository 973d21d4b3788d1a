"""What an agent offers: its answer to the question for its steps, checked and typed.

Hardware managers are written by many hands, so nothing of the answer is taken on trust: whatever the engine relies on
is checked here, and a step that cannot be used is named with what is wrong in it.
"""

import dataclasses
import math
from typing import Any

from ingot.common import interfaces
from ingot.drivers.agent.answers import Malformed, mapping, sequence

Priority = int | float


@dataclasses.dataclass(frozen=True, slots=True)
class OfferedStep:
    """A step of an agent's.

    :param priority: what the agent would give it; 0, or none in its answer: it is run only when somebody asks for it.
    :param reboot_requested: whether the machine must be booted anew after it.
    :param argsinfo: argument name -> {"description": str, "required": bool}; None: the agent does not say, and checks
        arguments itself.
    """

    interface: str
    step: str
    priority: Priority
    abortable: bool
    reboot_requested: bool
    argsinfo: dict[str, dict[str, Any]] | None
    requires_ramdisk: bool

    @property
    def label(self) -> str:
        return f"{self.interface}.{self.step}"

    def as_step(self) -> dict[str, Any]:
        """The step as dictionaries carry it through plans and the API."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, slots=True)
class Offer:
    """:param versions: of the agent's hardware managers, by name, to be given back with each step; None if it does not
    say."""

    steps: tuple[OfferedStep, ...]
    versions: dict[str, Any] | None


NOTHING = Offer((), None)
"""Of an agent that is older than deploy steps."""


def read(answer: Any, kind: str) -> Offer:
    """The result of the agent's command ``<kind>.get_<kind>_steps``.

    Of two hardware managers that offer one step the first wins, which is how a vendor's replaces the generic one's.

    :raises Malformed: with the place of what cannot be used.
    """
    listed = f"{kind}_steps"
    found: dict[tuple[str, str], OfferedStep] = {}
    result = mapping("result", answer)
    for manager, offered in mapping(listed, result.get(listed)).items():
        for number, step in enumerate(sequence(f"{listed}.{manager}", offered)):
            typed = _step(f"{listed}.{manager}[{number}]", step)
            found.setdefault((typed.interface, typed.step), typed)
    return Offer(tuple(found.values()), _versions(result.get("hardware_manager_version")))


def _versions(value: Any) -> dict[str, Any] | None:
    return None if value is None else dict(mapping("hardware_manager_version", value))


def _step(place: str, told: Any) -> OfferedStep:
    step = mapping(place, told)
    name = step.get("step")
    if not isinstance(name, str) or not name:
        raise Malformed(f"{place}.step", name, "it must be the name of a step")
    interface = step.get("interface")
    if interface not in interfaces.KINDS:
        known = ", ".join(interfaces.KINDS)
        raise Malformed(f"{place}.interface of step {name}", interface, f"it must be one of {known}")
    about = f"of step {interface}.{name}"
    return OfferedStep(
        interface=interface,
        step=name,
        priority=_priority(f"{place}.priority {about}", step.get("priority")),
        abortable=_flag(f"{place}.abortable {about}", step.get("abortable"), False),
        reboot_requested=_flag(f"{place}.reboot_requested {about}", step.get("reboot_requested"), False),
        argsinfo=_argsinfo(f"{place}.argsinfo {about}", step.get("argsinfo")),
        requires_ramdisk=_flag(f"{place}.requires_ramdisk {about}", step.get("requires_ramdisk"), True),
    )


def _priority(place: str, value: Any) -> Priority:
    """Specification 002 lets a priority be an integer or a float."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise Malformed(place, value, "it must be a number of at least 0, or be left out")
    return value


def _flag(place: str, value: Any, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Malformed(place, value, "it must be true or false, or be left out")
    return value


def _argsinfo(place: str, value: Any) -> dict[str, dict[str, Any]] | None:
    if value is None:
        return None
    return {name: _argument(f"{place}, argument {name}", about) for name, about in mapping(place, value).items()}


def _argument(place: str, about: Any) -> dict[str, Any]:
    described = dict(mapping(place, about))
    if "required" in described:
        described["required"] = _flag(f"{place}, required", described["required"], False)
    return described
