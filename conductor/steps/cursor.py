"""The flow cursor: which step of its plan a flow has reached, and how that is written: every transition is one fenced
write.

The node's row says where the flow stands, ``step_state`` how: see :class:`ingot.common.states.StepState`. A step
that is found ``running`` without a conductor in it was lost: it is repeated if it is idempotent, otherwise the flow
fails.
"""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from oslo_log import log
from oslo_utils import uuidutils

from ingot.common import clock, errors, masking, metrics, states
from ingot.common.json_types import Json, Requester
from ingot.common.states import StepState
from ingot.common.steps import STEP_INDEX, STEPS, PlannedStep, Runner, read_plan
from ingot.conductor.steps.flow import Flow
from ingot.conductor.task.task_manager import HistoryEntry, Task, make_storable
from ingot.db import node_history, nodes, outbox
from ingot.drivers.interfaces import results

LOG = log.getLogger(__name__)

COLLECTED = "in_band_steps_collected"

_WAITS = {
    (True, False): StepState.WAITING,
    (True, True): StepState.WATCHING,
    (False, False): StepState.ENDING,
}
"""``step_state`` of a wait, by what it answered: (again, watch)."""

_AT_REST: Mapping[str, object] = {
    "step_state": None,
    "step_attempt": 0,
    "step_memory": {},
    "step_started_at": None,
    "step_deadline": None,
    "step_heard": None,
}
POWER_AFTER = 0.5
"""Seconds after a failure before a power change goes on; a user who waits for the end finds the node unlocked first."""

_ENDED: Mapping[str, object] = {
    "flow": None,
    "request": {},
    "run_id": None,
    "abort_requested": False,
    "due_at": None,
}


class StepAttempt(TypedDict, total=False):
    """A row of ``step_runs``, without the node: an attempt of a step; the last two keys are there when it has ended."""

    run_id: str | None
    flow: str
    step_index: int
    attempt: int
    interface: str
    step: str
    args: Json
    priority: float
    origin: str
    state: str
    started_at: datetime.datetime
    conductor: str
    request_id: str | None
    global_request_id: str | None
    finished_at: datetime.datetime
    error: str | None


