"""What a conductor checks of a node before somebody relies on it: interface by interface, or for one flow."""

from typing import Any

from ingot.common import errors, interfaces
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import planning
from ingot.conductor.steps.flow import Flow, Report
from ingot.conductor.task.task_manager import Task


def node(task: Task) -> dict[str, dict[str, Any]]:
    """The result of each interface: ``{"result": True, False or None (not supported), "reason": text or None}``.

    Steps count with the deploy interface: those of the instance's traits, and of the templates of all traits of the
    node, which it promises to be able to run (specification 003).
    """
    results = {kind: _result(task, kind) for kind in interfaces.TYPES if kind != "vendor"}
    if results["deploy"]["result"]:
        wrong: list[str] = []
        try:
            _check_steps(task, lambda exc: wrong.append(exc.message))
        except errors.IngotError as exc:
            wrong.append(exc.message)
        if wrong:
            results["deploy"] = {"result": False, "reason": " ".join(dict.fromkeys(wrong))}
    return results


def deployment(task: Task, request: dict[str, Any]) -> None:
    """Checks everything that can be known before the machine is touched.

    :param request: arguments of the deploy request.
    :raises Invalid: the first thing that is wrong, with its name.
    """
    task.node.request = request
    flow = FLOWS["deploy"]
    check_interfaces(task, flow, planning.raise_error)
    check_traits(task, planning.raise_error)
    planning.plan_at_start(task, flow)


def interfaces_of(task: Task, flow_name: str) -> None:
    """Checks the interfaces that a flow needs.

    :raises Invalid: the first thing that is wrong with them, or there is no such flow.
    """
    check_interfaces(task, get_flow(flow_name), planning.raise_error)


def get_flow(flow_name: str) -> Flow:
    """A flow of the table.

    :raises Invalid: there is none of that name.
    """
    if flow_name not in FLOWS:
        raise errors.Invalid(
            field="flow", value=flow_name, allowed=f"This conductor knows: {', '.join(sorted(FLOWS))}."
        )
    return FLOWS[flow_name]


def check_interfaces(task: Task, flow: Flow, report: Report, agent_comes: bool = False) -> None:
    """Checks what a flow needs, whatever its steps, which are checked where they are planned.

    :param agent_comes: whether the machine will boot the agent's ramdisk.
    """
    used = dict.fromkeys(entry.interface for entry in (*flow.first, *flow.last))
    needed = dict.fromkeys((*flow.needs, *(("boot",) if agent_comes else ())))
    for kind in {**needed, **used}:
        try:
            found = interface(task, kind)
            if kind in needed:
                found.validate(task)
        except errors.IngotError as exc:
            report(exc)


def _check_steps(task: Task, report: Report) -> None:
    """Checks what a deployment's traits and templates ask for, and the templates that the node's traits promise.

    :raises Invalid: what makes every plan impossible.
    """
    flow = FLOWS["deploy"]
    check_traits(task, report)
    planning.plan_at_start(task, flow, report)
    planning.check_node_templates(task, flow, task.traits, report)


def steps(task: Task, kind: str) -> list[dict[str, Any]]:
    """The enabled steps of a kind, in the order in which they would run: interface, step, priority.

    The agent is not asked. Its steps are among them while they are known: from the plan of a flow of that kind that
    runs, or was the last one and failed.
    """
    known = [step for step in task.node.driver_internal_info.get(f"{kind}_steps", []) if step["origin"] == "agent"]
    plan = planning.default_steps(task, kind, known)
    return [{"interface": step.interface, "step": step.step, "priority": step.priority} for step in plan]


def interface(task: Task, kind: str) -> Any:
    """The node's interface of a kind.

    :raises Invalid: it has none on this conductor; the message says why.
    """
    found = getattr(task.driver, kind)
    if found is None:
        raise errors.Invalid(task.missing.get(kind, f"The node has no {kind} interface."))
    return found


def _result(task: Task, kind: str) -> dict[str, Any]:
    try:
        found = interface(task, kind)
        if not found.supported:
            return {"result": None, "reason": f"Interface {found.name} does not support this."}
        found.validate(task)
    except errors.IngotError as exc:
        return {"result": False, "reason": exc.message}
    return {"result": True, "reason": None}


def check_traits(task: Task, report: Report) -> None:
    """The instance's traits must be traits of the node (specification 003).

    :raises Invalid: they are no traits at all, and nothing can be planned with them.
    """
    wanted = task.node.instance_info.get("traits")
    if not wanted:
        return
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise errors.Invalid(field="instance_info.traits", value=wanted, allowed="It must be a list of strings.")
    missing = sorted(set(wanted) - set(task.traits))
    if missing:
        report(
            errors.Invalid(
                field="instance_info.traits",
                value=missing,
                allowed="The node does not have these traits: add them to the node or leave them out (missing traits).",
            )
        )
