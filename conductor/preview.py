"""What a flow would do with a node: its plan before a user starts it. Nothing is touched for it."""

from typing import TypedDict

from ingot.common import errors, masking
from ingot.common.json_types import FlowRequest, Json
from ingot.common.steps import Key, PlannedStep, StepJson, get_key
from ingot.conductor import validation
from ingot.conductor.steps import checks, planning, reserved
from ingot.conductor.steps.flow import Flow, Report
from ingot.conductor.task.task_manager import Task


class Preview(TypedDict):
    """A plan as the API shows it.

    :ivar in_band_steps_known: false if an agent will come that may add steps of its own.
    :ivar errors: the message of each thing that is wrong.
    """

    steps: list[Json]
    in_band_steps_known: bool
    errors: list[str]


def build_preview(task: Task, flow_name: str, request: FlowRequest) -> Preview:
    """Return the plan of a flow as the engine would run it if it were requested now.

    :param task: may be a shared one; its node's record, not the node, gets the request.
    :param flow_name: one of the table of flows.
    :param request: what the API would hand over with the flow.
    :raises Invalid: there is no such flow.
    """
    flow = validation.get_flow(flow_name)
    task.node.request = request
    wrong: list[errors.IngotError] = []
    note = wrong.append
    steps: list[PlannedStep] = []
    presumed: set[Key] = set()
    expects_agent = False
    try:
        if flow.kind == "deploy":
            checks.check_traits(task, note)
        rough = planning.plan_at_start(task, flow, lambda _exc: None)  # what is wrong is reported with the second plan
        expects_agent = planning.expects_agent(task, flow, rough)
        presumed = _find_presumed(task, flow) if expects_agent else set()
        checks.check_interfaces(task, flow, note, expects_agent)
        steps = _plan_all(task, flow, presumed, note) if expects_agent else planning.plan_at_start(task, flow, note)
    except errors.IngotError as exc:  # what makes every plan impossible, such as an option with a wrong priority
        note(exc)
    return {
        "steps": [_show(step, presumed) for step in steps],
        "in_band_steps_known": not expects_agent,
        "errors": list(dict.fromkeys(exc.message for exc in wrong)),
    }


def _find_presumed(task: Task, flow: Flow) -> set[Key]:
    """Return what is requested and neither driver nor conductor offer: only the agent still may."""
    request = task.node.request
    requested = {"clean": request.get("clean_steps"), "service": request.get("service_steps")}.get(str(flow.kind)) or []
    if flow.kind == "deploy":
        requested = [step for step, _origin in planning.deploy_requests(task)]
    offered = planning.read_offers(task, str(flow.kind), []).steps
    return {
        get_key(step)
        for step in requested
        if get_key(step) not in offered
        and step["step"] not in reserved.STEPS
        and not step.get("execute_on_child_nodes")
    }


def _plan_all(task: Task, flow: Flow, presumed: set[Key], note: Report) -> list[PlannedStep]:
    """Return the plan as it will be once the agent has offered what is presumed of it, and nothing else."""
    offered: list[StepJson] = [
        {"interface": interface, "step": step, "priority": 0} for interface, step in sorted(presumed)
    ]
    return planning.add_entries(task, flow, flow.plan(task, offered, note))


def _show(step: PlannedStep, presumed: set[Key]) -> Json:
    """Return a step as users see it. ``presumed``: whether the agent offers it is not known yet."""
    shown = {**step.as_json(), "args": masking.mask(step.args), "presumed": step.key in presumed}
    return {name: value for name, value in shown.items() if name not in ("idempotent", "only")}
