"""What a flow is: a record. The engine has no other knowledge of deploying, cleaning, servicing or deleting."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ingot.common import errors, states
from ingot.conductor.task.task_manager import Task

Step = dict[str, Any]
"""A planned step: interface, step, priority, args, origin (who asked for it), runner (who runs it, see ``runners``),
abortable, idempotent, requires_ramdisk, reboot_requested."""

Key = tuple[str, str]
"""Interface and name of a step."""

Report = Callable[[errors.IngotError], None]
"""What a planner does with each thing that is wrong: raise it, or note it and go on."""


def planned(interface: str, name: str, origin: str, runner: str, **more: Any) -> Step:
    """A step as plans keep it.

    :param more: those of its other keys that are not the default: priority, args, abortable, idempotent,
        requires_ramdisk, reboot_requested.
    """
    return {
        "interface": interface,
        "step": name,
        "priority": 0,
        "args": {},
        "origin": origin,
        "runner": runner,
        "in_band": runner == "agent",  # release 0.1 reads this, and may have to go on with the plan
        "abortable": False,
        "idempotent": False,
        "requires_ramdisk": False,
        "reboot_requested": False,
        **more,
    }


def key(step: Step) -> Key:
    return step["interface"], step["step"]


def label(step: Step) -> str:
    """How messages and options name a step: ``raid.apply_configuration``."""
    return f"{step['interface']}.{step['step']}"


def has_not_started(task: Task) -> bool:
    """Whether a flow ends before its first step, in the state in which it starts."""
    return task.node.step_started_at is None and task.node.provision_state not in states.WAITING


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Something a flow does before or after its steps. It is planned, journaled and recovered as a step is.

    :param run: called with the task; answers as steps do and is safe to repeat.
    """

    interface: str
    name: str
    run: Callable[[Task], Any]

    def as_step(self) -> Step:
        return planned(self.interface, self.name, "flow", "flow", abortable=True, idempotent=True)


def _no_steps(_task: Task, _in_band: list[Step] | None, _report: Report) -> list[Step]:
    return []


def _nothing(_task: Task) -> None:
    """The hook of a flow that needs none."""


def _no_remedy(_task: Task, _exc: errors.IngotError) -> None:
    """The failure hook of a flow that needs none."""


def _never(_task: Task) -> bool:
    return False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow as data. Its name is what ``nodes.flow`` holds while it is asked for or runs.

    :param title: what messages call it.
    :param kind: kind of its steps, which names decorators and driver methods; None: it has only entries, or its request
        says.
    :param running: provision state while a step runs; None: the flow leaves the node in the state in which it finds it.
    :param waiting: provision state while the agent is waited for; None: the flow never waits for an agent.
    :param held: provision state in which the reserved step ``hold`` leaves the node; None: it cannot be held.
    :param done_event: event of the state machine that ends it well.
    :param next_flow: name of the flow that the end of this one starts.
    :param step_field: column of the node that shows the current step.
    :param needs: kinds of interface that must be right before it begins, whatever its steps.
    :param first: entries before the steps.
    :param last: entries after the steps.
    :param plan: gives the ordered steps, and reports what is wrong with those that somebody asked for. Its second
        argument is what the agent offers, None while that is not known.
    :param collect_after: (interface, step) after which the agent, if there is one, is asked for its steps.
    :param agent_ends_with: (interface, step) that ends the agent, so its logs are collected before.
    :param timeout_option: option of [conductor] with the seconds without a sign of life after which a wait fails.
    :param abort_any_step: whether an abort cuts off any waiting step, or only those declared abortable.
    :param abort_leaves: whether an aborted flow goes on with its last entries and ends well; otherwise it fails.
    :param starts_again: whether an agent of another version makes the steps start again; otherwise it ends the flow.
    :param skip: whether there is nothing to do for this node.
    :param inside: whether an earlier run that failed has left the machine where the first entries take it, so that the
        last ones have to run whatever else does.
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
    plan: Callable[[Task, list[Step] | None, Report], list[Step]] = _no_steps
    collect_after: Key | None = None
    agent_ends_with: Key | None = None
    timeout_option: str | None = None
    abort_any_step: bool = False
    abort_leaves: bool = False
    starts_again: bool = False
    skip: Callable[[Task], bool] = _never
    inside: Callable[[Task], bool] = _never
    on_done: Callable[[Task], None] = _nothing
    on_fail: Callable[[Task, errors.IngotError], None] = _no_remedy

    @property
    def steps_key(self) -> str:
        """Key of driver_internal_info that holds the plan: ``deploy_steps``, ``clean_steps`` (specification 001)."""
        return f"{self.kind or self.name}_steps"

    @property
    def index_key(self) -> str:
        """Key of driver_internal_info that holds the position in the plan."""
        return f"{self.kind or self.name}_step_index"

    def kind_for(self, task: Task) -> str | None:
        """The kind of its steps on a node."""
        return self.kind or task.node.request.get("kind")

    def entry(self, step: Step) -> Entry:
        """The entry that a planned step of origin ``flow`` stands for.

        :raises StepFailed: there is none: another release made the plan.
        """
        for entry in (*self.first, *self.last):
            if (entry.interface, entry.name) == key(step):
                return entry
        raise errors.StepFailed(f"this conductor's release does not know {label(step)}; upgrade all conductors")
