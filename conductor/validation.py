"""What a conductor checks of a node before somebody relies on it: interface by interface, or for one deployment."""

from collections.abc import Iterable
from typing import Any

from ingot.common import errors, interfaces
from ingot.conductor.flows import FLOWS
from ingot.conductor.steps import catalog
from ingot.conductor.task_manager import Task

_NEEDED_FOR_DEPLOY = ("power", "management", "boot", "deploy", "network", "storage")


def node(task: Task) -> dict[str, dict[str, Any]]:
    """The result of each interface: ``{"result": True, False or None (not supported), "reason": text or None}``."""
    report = {kind: _report(task, kind) for kind in interfaces.KINDS if kind != "vendor"}
    if report["deploy"]["result"]:
        try:
            _check_steps(task)
        except errors.IngotError as exc:
            report["deploy"] = {"result": False, "reason": exc.message}
    return report


def deployment(task: Task, request: dict[str, Any]) -> None:
    """Checks everything that can be known before the machine is touched.

    :param request: arguments of the deploy request.
    :raises Invalid: the first thing that is wrong, with its name.
    """
    task.node.request = request
    for kind in _NEEDED_FOR_DEPLOY:
        interface(task, kind).validate(task)
    _check_steps(task)


def steps(task: Task, kind: str) -> list[dict[str, Any]]:
    """The enabled steps of a kind, in the order in which they would run: interface, step, priority."""
    plan = catalog.chosen_by_default(task, kind, None)
    return [{name: step[name] for name in ("interface", "step", "priority")} for step in plan]


def interface(task: Task, kind: str) -> Any:
    """The node's interface of a kind.

    :raises Invalid: it has none on this conductor; the message says why.
    """
    found = getattr(task.driver, kind)
    if found is None:
        raise errors.Invalid(task.missing.get(kind, f"The node has no {kind} interface."))
    return found


def _report(task: Task, kind: str) -> dict[str, Any]:
    try:
        found = interface(task, kind)
        if not found.supported:
            return {"result": None, "reason": f"Interface {found.name} does not support this."}
        found.validate(task)
    except errors.IngotError as exc:
        return {"result": False, "reason": exc.message}
    return {"result": True, "reason": None}


def _check_steps(task: Task) -> None:
    wanted = task.node.instance_info.get("traits")
    if wanted:
        _check_traits(wanted, task.traits)
    in_band: list[dict[str, Any]] | None = None if task.driver.deploy.agent_based else []
    FLOWS["deploy"].plan(task, in_band)


def _check_traits(wanted: Any, present: Iterable[str]) -> None:
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        raise errors.Invalid(field="instance_info.traits", value=wanted, allowed="It must be a list of strings.")
    missing = sorted(set(wanted) - set(present))
    if missing:
        raise errors.Invalid(
            field="instance_info.traits",
            value=missing,
            allowed="The node does not have these traits: add them to the node or leave them out (missing traits).",
        )