class FlowCursor:
    """The place in its plan that a flow has reached on a locked node, and what its run has yet to record.

    :ivar called_at: when the step was called last.
    """

    def __init__(self, task: Task, flow: Flow) -> None:
        self._task = task
        self._flow = flow
        kept, self.index = read_plan(task.node.driver_internal_info, flow.plan_name)
        self.plan = [PlannedStep.from_json(step) for step in kept]
        self.called_at = clock.now()
        self._heartbeat: nodes.Heard = task.node.agent_last_heartbeat
        self._has_past = task.node.run_id is not None  # earlier attempts stand in step_runs
        self._attempts: list[StepAttempt] = []
        self._unwritten: list[StepAttempt] = []
        self._entries: list[HistoryEntry] = []

    @property
    def step(self) -> PlannedStep | None:
        """The step that the flow has reached; None before there is a plan, and after its last."""
        return self.current if self.index < len(self.plan) else None

    @property
    def current(self) -> PlannedStep:
        """The same, where there is one."""
        return self.plan[self.index]

    @property
    def done(self) -> list[PlannedStep]:
        """The steps up to the current one."""
        return self.plan[: self.index + 1]

    @property
    def label(self) -> str:
        return self.step.label if self.step else "none"

    def clear(self) -> None:
        """Begin a run: forget the one before, whichever flow it was of."""
        run_id = self._task.node.request.get("run") or uuidutils.generate_uuid()
        self._task.set(run_id=run_id, driver_internal_info=self._list_other_facts(), **_AT_REST)
        if self._flow.running is not None:
            self._task.set(clean_step={}, deploy_step={}, service_step={})
        self.plan, self.index = [], 0

    def _list_other_facts(self) -> Json:
        """Return what driver_internal_info holds besides the plan."""
        return {
            name: fact
            for name, fact in self._task.node.driver_internal_info.items()
            if not name.endswith((STEPS, STEP_INDEX)) and name != COLLECTED
        }

    # Transitions

    def write_running(self, attempt: int, memory: Mapping[str, Any] | None = None) -> None:
        """Write that the current step runs, before it is called; what ran before has ended."""
        self._set_place()
        self._task.set(
            step_state=StepState.RUNNING,
            step_attempt=attempt,
            step_started_at=clock.now(),
            step_memory=dict(memory or {}),
            step_deadline=None,
            step_heard=nodes.LAST_HEARD,
            **({"lock_attempts": 1} if attempt == 1 else {}),  # others were lost with what came before
        )
        # Due it stays: should this conductor die in the step, the next sweep finds it.
        due_at = self._task.node.due_at
        if due_at is None or due_at > clock.now():
            self._task.set(due_at=clock.now())
        self._task.add_event(outbox.build_step_event(self._build_attempt("running")))
        self._task.write(self._unwritten, self._entries)
        self._unwritten, self._entries = [], []
        self._heartbeat = nodes.STEP_HEARD

    def write_next(self) -> None:
        """Release the lock before the step begins, with work for the node's owner."""
        self._set_place()
        self._task.set(**{**_AT_REST, "step_state": StepState.NEXT}, due_at=clock.now())
        self._release()

    def _set_place(self) -> None:
        info = {
            **self._task.node.driver_internal_info,
            f"{self._flow.plan_name}{STEPS}": [step.as_json() for step in self.plan],
            f"{self._flow.plan_name}{STEP_INDEX}": self.index,
        }
        self._enter(self._flow.running)
        self._show({} if self.current.runner is Runner.FLOW else dict(self.current.as_json()))
        self._task.set(driver_internal_info=info)

    def write_waiting(self, answer: results.WaitForAgent) -> None:
        """Release the lock until the agent's heartbeat.

        :raises StepFailed: the flow cannot wait for an agent.
        """
        flow, conf = self._flow, self._task.conf
        if flow.waiting is None:
            raise errors.StepFailed(f"{flow.title} cannot wait for an agent")
        limit = conf.conductor[flow.timeout_option] if answer.timeout is None else answer.timeout
        deadline = clock.after(limit) if limit else None
        # An agent that is watched calls in time, or something is wrong.
        overdue = clock.after(conf.api.ramdisk_heartbeat_timeout) if answer.watch else None
        next_check_at = min(filter(None, (deadline, overdue)), default=None)
        self._enter(flow.waiting)
        self._task.set(
            step_state=_WAITS[answer.again, answer.watch],
            step_memory=self._task.memory,
            step_deadline=deadline,
            step_heard=self._heartbeat,
            provision_updated_at=self.called_at,
            due_at=nodes.next_check_at_in_wait(self._task.node, self._heartbeat, next_check_at),
        )
        self._release()

    def write_still_waiting(self) -> None:
        """Release the lock of a wait that goes on, after a wake-up for nothing."""
        node = self._task.node
        self._task.set(due_at=nodes.next_check_at_in_wait(node, nodes.STEP_HEARD, node.step_deadline))
        self._release()

    def write_polling(self, answer: results.PollAfter) -> None:
        """Release the lock for some seconds.

        A step that may be aborted meanwhile shows that it waits: the API takes no abort while a conductor works.
        """
        step = self.current
        can_be_aborted = answer.abortable or (step.abortable and step.origin != "flow")
        self._enter((can_be_aborted and self._flow.waiting) or self._flow.running)
        next_check_at = nodes.next_check_at_unless_aborted(self._task.node, clock.after(answer.after))
        self._task.set(step_state=StepState.POLLING, step_memory=self._task.memory, due_at=next_check_at)
        self._release()

    def write_holding(self) -> None:
        """Release the lock until an operator says unhold.

        :raises StepFailed: the flow cannot be held.
        """
        if self._flow.held is None:
            raise errors.StepFailed(f"{self._flow.title} cannot be held")
        self._enter(self._flow.held)
        next_check_at = nodes.next_check_at_unless_aborted(self._task.node, None)
        self._task.set(step_state=StepState.HOLDING, due_at=next_check_at)
        self._release()

    def write_end(self) -> None:
        """Write the good end of the flow; the lock is kept for a flow that follows here."""
        node, flow = self._task.node, self._flow
        flow.on_done(self._task)
        self._enter(states.next_state(str(flow.running), flow.done_event))
        aborted = node.request.get("aborted")
        entries = self._list_entries("INFO", aborted or f"{flow.title} completed.", "aborted" if aborted else "done")
        asked_by = {name: value for name, value in node.request.items() if name == "asked_by"}
        self._task.set(**_AT_REST, **_ENDED, driver_internal_info=self._list_other_facts())
        is_lent = flow.running is None  # and keeps what was wrong with it before
        if not is_lent or (node.last_error or "").startswith(flow.title):
            self._task.set(last_error=aborted)
        self._show({})
        if flow.next_flow:
            self._task.set(flow=flow.next_flow, request=asked_by, due_at=clock.now())
        if flow.next_flow and not self._task.services.leaving.is_set():
            self._task.write(self._unwritten, [*self._entries, *entries])
        else:
            self._release(entries)
        LOG.info("Node %s: %s completed", node.uuid, flow.title)

    def write_failure(self, message: str, outcome: str) -> None:
        """Write the bad end of the flow. The step that it ended in stays visible.

        :param outcome: ``failed`` or ``aborted``.
        """
        state = self._task.node.provision_state
        self._task.is_aborted = outcome == "aborted"
        # Of the states in which a flow is held, some know an abort only.
        self._enter(states.next_state(state, "fail") or states.next_state(state, "abort"))
        self._task.set(**_AT_REST, last_error=message)
        entries = self._list_entries("ERROR", message, outcome)
        self._task.set(**_ENDED)
        if self._task.node.power_request:
            self._task.set(due_at=clock.after(POWER_AFTER))
        self._release(entries)

    def _release(self, entries: Iterable[HistoryEntry] = ()) -> None:
        self._task.release(self._unwritten, [*self._entries, *entries])

    def _enter(self, state: str | None) -> None:
        """Move the node to a provision state that differs from its own, with the target that goes with it.

        :raises StepFailed: there is no such state.
        """
        node = self._task.node
        if self._flow.running is None:
            return
        if state is None:
            raise errors.StepFailed(f"no transition from state {node.provision_state} ends {self._flow.title}")
        if state == node.provision_state:
            return
        target = states.TARGETS.get(state)
        if self._flow.done_event == "manage" and target is not None:
            target = states.MANAGEABLE  # a manual cleaning leads back to where it came from
        self._task.set(provision_state=state, target_provision_state=target, provision_updated_at=clock.now())

    def _show(self, step: Json) -> None:
        if self._flow.step_field:
            self._task.set(**{self._flow.step_field: step})

    # What a run leaves: attempts of its steps, and entries of the node's history

    def note_end(self, state: str, error: str | None) -> None:
        """Note the end of the current attempt; it is written with the next transition.

        :param error: in the words of a machine or driver, whatever they are.
        """
        attempt = self._build_attempt(state)
        attempt["finished_at"], attempt["error"] = clock.now(), error and make_storable(error)
        self._attempts.append(attempt)
        self._unwritten.append(attempt)
        step = self._flow.name, attempt["interface"], metrics.STEP_NAMES[attempt["step"]]
        metrics.STEPS.labels(*step, state).inc()
        metrics.STEP_SECONDS.labels(*step).observe((attempt["finished_at"] - attempt["started_at"]).total_seconds())

    def close_replaced(self, replaced: Flow, run_id: str | None) -> None:
        """Note the end of a run that waited for something when this flow was requested instead.

        It is written with the first write of what follows.
        """
        self._task.set(run_id=run_id)
        before = FlowCursor(self._task, replaced)
        if before.step:
            reason = f"{self._flow.title} was requested"
            before.note_end("aborted", reason)
            message = f"{replaced.title} was ended in step {before.label}: {reason}."
            self._entries += before._list_entries("ERROR", message, "aborted")
            self._unwritten += before._unwritten

    def _build_attempt(self, state: str) -> StepAttempt:
        """Return the row of the current attempt, but for its end."""
        node, step = self._task.node, self.current
        asked_by = node.request.get("asked_by") or Requester()
        return {
            "run_id": node.run_id,
            "flow": self._flow.name,
            "step_index": self.index,
            "attempt": node.step_attempt,
            "interface": step.interface,
            "step": step.step,
            "args": masking.mask(step.args),  # the plan has them as long as they are needed
            "priority": step.priority,
            "origin": step.origin,
            "state": state,
            "started_at": node.step_started_at or self.called_at,
            "conductor": self._task.services.host,
            "request_id": asked_by.get("request_id"),
            "global_request_id": asked_by.get("global_request_id"),
        }

    def _list_entries(self, severity: str, message: str, outcome: str) -> list[HistoryEntry]:
        """Return what the history says of the run: each step that it has tried, and how the flow ended."""
        node = self._task.node
        attempts: list[Any] = list(self._attempts)
        if self._has_past:
            attempts = [
                *map(vars, node_history.list_attempts(self._task.db, node.id, str(node.run_id))),
                *self._unwritten,
            ]
        started = attempts[0]["started_at"] if attempts else self.called_at
        seconds = (clock.now() - started).total_seconds()
        metrics.FLOWS.labels(self._flow.name, outcome).inc()
        metrics.FLOW_SECONDS.labels(self._flow.name, outcome).observe(seconds)
        entry = self._task.build_history_entry("provisioning", severity, message, seconds)
        return [*build_step_entries(self._task, attempts), entry]


