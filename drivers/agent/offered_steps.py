"""What an agent offers: its answer to the question for its steps, checked and typed.

Hardware managers come from many vendors, so nothing of the answer is trusted: whatever the engine relies on is checked
here, and a step that cannot be used is named with what is wrong in it.
"""

import dataclasses
import math

from ingot.common import interfaces
from ingot.common.steps import StepJson
from ingot.drivers.agent.answers import Malformed, read_list, read_object
from ingot.drivers.interfaces.base import ArgsInfo


@dataclasses.dataclass(frozen=True, slots=True)
class OfferedStep:
    """A step of an agent's.

    :param priority: the agent's default; 0, or none in its answer: it is run only on request.
    :param reboot_requested: whether the machine must be rebooted after it.
    :param argsinfo: None: the agent does not describe its arguments, and checks them itself.
    """

    interface: str
    step: str
    priority: float
    abortable: bool
    reboot_requested: bool
    argsinfo: ArgsInfo | None
    requires_ramdisk: bool

    @property
    def label(self) -> str:
        return f"{self.interface}.{self.step}"

    def as_step(self) -> StepJson:
        """Return the step as plans and the API carry it."""
        return {
            "interface": self.interface,
            "step": self.step,
            "priority": self.priority,
            "abortable": self.abortable,
            "reboot_requested": self.reboot_requested,
            "argsinfo": self.argsinfo,
            "requires_ramdisk": self.requires_ramdisk,
        }


@dataclasses.dataclass(frozen=True, slots=True)
class StepOffer:
    """:param versions: of the agent's hardware managers, to be sent back with each step; None: not reported."""

    steps: tuple[OfferedStep, ...]
    versions: dict[str, object] | None


NO_STEPS = StepOffer((), None)
"""Of an agent that is older than deploy steps."""


def read_offer(answer: object, kind: str) -> StepOffer:
    """Return the result of the agent's command ``<kind>.get_<kind>_steps``.

    Of two hardware managers that offer one step the first wins, which is how a vendor's replaces the generic one's.

    :raises Malformed: with the place of what cannot be used.
    """
    listed = f"{kind}_steps"
    steps: dict[tuple[str, str], OfferedStep] = {}
    result = read_object("result", answer)
    for manager, offered in read_object(listed, result.get(listed)).items():
        for number, value in enumerate(read_list(f"{listed}.{manager}", offered)):
            step = _read_step(f"{listed}.{manager}[{number}]", value)
            steps.setdefault((step.interface, step.step), step)
    versions = result.get("hardware_manager_version")
    return StepOffer(
        tuple(steps.values()), None if versions is None else dict(read_object("hardware_manager_version", versions))
    )


def _read_step(place: str, value: object) -> OfferedStep:
    step = read_object(place, value)
    name = step.get("step")
    if not isinstance(name, str) or not name:
        raise Malformed(f"{place}.step", name, "it must be the name of a step")
    interface = step.get("interface")
    if not isinstance(interface, str) or interface not in interfaces.TYPES:
        known = ", ".join(interfaces.TYPES)
        raise Malformed(f"{place}.interface of step {name}", interface, f"it must be one of {known}")
    about = f"of step {interface}.{name}"
    return OfferedStep(
        interface=interface,
        step=name,
        priority=_read_priority(f"{place}.priority {about}", step.get("priority")),
        abortable=_read_flag(f"{place}.abortable {about}", step.get("abortable"), False),
        reboot_requested=_read_flag(f"{place}.reboot_requested {about}", step.get("reboot_requested"), False),
        argsinfo=_read_argsinfo(f"{place}.argsinfo {about}", step.get("argsinfo")),
        requires_ramdisk=_read_flag(f"{place}.requires_ramdisk {about}", step.get("requires_ramdisk"), True),
    )


def _read_priority(place: str, value: object) -> float:
    """Return a priority: specification 002 lets it be an integer or a float."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise Malformed(place, value, "it must be a number of at least 0, or be left out")
    return value


def _read_flag(place: str, value: object, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise Malformed(place, value, "it must be true or false, or be left out")
    return value


def _read_argsinfo(place: str, value: object) -> ArgsInfo | None:
    if value is None:
        return None
    return {
        name: _read_argument(f"{place}, argument {name}", about) for name, about in read_object(place, value).items()
    }


def _read_argument(place: str, about: object) -> dict[str, object]:
    argument = dict(read_object(place, about))
    if "required" in argument:
        argument["required"] = _read_flag(f"{place}, required", argument["required"], False)
    return argument
