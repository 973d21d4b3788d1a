"""What a flow would do with a node: its plan before anybody presses the button. Nothing is touched for it."""

from collections.abc import Mapping
from typing import Any

from ingot.common import errors, masking
from ingot.conductor import validation
from ingot.conductor.steps import catalog, planning, reserved
from ingot.conductor.steps.flow import Flow, Key, Report, Step, key
from ingot.conductor.task.task_manager import Task

_SHOWN = (
    *("interface", "step", "priority", "args", "origin", "runner"),
    *("abortable", "requires_ramdisk", "reboot_requested"),
)


def of(task: Task, flow_name: str, request: dict[str, Any]) -> dict[str, Any]:
    """The plan of a flow as the engine would run it if it were asked for now.

    :param task: may be a shared one; its node's record, not the node, gets the request.
    :param flow_name: one of the table of flows.
    :param request: what the API would hand over with the flow.
    :returns: ``steps`` in their order; ``in_band_steps_known``, false if an agent will come that may add steps of its
        own; ``errors``, the message of each thing that is wrong.
    :raises Invalid: there is no such flow.
    """
    flow = validation.named(flow_name)
    task.node.request = request
    wrong: list[str] = []

    def note(exc: errors.IngotError) -> None:
        wrong.append(exc.message)

    steps: list[Step] = []
    presumed: set[Key] = set()
    agent_comes = False
    try:
        if flow.kind == "deploy":
            validation.check_traits(task, note)
        agent_comes = planning.agent_comes(task, flow, planning.at_start(task, flow, _overlook))
        presumed = _presumed(task, flow) if agent_comes else set()
        validation.check_interfaces(task, flow, note, agent_comes)
        steps = _whole(task, flow, presumed, note) if agent_comes else planning.at_start(task, flow, note)
    except errors.IngotError as exc:  # what makes every plan impossible, such as an option with a wrong priority
        note(exc)
    return {
        "steps": [_shown(step, presumed) for step in steps],
        "in_band_steps_known": not agent_comes,
        "errors": list(dict.fromkeys(wrong)),
    }


def _overlook(_exc: errors.IngotError) -> None:
    """The report of the first, rough plan; what is wrong is told of the second."""


def _presumed(task: Task, flow: Flow) -> set[Key]:
    """What somebody asks for that neither driver nor conductor offer: only the agent still may."""
    offered = catalog.available(task, str(flow.kind), [])
    return {
        key(step)
        for step in _asked_for(task, flow)
        if key(step) not in offered and step["step"] not in reserved.STEPS and not step.get("execute_on_child_nodes")
    }


def _asked_for(task: Task, flow: Flow) -> list[Step]:
    if flow.kind == "deploy":
        return [step for step, _origin in catalog.deploy_requests(task)]
    wanted: list[Step] = task.node.request.get(f"{flow.kind}_steps") or []
    return wanted


def _whole(task: Task, flow: Flow, presumed: set[Key], note: Report) -> list[Step]:
    """The plan as it will be once the agent has offered what is presumed of it, and nothing else."""
    offered = [{"interface": interface, "step": step, "priority": 0} for interface, step in sorted(presumed)]
    return [
        *planning.entering(task, flow),
        *flow.plan(task, offered, note),
        *planning.leaving(task, flow),
    ]


def _shown(step: Mapping[str, Any], presumed: set[Key]) -> dict[str, Any]:
    """A step for those who ask. ``presumed``: whether the agent offers it is not known yet."""
    shown = {name: step[name] for name in _SHOWN}
    return {**shown, "args": masking.mask(step["args"]), "presumed": key(dict(step)) in presumed}