_ENDS: Mapping[str, str] = {"done": "completed", "aborted": "was aborted", "interrupted": "was interrupted"}
"""How messages put the state of an attempt; what is not here ``failed``."""


def build_step_entries(task: Task, attempts: Iterable[StepAttempt]) -> list[HistoryEntry]:
    """Return one entry of the history for each step that a run has ended.

    :param attempts: of all steps of the run, oldest first. Those of one step follow each other, the first has number 1.
    """
    steps: list[list[StepAttempt]] = []
    for attempt in attempts:
        # A step that runs again later, after a restart of the cleaning say, is another one.
        if attempt["attempt"] > 1 and steps and steps[-1][-1]["step_index"] == attempt["step_index"]:
            steps[-1].append(attempt)
        else:
            steps.append([attempt])
    entries: list[HistoryEntry] = []
    for tried in steps:
        first, last = tried[0], tried[-1]
        seconds = (last["finished_at"] - first["started_at"]).total_seconds()
        severity = "INFO" if last["state"] == "done" else "ERROR"
        entry = task.build_history_entry("step", severity, _describe_attempts(tried), seconds)
        entries.append({**entry, "created_at": last["finished_at"], "conductor": last["conductor"]})
    return entries


def _describe_attempts(tried: list[StepAttempt]) -> str:
    """Describe them, such as ``Step raid.apply_configuration (template X) of flow deploy completed at attempt 2.``"""
    last = tried[-1]
    text = f"Step {last['interface']}.{last['step']} ({last['origin']}) of flow {last['flow']} {_describe_end(last)}"
    if last["attempt"] > 1:
        text += f" at attempt {last['attempt']}"
    if last["error"]:
        text += f": {last['error'].rstrip('.')}"
    before = [f"attempt {attempt['attempt']} {_describe_end(attempt)}: {attempt['error']}" for attempt in tried[:-1]]
    return f"{text}. Before that, {'; '.join(before).rstrip('.')}." if before else f"{text}."


def _describe_end(attempt: StepAttempt) -> str:
    return _ENDS.get(attempt["state"], "failed")
