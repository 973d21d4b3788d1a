"""What a conductor checks of a node: interface by interface, or for one flow."""

from typing import TypedDict, cast

from ingot.common import errors, interfaces
from ingot.common.json_types import FlowRequest
from ingot.common.steps import StepJson, read_plan
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import planning
from ingot.conductor.steps.flow import Flow, Report
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces.base import BaseInterface


class Validation(TypedDict):
    """Whether an interface can work on the node; None: it does not support its feature. The reason, if not."""

    result: bool | None
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
            check_traits(task, note)
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
    check_interfaces(task, flow, planning.raise_error)
    check_traits(task, planning.raise_error)
    planning.plan_at_start(task, flow)


def validate_flow(task: Task, flow_name: str) -> None:
    """Check the interfaces that a flow needs.

    :raises Invalid: the first thing that is wrong with them, or there is no such flow.
    """
    check_interfaces(task, get_flow(flow_name), planning.raise_error)


def get_flow(flow_name: str) -> Flow:
    """Return a flow of the table.

    :raises Invalid: there is none of that name.
    """
    if flow_name not in FLOWS:
        raise errors.Invalid(
            field="flow", value=flow_name, allowed=f"This conductor knows: {', '.join(sorted(FLOWS))}."
        )
    return FLOWS[flow_name]


def check_interfaces(task: Task, flow: Flow, report: Report, agent_comes: bool = False) -> None:
    """Check what a flow needs, whatever its steps, which are checked where they are planned.

    :param agent_comes: whether the machine will boot the agent's ramdisk.
    """
    used = dict.fromkeys(entry.interface for entry in (*flow.first, *flow.last))
    needed = dict.fromkeys((*flow.needs, *(("boot",) if agent_comes else ())))
    for interface_type in {**needed, **used}:
        try:
            found = require_interface(task, interface_type)
            if interface_type in needed:
                found.validate(task)
        except errors.IngotError as exc:
            report(exc)


def list_steps(task: Task, kind: str) -> list[StepJson]:
    """Return the enabled steps of a kind, in the order in which they would run: interface, step, priority.

    The agent is not asked. Its steps are among them while they are known: from the plan of a flow of that kind that
    runs, or was the last one and failed.
    """
    plan, _index = read_plan(task.node.driver_internal_info, kind)
    known = [cast(StepJson, step) for step in plan if step["origin"] == "agent"]
    found = planning.default_steps(task, kind, known)
    return [{"interface": step.interface, "step": step.step, "priority": step.priority} for step in found]


def require_interface(task: Task, interface_type: str) -> BaseInterface:
    """Return the node's interface of a type.

    :raises Invalid: it has none on this conductor; the message says why.
    """
    found: BaseInterface | None = getattr(task.driver, interface_type)
    if found is None:
        raise errors.Invalid(task.missing.get(interface_type, f"The node has no {interface_type} interface."))
    return found


def _validate_interface(task: Task, interface_type: str) -> Validation:
    try:
        found = require_interface(task, interface_type)
        if not found.supported:
            return {"result": None, "reason": f"Interface {found.name} does not support this."}
        found.validate(task)
    except errors.IngotError as exc:
        return {"result": False, "reason": exc.message}
    return {"result": True, "reason": None}


def check_traits(task: Task, report: Report) -> None:
    """Check that the instance's traits are traits of the node (specification 003).

    :raises Invalid: they are no traits at all, and nothing can be planned with them.
    """
    requested = task.node.instance_info.get("traits")
    if not requested:
        return
    if not isinstance(requested, list) or not all(isinstance(name, str) for name in requested):
        raise errors.Invalid(field="instance_info.traits", value=requested, allowed="It must be a list of strings.")
    missing = sorted(set(requested) - set(task.traits))
    if missing:
        report(
            errors.Invalid(
                field="instance_info.traits",
                value=missing,
                allowed="The node does not have these traits: add them to the node or leave them out (missing traits).",
            )
        )
