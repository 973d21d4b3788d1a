"""Steps as requests ask for them, as drivers and agents offer them, and as plans keep them (all layers)."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self, TypedDict

Key = tuple[str, str]
"""Interface and name of a step."""


class StepRequest(TypedDict, total=False):
    """A step in a request, a template or a runbook; the last two keys are of steps for child nodes."""

    interface: str
    step: str
    args: dict[str, Any] | None
    priority: float
    execute_on_child_nodes: bool
    limit_child_node_execution: list[str] | None


class StepJson(TypedDict, total=False):
    """A step as drivers and agents offer it (``get_deploy_steps``), and as plans keep it: see :class:`PlannedStep`.

    :ivar argsinfo: of offers only: argument -> ``{"description": str, "required": bool}``; None: not described.
    """

    interface: str
    step: str
    priority: float
    args: dict[str, Any]
    argsinfo: Mapping[str, Mapping[str, Any]] | None
    abortable: bool
    idempotent: bool
    requires_ramdisk: bool
    reboot_requested: bool
    origin: str
    runner: str
    only: list[str] | None


class AskedBy(TypedDict):
    """The user and the project that a request came from."""

    user: str | None
    project: str | None


class ReplacedRun(TypedDict):
    """The run that waited when another flow was requested."""

    flow: str
    run: str


class FlowRequest(TypedDict, total=False):
    """What a flow works with: the column ``nodes.request``.

    :ivar kind: of the steps for a child node, which are ``steps``; ``run``: the run that they are.
    :ivar origin: what the steps come from, if not from the request itself: ``runbook <name>``.
    :ivar inventory_before: when the inventory was found that there was before an inspection.
    :ivar aborted: the message with which an aborted flow that leaves the agent will end.
    """

    configdrive: str | dict[str, Any]
    rebuild: bool
    clean_steps: list[StepRequest]
    deploy_steps: list[StepRequest]
    service_steps: list[StepRequest]
    disable_ramdisk: bool
    rescue_password: str
    origin: str
    replaces: ReplacedRun
    asked_by: AskedBy
    kind: str
    steps: list[StepRequest]
    run: str
    restarts: int
    inventory_before: str | None
    aborted: str


class PowerRequest(TypedDict, total=False):
    """A power change that a user asked for: the column ``nodes.power_request``. Empty: none."""

    target: str
    memory: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step of a plan.

    :ivar origin: what asked for it: ``flow``, ``driver``, ``agent``, ``request``, ``template <name>`` ...
    :ivar runner: what runs it: ``flow``, ``driver``, ``agent``, ``reserved`` or ``children``.
    :ivar idempotent: whether a call may be repeated, after a conductor died in it or hardware did not answer.
    :ivar only: names and uuids of the child nodes that it runs on; None: on all.
    """

    interface: str
    step: str
    origin: str
    runner: str
    priority: float = 0
    args: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    abortable: bool = False
    idempotent: bool = False
    requires_ramdisk: bool = False
    reboot_requested: bool = False
    only: tuple[str, ...] | None = None

    @property
    def key(self) -> Key:
        return self.interface, self.step

    @property
    def label(self) -> str:
        """How messages and options name the step: ``raid.apply_configuration``."""
        return f"{self.interface}.{self.step}"

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Return a step that :meth:`as_json` has written, here or in another release."""
        known = {name: kept[name] for name in cls.__slots__ if name in kept}
        return cls(**{**known, "only": tuple(kept["only"]) if kept.get("only") else None})

    def as_json(self) -> StepJson:
        """Return the step as plans, drivers and the API's clients get it."""
        step: StepJson = {
            "interface": self.interface,
            "step": self.step,
            "priority": self.priority,
            "args": dict(self.args),
            "origin": self.origin,
            "runner": self.runner,
            "abortable": self.abortable,
            "idempotent": self.idempotent,
            "requires_ramdisk": self.requires_ramdisk,
            "reboot_requested": self.reboot_requested,
        }
        if self.runner == "children":
            step["only"] = list(self.only) if self.only else None
        return step


def key(step: StepRequest | StepJson) -> Key:
    return step["interface"], step["step"]


def label(step: StepRequest | StepJson) -> str:
    return f"{step['interface']}.{step['step']}"
