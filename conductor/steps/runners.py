"""Who runs a step of a plan, and how it is called: one row for each runner."""

from collections.abc import Callable
from typing import Any

from ingot.common import errors
from ingot.conductor.steps import children, reserved
from ingot.conductor.steps.flow import Flow, Step, label
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces import results


def call(task: Task, flow: Flow, step: Step) -> results.Result:
    """Calls a step once.

    :raises IngotError: it failed.
    """
    return results.parse_result(RUNNERS[runner(step)](task, flow, step), label(step))


def cut_off(task: Task, flow: Flow, step: Step) -> None:
    """Ends what a step that is aborted has started elsewhere."""
    if runner(step) == "children":
        children.cut_off(task, str(flow.kind), step)


def runner(step: Step) -> str:
    """Who runs a step. Plans that release 0.1 wrote do not say it in one word."""
    if "runner" in step:
        return str(step["runner"])
    return "flow" if step["origin"] == "flow" else "agent" if step["in_band"] else "driver"


def _by_flow(task: Task, flow: Flow, step: Step) -> Any:
    _interface(task, step["interface"])
    return flow.entry(step).run(task)


def _by_driver(task: Task, flow: Flow, step: Step) -> Any:
    interface = _interface(task, step["interface"])
    return getattr(interface, f"execute_{flow.kind_for(task)}_step")(task, step)


def _by_agent(task: Task, flow: Flow, step: Step) -> Any:
    return _interface(task, "deploy").execute_in_band_step(task, flow.kind, step)


def _reserved(task: Task, _flow: Flow, step: Step) -> Any:
    return reserved.STEPS[step["step"]].run(task, **step["args"])


def _on_children(task: Task, flow: Flow, step: Step) -> Any:
    return children.run(task, str(flow.kind), step)


def _interface(task: Task, kind: str) -> Any:
    found = getattr(task.driver, kind)
    if found is None:
        raise errors.StepFailed(task.missing[kind])
    return found


RUNNERS: dict[str, Callable[[Task, Flow, Step], Any]] = {
    "flow": _by_flow,
    "driver": _by_driver,
    "agent": _by_agent,
    "reserved": _reserved,
    "children": _on_children,
}
