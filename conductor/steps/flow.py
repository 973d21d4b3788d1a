"""What a flow is: a record; and how each step of its plan is run. The engine knows nothing else of deploying, cleaning,
servicing and deleting."""

import dataclasses
from collections.abc import Callable

from ingot.common import errors, states, tracing
from ingot.common.steps import Key, PlannedStep, Runner, StepJson
from ingot.conductor.steps import children, reserved
from ingot.conductor.task.task_manager import Task
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.results import Answer
from ingot.drivers.interfaces.task import Link

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
    :param collect_after: key of the step after which the agent, if there is one, is asked for its steps.
    :param agent_ends_with: key of the step that ends the agent, so its logs are collected before.
    :param timeout_option: option of [conductor] with the seconds without a heartbeat after which a wait fails; a flow
        that waits has one.
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
    plan: Callable[[Task, list[StepJson] | None, Report], list[PlannedStep]] = lambda _task, _in_band, _report: []
    collect_after: Key | None = None
    agent_ends_with: Key | None = None
    timeout_option: str | None = None
    abort_any_step: bool = False
    abort_leaves: bool = False
    starts_again: bool = False
    skip: Callable[[Task], bool] = lambda _task: False
    was_left_in_agent: Callable[[Task], bool] = lambda _task: False
    on_done: Callable[[Task], None] = lambda _task: None
    on_fail: Callable[[Task, errors.IngotError], None] = lambda _task, _exc: None

    @property
    def plan_name(self) -> str:
        """Return the prefix of the keys of driver_internal_info that hold plan and position.

        It is ``deploy`` in ``deploy_steps`` and ``deploy_step_index`` (specification 001).
        """
        return self.kind or self.name

    def kind_for(self, task: Task) -> str | None:
        """Return the kind of its steps on a node."""
        return self.kind or task.node.request.get("kind")


def call_step(task: Task, flow: Flow, step: PlannedStep) -> results.Result:
    """Call a step once.

    :raises IngotError: it failed.
    """
    with tracing.span(f"step {step.label}", node_uuid=task.node.uuid, ingot_flow=flow.name, ingot_origin=step.origin):
        return results.parse_result(_call(task, flow, step), step.label)


def _call(task: Task, flow: Flow, step: PlannedStep) -> Answer:
    answer: Answer
    match step.runner:
        case Runner.FLOW:
            _get_step_interface(task, step.interface)
            entries = {entry.as_step().key: entry for entry in (*flow.first, *flow.last)}
            if step.key not in entries:  # another release made the plan
                raise errors.StepFailed(f"this conductor's release does not know {step.label}; upgrade all conductors")
            answer = entries[step.key].run(task)
        case Runner.DRIVER:
            interface = _get_step_interface(task, step.interface)
            answer = getattr(interface, f"execute_{flow.kind_for(task)}_step")(task, step.as_json())
        case Runner.AGENT:
            deploy = _get_step_interface(task, "deploy")
            answer = deploy.execute_in_band_step(task, flow.kind, step.as_json())
        case Runner.RESERVED:
            answer = reserved.STEPS[step.step].run(task, **step.args)
        case Runner.CHILDREN:
            answer = children.run(task, str(flow.kind), step)
        case Runner.UNKNOWN:
            raise errors.StepFailed("this conductor's release does not know how to run it; upgrade all conductors")
    return answer


def _get_step_interface(task: Task, interface_type: str) -> Link:
    found: Link = getattr(task.driver, interface_type)
    if found is None:
        raise errors.StepFailed(task.missing[interface_type])
    return found
