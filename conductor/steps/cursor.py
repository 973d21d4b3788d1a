"""Where a flow of a node stands, and how that is written down: every transition is one fenced write.

The node's row says where the flow stands; ``step_state`` says how:

=========  ===========================================================================================
next       the step has not begun: whoever ended the one before begins nothing any more. Whoever owns the
           node begins it
running    a conductor is in the step. Found without one, the attempt was lost: it is repeated if the
           step is idempotent, otherwise the flow fails
waiting    for a sign of life of the agent; then the step is called again
watching   the same; it is called again when the node is due, too, to see whether its agent is still there
ending     for a sign of life of the agent, which ends the step
polling    the step is called again when the node is due
holding    until an operator says unhold, which ends the step
=========  ===========================================================================================
"""

import datetime
from collections.abc import Mapping
from typing import Any

from ingot.common import clock, errors, masking, states
from ingot.conductor.steps.flow import Flow, Step, label
from ingot.conductor.task import history
from ingot.conductor.task.task_manager import Task
from ingot.db import node_history, nodes
from ingot.drivers.interfaces import results

COLLECTED = "in_band_steps_collected"
"""Key of driver_internal_info: the agent was asked for its steps, or need not be."""

ABORTED = "aborted"
"""Key of a flow's request: what is told at the end of a flow that was aborted and leaves."""

_STATES = {(True, False): "waiting", (True, True): "watching", (False, False): "ending"}
"""``step_state`` of a wait, by what it answered: (again, watch)."""

NEXT = "next"
"""``step_state`` of a step that was handed over before it began. Release 0.1 calls the step when it finds this."""

AT_REST: Mapping[str, Any] = {
    "step_state": None,
    "step_attempt": 0,
    "step_memory": {},
    "step_started_at": None,
    "step_deadline": None,
    "step_heard": None,
}
ENDED: Mapping[str, Any] = {
    "flow": None,
    "request": {},
    "run_id": None,
    "abort_requested": False,
    "due_at": None,
}


