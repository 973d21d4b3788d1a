"""Runs a step of a node on its child nodes: each child gets a flow of its own, and the parent polls until all are done.

The run of a child's flow has an id that follows from the parent's run, the step and the child. So a conductor that
takes over knows what was started and what has ended, and starts nothing twice.
"""

import time
import uuid

from ingot.common import clock, errors, states
from ingot.common.json_types import ChildOutcome, FlowRequest
from ingot.common.steps import PlannedStep, Runner, read_plan
from ingot.common.waits import Wait
from ingot.conductor.task.task_manager import Task
from ingot.db import models, node_lists, nodes
from ingot.drivers.interfaces import results

FLOW = "for_parent"
"""Name of the flow of the children."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0


def run(task: Task, kind: str, step: PlannedStep) -> results.Result:
    """Start the step on each child on which it was not yet started; done when it has ended well on all there are.

    :param kind: kind of the step.
    :raises StepFailed: it failed on a child.
    """
    running = [child for child in list_chosen(task, step) if not _has_ended(task, child, kind)]
    for child in running:
        _start(task, child, kind, step)
    if not running:
        return results.DONE
    waited = time.time() - task.memory.setdefault("since", time.time())
    return results.PollAfter(min(max(_SHORTEST_PAUSE, waited / 10), _LONGEST_PAUSE), waits_for=Wait.CHILDREN)


def abort_step(task: Task, kind: str | None, step: PlannedStep) -> None:
    """Request the abort of the flows of children that an aborted step has started.

    The parent does not wait for them anymore.
    """
    for child in list_chosen(task, step) if step.runner is Runner.CHILDREN else ():
        is_ours = child.flow == FLOW and child.request.get("run") == _run_id(task, kind, child)
        if is_ours and nodes.request_abort(task.db, child.uuid, FLOW):
            task.services.notify(child, f"abort of step {step.label} of its parent")


def list_chosen(task: Task, step: PlannedStep) -> list[models.Node]:
    """Return the children that a step runs on, with what :func:`ingot.db.node_lists.list_children` reads."""
    found = node_lists.list_children(task.db, task.node.uuid)
    return [child for child in found if not step.only or {child.uuid, child.name} & set(step.only)]


def unavailable_reason(child: models.Node) -> str | None:
    """Return why steps of the parent must not touch a child.

    People may work on a machine that is in maintenance, and the parent's user need not know. What is ``protected`` is
    the child's instance, and steps leave that.
    """
    if not child.maintenance:
        return None
    reason = child.maintenance_reason or "no reason was given"
    return f"is in maintenance ({reason}): end that, or name the other children in limit_child_node_execution"


def _run_id(task: Task, kind: str | None, child: models.Node) -> str:
    _plan, index = read_plan(task.node.driver_internal_info, kind)
    return str(uuid.uuid5(uuid.UUID(child.uuid), f"{task.node.run_id} {index}"))


def _has_ended(task: Task, child: models.Node, kind: str) -> bool:
    outcome = child.driver_internal_info.get("for_parent")
    if outcome is None or outcome["run"] != _run_id(task, kind, child):
        return False
    if outcome["error"]:
        raise errors.StepFailed(f"on child node {child.uuid}: {outcome['error']}")
    return True


def _start(task: Task, child: models.Node, kind: str, step: PlannedStep) -> None:
    """Accept the flow for the child as the API does for a user; a busy child is asked again at the next poll."""
    if child.flow is not None or child.reservation is not None:
        return
    reason = unavailable_reason(child)
    if child.provision_state not in states.STABLE:
        reason = f"is in state {child.provision_state}; it must be at rest"
    if reason:
        raise errors.StepFailed(f"child node {child.uuid} {reason}")
    request: FlowRequest = {
        "kind": kind,
        "steps": [{"interface": step.interface, "step": step.step, "args": step.args}],
        "run": _run_id(task, kind, child),
        "origin": step.origin,
        "disable_ramdisk": True,
    }
    if "asked_by" in task.node.request:
        request["asked_by"] = task.node.request["asked_by"]
    values = {"flow": FLOW, "request": request, "run_id": None, "abort_requested": False, "due_at": clock.now()}
    try:
        nodes.compare_and_set(task.db, child, values)
    except (errors.NodeLocked, errors.ChangedMeanwhile, errors.NotFound):
        return
    task.services.notify(child, f"step {step.label} of its parent")


def note_outcome(task: Task, error: str | None) -> None:
    """Leave the outcome of a child's flow where its parent finds it; nothing for other flows."""
    if "run" in task.node.request:
        outcome: ChildOutcome = {"run": task.node.request["run"], "error": error}
        task.set(driver_internal_info={**task.node.driver_internal_info, "for_parent": outcome})
