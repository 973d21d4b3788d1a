"""What a flow needs of a node, beside its plan: interfaces that are right, and traits."""

from ingot.common import context, errors
from ingot.common.json_types import Unchecked
from ingot.conductor.steps import planning
from ingot.conductor.steps.flow import Flow, Report
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces.base import BaseInterface


def check_late(task: Task, flow: Flow, asked_by: Unchecked) -> None:
    """Check what could not be checked when the request was accepted, with the rights of its user.

    :raises IngotError: the first thing that is wrong.
    """
    own = task.context
    project, roles = asked_by["project"], asked_by["roles"]
    task.context = context.RequestContext(project_id=project, roles=roles, request_id=own.request_id, overwrite=False)
    try:
        check_flow(task, flow, planning.raise_error)
    finally:
        task.context = own


def check_flow(task: Task, flow: Flow, report: Report) -> None:
    """Check what a flow needs before its first step, beside its plan."""
    check_interfaces(task, flow, report)
    if flow.kind == "deploy":
        check_traits(task, report)


def check_interfaces(task: Task, flow: Flow, report: Report, agent_comes: bool = False) -> None:
    """Check what a flow needs, whatever its steps, which are checked where they are planned.

    :param agent_comes: whether the machine will boot the agent's ramdisk.
    """
    needed = (*flow.needs, "boot") if agent_comes else flow.needs
    for interface_type in dict.fromkeys((*needed, *(entry.interface for entry in (*flow.first, *flow.last)))):
        try:
            found = require_interface(task, interface_type)
            if interface_type in needed:
                found.validate(task)
        except errors.IngotError as exc:
            report(exc)


def require_interface(task: Task, interface_type: str) -> BaseInterface:
    """Return the node's interface of a type.

    :raises Invalid: it has none on this conductor; the message says why.
    """
    found: BaseInterface | None = getattr(task.driver, interface_type)
    if found is None:
        raise errors.Invalid(task.missing.get(interface_type, f"The node has no {interface_type} interface."))
    return found


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