class FlowCursor:
    """The place in its plan that a flow has reached on a locked node.

    :ivar called_at: when the step was called last.
    """

    def __init__(self, task: Task, flow: Flow) -> None:
        self.task = task
        self.flow = flow
        self.plan: list[Step] = list(task.node.driver_internal_info.get(flow.steps_key) or [])
        self.index: int = task.node.driver_internal_info.get(flow.index_key) or 0
        self.called_at = clock.now()
        self._last_beat: nodes.Heard = task.node.agent_last_heartbeat
        self._has_past = task.node.run_id is not None  # attempts of an earlier look stand in the journal
        self._attempts: list[dict[str, Any]] = []
        self._unwritten: list[dict[str, Any]] = []
        self._news: list[dict[str, Any]] = []

    @property
    def step(self) -> Step | None:
        """The step that the flow has reached; None before there is a plan, and after its last."""
        return self.current if self.index < len(self.plan) else None

    @property
    def current(self) -> Step:
        """The same, where there is one."""
        return self.plan[self.index]

    @property
    def label(self) -> str:
        return label(self.step) if self.step else "none"

    def write_running(self, attempt: int, memory: Mapping[str, Any] | None = None) -> None:
        """One write before a step is called: what ran has ended, what comes is running."""
        self._arrive()
        self.task.set(
            step_state="running",
            step_attempt=attempt,
            step_started_at=clock.now(),
            step_memory=dict(memory or {}),
            step_deadline=None,
            step_heard=nodes.LAST_HEARD,
            due_at=clock.now(),  # should this conductor die in the step, the next sweep finds it
        )
        self.task.tell(nodes.build_step_event(self._attempt("running")))
        self.task.write(self._unwritten, self._news)
        self._unwritten, self._news = [], []
        self._last_beat = nodes.STEP_HEARD

    def write_next(self) -> None:
        """Gives the lock back before the step begins; the node is due, for whoever owns it."""
        self._arrive()
        self.task.set(**{**AT_REST, "step_state": NEXT}, due_at=clock.now())
        self.release()

    def _arrive(self) -> None:
        """Notes the place in the plan."""
        info = {
            **self.task.node.driver_internal_info,
            self.flow.steps_key: self.plan,
            self.flow.index_key: self.index,
        }
        self.enter(self.flow.running)
        self.show(self.current)
        self.task.set(driver_internal_info=info)

    def write_waiting(self, answer: results.WaitForAgent) -> None:
        """Gives the lock back until the agent calls.

        :raises StepFailed: the flow cannot wait for an agent.
        """
        if self.flow.waiting is None:
            raise errors.StepFailed(f"{self.flow.title} cannot wait for an agent")
        option = self.flow.timeout_option
        limit = answer.timeout if answer.timeout is not None else self.task.conf.conductor[option] if option else 0
        deadline = clock.after(limit) if limit else None
        self.enter(self.flow.waiting)
        self.task.set(
            step_state=_STATES[answer.again, answer.watch],
            step_memory=self.task.memory,
            step_deadline=deadline,
            step_heard=self._last_beat,
            provision_updated_at=self.called_at,
            due_at=nodes.next_check_at_in_wait(self.task.node, self._last_beat, self._look_at(answer.watch, deadline)),
        )
        self.release()

    def _look_at(self, watch: bool, deadline: datetime.datetime | None) -> datetime.datetime | None:
        """When a wait is looked at if nobody calls: an agent that is watched calls in time, or something is wrong."""
        overdue = clock.after(self.task.conf.api.ramdisk_heartbeat_timeout) if watch else None
        return min(filter(None, (deadline, overdue)), default=None)

    def write_still_waiting(self) -> None:
        """The same for a wait that goes on, after somebody rang for nothing."""
        node = self.task.node
        self.task.set(due_at=nodes.next_check_at_in_wait(node, nodes.STEP_HEARD, node.step_deadline))
        self.release()

    def write_polling(self, after: float) -> None:
        """Gives the lock back until the node is due, in ``after`` seconds. What may be aborted meanwhile shows that it
        waits: the API takes no abort while a conductor works."""
        step = self.current
        may_be_aborted = step["abortable"] and step["origin"] != "flow" and self.flow.waiting is not None
        self.enter(self.flow.waiting if may_be_aborted else self.flow.running)
        due = nodes.next_check_at_unless_aborted(self.task.node, clock.after(after))
        self.task.set(step_state="polling", step_memory=self.task.memory, due_at=due)
        self.release()

    def write_holding(self) -> None:
        """Gives the lock back until an operator says so.

        :raises StepFailed: the flow cannot be held.
        """
        if self.flow.held is None:
            raise errors.StepFailed(f"{self.flow.title} cannot be held")
        self.enter(self.flow.held)
        self.task.set(step_state="holding", due_at=nodes.next_check_at_unless_aborted(self.task.node, None))
        self.release()

    def write_end(self) -> None:
        """The end of a flow that ends well; it keeps the lock when another flow follows."""
        node, flow = self.task.node, self.flow
        flow.on_done(self.task)
        self.enter(states.next_state(str(flow.running), flow.done_event))
        info = {name: value for name, value in node.driver_internal_info.items() if name not in self._flow_keys()}
        aborted = node.request.get(ABORTED)
        told = self._told("INFO", aborted or f"{flow.title} completed.")
        asked_by = {name: value for name, value in node.request.items() if name == "asked_by"}
        self.task.set(**AT_REST, **ENDED, driver_internal_info=info)
        lent = flow.running is None  # and keeps what was wrong with it before
        if not lent or (node.last_error or "").startswith(flow.title):
            self.task.set(last_error=aborted)
        self.show({})
        if flow.next_flow:
            self.task.set(flow=flow.next_flow, request=asked_by, due_at=clock.now())
            self.task.write(self._unwritten, [*self._news, *told])
            self._news = []
        else:
            self.release(told)

    def write_failure(self, message: str) -> None:
        """The end of a flow that does not end well. The step that it ended in stays visible."""
        state = self.task.node.provision_state
        # Of the states in which a flow is held, some know an abort only.
        self.enter(states.next_state(state, "fail") or states.next_state(state, "abort"))
        self.task.set(**AT_REST, last_error=message)
        told = self._told("ERROR", message)
        self.task.set(**ENDED)
        self.release(told)

    def note_cut_off(self, by: str) -> None:
        """The end of a run whose node was asked for something else; it is told with the first write of what follows.

        :param by: title of the flow that follows.
        """
        where = self.label
        self.note_end("aborted", f"{by} was asked for")
        self._news += self._told("ERROR", f"{self.flow.title} was cut off in step {where}: {by} was asked for.")

    def take_over(self, other: "FlowCursor") -> None:
        """Takes over what another position has to tell."""
        self._unwritten += other._unwritten
        self._news += other._news

    def rewind(self) -> None:
        """Goes back to where the database says that the flow stands, after a write that could not be made."""
        known = self.task.node.driver_internal_info
        self.plan, self.index = list(known.get(self.flow.steps_key) or []), known.get(self.flow.index_key) or 0
        self._attempts = [row for row in self._attempts if row not in self._unwritten]
        self._unwritten, self._news = [], []

    def release(self, told: list[dict[str, Any]] | None = None) -> None:
        self.task.release(self._unwritten, [*self._news, *(told or [])])
        self._unwritten, self._news = [], []

    def enter(self, state: str | None) -> None:
        """Moves the node to a provision state that differs from its own, with the target that goes with it.

        :raises StepFailed: there is no such state.
        """
        node = self.task.node
        if self.flow.running is None:
            return
        if state is None:
            raise errors.StepFailed(f"no transition from state {node.provision_state} ends {self.flow.title}")
        if state == node.provision_state:
            return
        target = states.TARGETS.get(state)
        if self.flow.done_event == "manage" and target is not None:
            target = states.MANAGEABLE  # a manual cleaning leads back to where it came from
        self.task.set(provision_state=state, target_provision_state=target, provision_updated_at=clock.now())

    def show(self, step: Step) -> None:
        if self.flow.step_field:
            self.task.set(**{self.flow.step_field: step})

    def note_end(self, state: str, error: str | None) -> None:
        """Notes the end of the current attempt; it is written with the next transition.

        :param error: in the words of a machine or driver, whatever they are.
        """
        attempt = {**self._attempt(state), "finished_at": clock.now(), "error": error and history.writable(error)}
        self._attempts.append(attempt)
        self._unwritten.append(attempt)

    def _attempt(self, state: str) -> dict[str, Any]:
        """The journal's row of the current attempt, but for its end."""
        node, step = self.task.node, self.current
        return {
            "run_id": node.run_id,
            "flow": self.flow.name,
            "step_index": self.index,
            "attempt": node.step_attempt,
            "interface": step["interface"],
            "step": step["step"],
            "args": masking.mask(step["args"]),  # the plan has them as long as they are needed
            "priority": step["priority"],
            "origin": step["origin"],
            "state": state,
            "started_at": node.step_started_at or self.called_at,
            "conductor": self.task.services.host,
        }

    def _flow_keys(self) -> tuple[str, str, str]:
        return self.flow.steps_key, self.flow.index_key, COLLECTED

    def _told(self, severity: str, event: str) -> list[dict[str, Any]]:
        """What the history says of the run: each attempt of a step, and how the flow ended."""
        node, attempts = self.task.node, self._attempts
        if self._has_past:
            attempts = [*map(vars, node_history.list_attempts(self.task.db, node.id, node.run_id)), *self._unwritten]
        started = attempts[0]["started_at"] if attempts else self.called_at
        seconds = (clock.now() - started).total_seconds()
        return [
            *history.of_steps(self.task, attempts),
            history.entry(self.task, "provisioning", severity, event, seconds),
        ]
