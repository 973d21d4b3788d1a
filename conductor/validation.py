"""What a conductor checks of a node: interface by interface, or for one flow."""

from collections.abc import Mapping
from typing import TypedDict

from ingot.common import errors, interfaces
from ingot.common.json_types import FlowRequest, OfferedSteps
from ingot.common.steps import Runner, StepJson
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import checks, planning, reserved
from ingot.conductor.steps.flow import Flow
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces.deploy import DeployInterface


class Validation(TypedDict):
    """Whether an interface can work on the node, and if not, the reason: one is that it does not have its feature."""

    result: bool
    reason: str | None


def validate_node(task: Task) -> dict[str, Validation]:
    """Return the result of each interface.

    Steps count with the deploy interface: those of the instance's traits, and of the templates of all traits of the
    node. It promises to be able to run them (specification 003).
    """
    results = {name: _validate_interface(task, name) for name in interfaces.TYPES if name != "vendor"}
    if results["deploy"]["result"]:
        wrong: list[str] = []

        def note(exc: errors.IngotError) -> None:
            wrong.append(exc.message)

        try:
            checks.check_traits(task, note)
            planning.plan_at_start(task, FLOWS["deploy"], note)
            planning.check_node_templates(task, FLOWS["deploy"], task.traits, note)
        except errors.IngotError as exc:  # what makes every plan impossible
            note(exc)
        if wrong:
            results["deploy"] = {"result": False, "reason": " ".join(dict.fromkeys(wrong))}
    return results


def validate_deployment(task: Task, request: FlowRequest) -> None:
    """Check everything that can be known before the machine is touched.

    :param request: arguments of the deploy request.
    :raises Invalid: the first thing that is wrong, with its name.
    """
    task.node.request = request
    flow = FLOWS["deploy"]
    checks.check_flow(task, flow, planning.raise_error)
    planning.plan_at_start(task, flow)


def validate_flow(task: Task, flow_name: str) -> None:
    """Check the interfaces that a flow needs.

    :raises Invalid: the first thing that is wrong with them, or there is no such flow.
    """
    checks.check_flow(task, get_flow(flow_name), planning.raise_error)


def get_flow(flow_name: str) -> Flow:
    """Return a flow of the table.

    :raises Invalid: there is none of that name.
    """
    if flow_name not in FLOWS:
        raise errors.Invalid(
            field="flow", value=flow_name, allowed=f"This conductor knows: {', '.join(sorted(FLOWS))}."
        )
    return FLOWS[flow_name]


class ListedStep(TypedDict):
    """An enabled step; ``offered_at`` says when an agent has offered it, None: it is the driver's alone."""

    interface: str
    step: str
    priority: float
    offered_at: str | None


def list_steps(task: Task, kind: str) -> list[ListedStep]:
    """Return the enabled steps of a kind, in the order in which they would run.

    The agent is not asked: its steps are those that one has offered last.
    """
    offered = _recall_offer(task, kind)
    return [
        {
            "interface": one.interface,
            "step": one.step,
            "priority": one.priority,
            "offered_at": offered["at"] if one.label in offered["priorities"] else None,
        }
        for one in planning.default_steps(task, kind, _list_in_band(offered))
    ]


class ListedOffer(TypedDict):
    """A step that can be asked for; ``offered_at`` as in :class:`ListedStep`.

    :ivar interface: None: it can be named on any.
    :ivar priority: 0: it runs only when it is asked for.
    :ivar runner: what runs it: driver, agent or reserved.
    :ivar argsinfo: by argument, its description, type, and whether it is required; None: they are not described.
    """

    interface: str | None
    step: str
    priority: float
    offered_at: str | None
    runner: str
    argsinfo: Mapping[str, Mapping[str, object]] | None
    abortable: bool
    requires_ramdisk: bool


def list_offers(task: Task, kind: str) -> list[ListedOffer]:
    """Return all steps of a kind that can be asked for: those of driver and agent by name, and the reserved ones.

    The agent is not asked, as in :func:`list_steps`; what it has said of arguments is not kept.
    """
    offered = _recall_offer(task, kind)
    known = planning.read_offers(task, kind, _list_in_band(offered)).steps.values()
    steps = [
        _show_offer(one, offered["at"] if one.step.label in offered["priorities"] else None)
        for one in sorted(known, key=lambda offer: offer.step.key)
    ]
    return [*steps, *(_show_reserved(name, step) for name, step in reserved.STEPS.items())]


def _show_offer(offer: planning.StepOffer, offered_at: str | None) -> ListedOffer:
    step = offer.step
    return {
        "interface": step.interface,
        "step": step.step,
        "priority": step.priority,
        "offered_at": offered_at,
        "runner": step.runner.value,
        # Of a driver, None says that there are none.
        "argsinfo": {} if offer.argsinfo is None and step.runner is not Runner.AGENT else offer.argsinfo,
        "abortable": step.abortable,
        "requires_ramdisk": step.requires_ramdisk,
    }


def _show_reserved(name: str, step: reserved.ReservedStep) -> ListedOffer:
    return {
        "interface": None,
        "step": name,
        "priority": 0,
        "offered_at": None,
        "runner": Runner.RESERVED.value,
        "argsinfo": step.argsinfo,
        "abortable": True,
        "requires_ramdisk": False,
    }


def _recall_offer(task: Task, kind: str) -> OfferedSteps:
    """Return what the node's last agent has offered."""
    nothing: OfferedSteps = {"at": None, "priorities": {}}
    deploy: DeployInterface | None = task.driver.deploy
    return (deploy and deploy.recall_in_band_steps(task, kind)) or nothing


def _list_in_band(offered: OfferedSteps) -> list[StepJson]:
    """Return the steps of an agent as it has offered them, as far as that is kept."""
    known: list[StepJson] = []
    for label, priority in offered["priorities"].items():
        interface, _dot, step = label.partition(".")
        known.append({"interface": interface, "step": step, "priority": priority})
    return known


def _validate_interface(task: Task, interface_type: str) -> Validation:
    try:
        checks.require_interface(task, interface_type).validate(task)
    except errors.IngotError as exc:
        return {"result": False, "reason": exc.message}
    return {"result": True, "reason": None}
