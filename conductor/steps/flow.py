"""What a flow is: a record; and how each step of its plan is run. The engine knows nothing else of deploying, cleaning,
servicing and deleting."""

import dataclasses
from collections.abc import Callable

from ingot.common import errors, states
from ingot.common.steps import Key, PlannedStep, Runner, StepJson
from ingot.conductor.steps import children, reserved
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.base import BaseInterface
from ingot.drivers.interfaces.results import Answer

Report = Callable[[errors.IngotError], None]
"""What a planner does with each thing that is wrong: raise it, or note it and go on."""


def has_not_started(task: Task) -> bool:
    """Return whether a flow ends before its first step, in the state in which it starts."""
    return task.node.step_started_at is None and task.node.provision_state not in states.WAITING


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Something a flow does before or after its steps. It is planned, recorded and recovered as a step is.

    :param run: called with the task; answers as steps do and is safe to repeat.
    """

    interface: str
    name: str
    run: Callable[[Task], Answer]

    def as_step(self) -> PlannedStep:
        return PlannedStep(
            interface=self.interface,
            step=self.name,
            origin="flow",
            runner=Runner.FLOW,
            abortable=True,
            idempotent=True,
        )


def _no_steps(_task: Task, _in_band: list[StepJson] | None, _report: Report) -> list[PlannedStep]:
    return []


def _do_nothing(_task: Task) -> None:
    """The hook of a flow that needs none."""


def _no_remedy(_task: Task, _exc: errors.IngotError) -> None:
    """The failure hook of a flow that needs none."""


def _never(_task: Task) -> bool:
    return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow as data. Its name is what ``nodes.flow`` holds while it is requested or runs.

    :param title: what messages call it.
    :param kind: kind of its steps, which names decorators and driver methods; None: it has only entries, or its request
        says.
    :param running: provision state while a step runs; None: the flow leaves the node in the state in which it finds it.
    :param waiting: provision state while the agent is waited for; None: the flow never waits for an agent.
    :param held: provision state in which the reserved step ``hold`` leaves the node; None: it cannot be held.
    :param done_event: event of the state machine that ends it well.
    :param next_flow: name of the flow that the end of this one starts.
    :param step_field: column of the node that shows the current step.
    :param needs: types of the interfaces that must be right before it begins, whatever its steps.
    :param first: entries before the steps.
    :param last: entries after the steps.
    :param plan: gives the ordered steps, and reports what is wrong with those that were requested. Its second argument
        is what the agent offers, None while that is not known.
    :param collect_after: (interface, step) after which the agent, if there is one, is asked for its steps.
    :param agent_ends_with: (interface, step) that ends the agent, so its logs are collected before.
    :param timeout_option: option of [conductor] with the seconds without a heartbeat after which a wait fails.
    :param abort_any_step: whether an abort ends any waiting step, or only those declared abortable.
    :param abort_leaves: whether an aborted flow goes on with its last entries and ends well; otherwise it fails.
    :param starts_again: whether an agent of another version makes the steps start again; otherwise it ends the flow.
    :param skip: whether there is nothing to do for this node.
    :param was_left_in_agent: whether an earlier run that failed has left the machine where the first entries take it,
        so that the last ones have to run whatever else does.
    :param on_done: sets what the end of the flow means for the node.
    :param on_fail: the same for a failure, given with it; makes the machine safe, and must not raise for hardware that
        is away.
    :param advice: what an operator can do after a failure; ends the message.
    """

    name: str
    title: str
    running: str | None
    done_event: str
    advice: str
    kind: str | None = None
    waiting: str | None = None
    held: str | None = None
    next_flow: str | None = None
    step_field: str | None = None
    needs: tuple[str, ...] = ()
    first: tuple[Entry, ...] = ()
    last: tuple[Entry, ...] = ()
    plan: Callable[[Task, list[StepJson] | None, Report], list[PlannedStep]] = _no_steps
    collect_after: Key | None = None
    agent_ends_with: Key | None = None
    timeout_option: str | None = None
    abort_any_step: bool = False
    abort_leaves: bool = False
    starts_again: bool = False
    skip: Callable[[Task], bool] = _never
    was_left_in_agent: Callable[[Task], bool] = _never
    on_done: Callable[[Task], None] = _do_nothing
    on_fail: Callable[[Task, errors.IngotError], None] = _no_remedy

    @property
    def plan_name(self) -> str:
        """Prefix of the keys of driver_internal_info that hold plan and position: ``deploy`` of ``deploy_steps`` and
        ``deploy_step_index`` (specification 001)."""
        return self.kind or self.name

    def kind_for(self, task: Task) -> str | None:
        """Return the kind of its steps on a node."""
        return self.kind or task.node.request.get("kind")

    def find_entry(self, step: PlannedStep) -> Entry:
        """Return the entry that a planned step of the flow's own stands for.

        :raises StepFailed: there is none: another release made the plan.
        """
        for entry in (*self.first, *self.last):
            if (entry.interface, entry.name) == step.key:
                return entry
        raise errors.StepFailed(f"this conductor's release does not know {step.label}; upgrade all conductors")


# Running a step


def call_step(task: Task, flow: Flow, step: PlannedStep) -> results.Result:
    """Call a step once.

    :raises IngotError: it failed.
    """
    return results.parse_result(_RUNNERS[step.runner](task, flow, step), step.label)


def end_step_elsewhere(task: Task, flow: Flow, step: PlannedStep) -> None:
    """End what a step that is aborted has started on other nodes."""
    if step.runner is Runner.CHILDREN:
        children.abort_step(task, str(flow.kind), step)


def _run_entry(task: Task, flow: Flow, step: PlannedStep) -> Answer:
    _get_step_interface(task, step.interface)
    return flow.find_entry(step).run(task)


def _run_by_driver(task: Task, flow: Flow, step: PlannedStep) -> Answer:
    interface = _get_step_interface(task, step.interface)
    answer: Answer = getattr(interface, f"execute_{flow.kind_for(task)}_step")(task, step.as_json())
    return answer


def _run_by_agent(task: Task, flow: Flow, step: PlannedStep) -> Answer:
    _get_step_interface(task, "deploy")
    answer: Answer = task.driver.deploy.execute_in_band_step(task, flow.kind, step.as_json())
    return answer


def _run_reserved(task: Task, _flow: Flow, step: PlannedStep) -> Answer:
    return reserved.STEPS[step.step].run(task, **step.args)


def _run_on_children(task: Task, flow: Flow, step: PlannedStep) -> Answer:
    return children.run(task, str(flow.kind), step)


def _refuse_unknown(_task: Task, _flow: Flow, _step: PlannedStep) -> Answer:
    raise errors.StepFailed("this conductor's release does not know how to run it; upgrade all conductors")


def _get_step_interface(task: Task, interface_type: str) -> BaseInterface:
    found: BaseInterface | None = getattr(task.driver, interface_type)
    if found is None:
        raise errors.StepFailed(task.missing[interface_type])
    return found


_RUNNERS: dict[Runner, Callable[[Task, Flow, PlannedStep], Answer]] = {
    Runner.FLOW: _run_entry,
    Runner.DRIVER: _run_by_driver,
    Runner.AGENT: _run_by_agent,
    Runner.RESERVED: _run_reserved,
    Runner.CHILDREN: _run_on_children,
    Runner.UNKNOWN: _refuse_unknown,
}
