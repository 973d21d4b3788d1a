"""Runs a step of a node on its child nodes: each child gets a flow of its own, and the parent looks until all are done.

The run of a child's flow has an id that follows from the parent's run, the step and the child. So a conductor that
takes over knows what was started and what has ended, and starts nothing twice.
"""

import time
import uuid
from typing import Any

from ingot.common import clock, errors, states
from ingot.conductor.steps.flow import Step, label
from ingot.conductor.task.task_manager import Task
from ingot.db import models, node_lists, nodes
from ingot.drivers.interfaces import results

FLOW = "for_parent"
"""Name of the flow of the children."""

_OUTCOME = "for_parent"
"""Key of driver_internal_info of a child with the outcome of its last such flow: run, and error or None."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0


def run(task: Task, kind: str, step: Step) -> results.Result:
    """Starts the step on each child on which it was not yet started; done when it has ended well on all there are.

    :param kind: kind of the step.
    :raises StepFailed: it failed on a child.
    """
    running = [child for child in chosen(task, step) if not _ended(child, _run_id(task, kind, child))]
    for child in running:
        _start(task, child, kind, step)
    if not running:
        return results.DONE
    waited = time.time() - task.memory.setdefault("since", time.time())
    return results.PollAfter(min(max(_SHORTEST_PAUSE, waited / 10), _LONGEST_PAUSE))


def cut_off(task: Task, kind: str, step: Step) -> None:
    """Asks the children on which the step runs to abort it: nobody waits for them any more."""
    for child in chosen(task, step):
        ours = child.flow == FLOW and child.request.get("run") == _run_id(task, kind, child)
        if ours and nodes.request_abort(task.db, child.uuid, FLOW):
            task.services.notify(child, f"abort of step {label(step)} of its parent")


def chosen(task: Task, step: Step) -> list[models.Node]:
    """The children that a step runs on; a record has what :func:`ingot.db.node_lists.list_children` reads."""
    found = node_lists.list_children(task.db, task.node.uuid)
    return [child for child in found if not step.get("only") or {child.uuid, child.name} & set(step["only"])]


def unavailable_reason(child: models.Node) -> str | None:
    """Why steps of the parent must not touch a child: somebody's hands may be in a machine that is in maintenance, and
    the parent's user need not know. What is ``protected`` is the child's instance, and steps leave that."""
    if not child.maintenance:
        return None
    reason = child.maintenance_reason or "no reason was given"
    return f"is in maintenance ({reason}): end that, or name the other children in limit_child_node_execution"


def _run_id(task: Task, kind: str, child: models.Node) -> str:
    place = task.node.driver_internal_info[f"{kind}_step_index"]
    return str(uuid.uuid5(uuid.UUID(child.uuid), f"{task.node.run_id} {place}"))


def _ended(child: models.Node, run_id: str) -> bool:
    outcome = child.driver_internal_info.get(_OUTCOME, {})
    if outcome.get("run") != run_id:
        return False
    if outcome["error"]:
        raise errors.StepFailed(f"on child node {child.uuid}: {outcome['error']}")
    return True


def _start(task: Task, child: models.Node, kind: str, step: Step) -> None:
    """Accepts the flow for the child as the API does for a user; one that is busy is asked again at the next look."""
    if child.flow is not None or child.reservation is not None:
        return
    unfit = unavailable_reason(child)
    if child.provision_state not in states.STABLE:
        unfit = f"is in state {child.provision_state}; it must be at rest"
    if unfit:
        raise errors.StepFailed(f"child node {child.uuid} {unfit}")
    wanted = {"interface": step["interface"], "step": step["step"], "args": step["args"]}
    request: dict[str, Any] = {
        "kind": kind,
        "steps": [wanted],
        "run": _run_id(task, kind, child),
        "origin": step["origin"],
        "disable_ramdisk": True,
        **{name: value for name, value in task.node.request.items() if name == "asked_by"},
    }
    asked = {"flow": FLOW, "request": request, "run_id": None, "abort_requested": False, "due_at": clock.now()}
    try:
        nodes.compare_and_set(task.db, child, asked)
    except (errors.NodeLocked, errors.ChangedMeanwhile, errors.NotFound):
        return
    task.services.notify(child, f"step {label(step)} of its parent")


def note(task: Task, error: str | None) -> None:
    """Leaves the outcome of a child's flow where its parent looks; nothing for other flows."""
    if "run" not in task.node.request:
        return
    outcome = {"run": task.node.request.get("run"), "error": error}
    task.set(driver_internal_info={**task.node.driver_internal_info, _OUTCOME: outcome})
