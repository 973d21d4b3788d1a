"""Steps as drivers and agents offer them, and as plans keep them."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Self, TypedDict, cast

from ingot.common.json_types import InternalInfo, Json, StepRequest

Key = tuple[str, str]
"""Interface and name of a step. Entries of a flow have ``flow`` as interface: others may use their names."""

STEPS, STEP_INDEX = "_steps", "_step_index"
"""How the keys of ``driver_internal_info`` end that hold a flow's plan and its position in it."""


class Runner(enum.StrEnum):
    """What runs a planned step; UNKNOWN stands for any that another release has written."""

    FLOW = "flow"
    DRIVER = "driver"
    AGENT = "agent"
    RESERVED = "reserved"
    CHILDREN = "children"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls("unknown")


class StepJson(TypedDict, total=False):
    """A step as drivers and agents offer it (``get_deploy_steps``), and as plans keep it: see :class:`PlannedStep`.

    :ivar argsinfo: of offers only: argument -> ``{"description": str, "required": bool}``; None: not described.
    :ivar priority_of_agent: of offers of drivers only: whether the priority that the agent gives the step holds.
    """

    interface: str
    step: str
    priority: float
    args: Json
    argsinfo: Mapping[str, Mapping[str, object]] | None
    abortable: bool
    idempotent: bool
    priority_of_agent: bool
    requires_ramdisk: bool
    reboot_requested: bool
    origin: str
    runner: str
    only: list[str] | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a plan.

    :ivar origin: what asked for it: flow, driver, agent, request, ``template <name>`` or ``runbook <name>``.
    :ivar idempotent: whether a call may be repeated, after a conductor died in it or hardware did not answer.
    :ivar only: names and uuids of the child nodes that it runs on; None: on all.
    """

    interface: str
    step: str
    origin: str
    runner: Runner
    priority: float = 0
    args: Json = dataclasses.field(default_factory=dict)
    abortable: bool = False
    idempotent: bool = False
    requires_ramdisk: bool = False
    reboot_requested: bool = False
    only: list[str] | None = None

    @property
    def key(self) -> Key:
        return "flow" if self.runner is Runner.FLOW else self.interface, self.step

    @property
    def label(self) -> str:
        """How messages and options name the step: ``raid.apply_configuration``."""
        return f"{self.interface}.{self.step}"

    @classmethod
    def from_json(cls, kept: Json) -> Self:
        """Return a step that :meth:`as_json` has written, here or in another release.

        Unknown keys are dropped: a release that adds one must not depend on it while older conductors run beside it.
        """
        known = {name: kept[name] for name in cls.__slots__ if name in kept}
        # A node that failed, or was held, under release 0.1 keeps a plan without runners until its next flow begins.
        runner = "flow" if kept["origin"] == "flow" else "agent" if kept.get("in_band") else "driver"
        return cls(**{**known, "runner": Runner(kept.get("runner", runner))})

    def as_json(self) -> StepJson:
        """Return the step as plans, drivers and clients of the API get it."""
        step = {name: getattr(self, name) for name in self.__slots__} | {"runner": self.runner.value}
        if self.runner is not Runner.CHILDREN:
            del step["only"]
        return cast(StepJson, step)


def get_key(step: StepRequest | StepJson) -> Key:
    return step["interface"], step["step"]


def get_label(step: StepRequest | StepJson) -> str:
    return f"{step['interface']}.{step['step']}"


def name_source(label: str, origin: str) -> str:
    """Return how messages name a step, with the template or runbook that it comes from.

    :param origin: as in :class:`PlannedStep`.
    """
    return f"{label} of {origin}" if " " in origin else label


def read_plan(info: InternalInfo, name: str | None = None) -> tuple[list[Json], int]:
    """Return the plan of the flow that runs, and the position in it; an empty one if there is none.

    :param name: of the flow's kind or of the flow; None for whichever there is.
    """
    known = cast(Mapping[str, object], info)
    if name is None:
        name = next((key.removesuffix(STEP_INDEX) for key in known if key.endswith(STEP_INDEX)), "")
    return cast(list[Json], known.get(f"{name}{STEPS}") or []), cast(int, known.get(f"{name}{STEP_INDEX}") or 0)
