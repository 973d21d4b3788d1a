"""What a conductor checks of a node: interface by interface, or for one flow."""

from typing import TypedDict

from ingot.common import errors, interfaces
from ingot.common.json_types import FlowRequest, OfferedSteps
from ingot.common.steps import StepJson
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import checks, planning
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
    nothing: OfferedSteps = {"at": None, "priorities": {}}
    deploy: DeployInterface | None = task.driver.deploy
    offered = (deploy and deploy.recall_in_band_steps(task, kind)) or nothing
    known: list[StepJson] = []
    for label, priority in offered["priorities"].items():
        interface, _dot, step = label.partition(".")
        known.append({"interface": interface, "step": step, "priority": priority})
    return [
        {
            "interface": one.interface,
            "step": one.step,
            "priority": one.priority,
            "offered_at": offered["at"] if one.label in offered["priorities"] else None,
        }
        for one in planning.default_steps(task, kind, known)
    ]


def _validate_interface(task: Task, interface_type: str) -> Validation:
    try:
        checks.require_interface(task, interface_type).validate(task)
    except errors.IngotError as exc:
        return {"result": False, "reason": exc.message}
    return {"result": True, "reason": None}
