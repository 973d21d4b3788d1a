"""Drives a flow of a node: plan, call, write, wait; and continues wherever a conductor has stopped.

Starting a flow, continuing it after a heartbeat, resuming it after a crash and taking it over from a dead conductor are
one function, :func:`advance`: the node's row says where the flow stands (see ``cursor``).
"""

from collections.abc import Mapping
from typing import TypedDict

from oslo_log import log

from ingot.common import clock, errors, states, waits
from ingot.common.states import StepState
from ingot.common.steps import Runner, name_source
from ingot.common.waits import OWN_MEMORY, Wait
from ingot.conductor.steps import checks, children, planning
from ingot.conductor.steps.cursor import COLLECTED, POWER_AFTER, FlowCursor
from ingot.conductor.steps.flow import Flow, call_step
from ingot.conductor.task import agent_logs
from ingot.conductor.task.task_manager import MOST_LOST_ATTEMPTS, Task, make_storable
from ingot.db import nodes
from ingot.drivers.agent import session
from ingot.drivers.interfaces import base, results

LOG = log.getLogger(__name__)

RETRY_DELAYS = (2.0, 10.0)
"""Seconds before an idempotent step is tried again on hardware that does not answer."""

MOST_RESTARTS = 5
"""Agents that are of another version after each reboot must not make a cleaning start again for ever."""


class _OwnMemory(TypedDict, total=False):
    """What the engine remembers of the current step."""

    retries: int  # in a row
    lost: int  # attempts, in a row
    ended: bool  # the step has ended, and only the agent's steps are still to be collected
    again: bool  # it ended long ago, and they are collected once more
    waits_for: str  # what it polls for, for explanations
    until: float | None  # and when that ends or fails at the latest


_RETRIED: Mapping[type[errors.IngotError], Wait] = {
    errors.AgentBusy: Wait.AGENT,
    errors.ImageServiceUnavailable: Wait.IMAGE_SERVICE,
    errors.NetworkServiceUnavailable: Wait.NETWORK_SERVICE,
    errors.SwitchUnavailable: Wait.SWITCH,
    errors.StorageServiceUnavailable: Wait.STORAGE_SERVICE,
    errors.AgentUnreachable: Wait.AGENT,
    errors.HardwareUnreachable: Wait.BMC,
}
"""Errors after which an idempotent step is tried again, and what it waits for meanwhile."""


def advance(task: Task, flows: Mapping[str, Flow]) -> float | None:
    """Do what can be done now for the flow of a locked node, and release the lock.

    :returns: seconds after which the node must be reconciled again; None: at a wake-up, at its ``due_at``, or never.
    :raises LockLost: the lock was taken over; the conductor that has it goes on.
    """
    name = str(task.node.flow)
    run = Run(task, flows.get(name) or _build_unknown_flow(task, name), flows)
    try:
        if name not in flows:
            raise errors.StepFailed("this conductor's release does not know it")
        task.confirm_chance()
        after = run.go_on()
    except (errors.LockLost, errors.ServiceUnavailable):
        raise  # not the flow's fault; it stands where it stood
    except errors.IngotError as exc:
        return run.fail(exc)
    except BaseException as exc:  # a driver's sys.exit or cancelled coroutine must not leave the node behind either
        LOG.exception("Node %s: %s: unexpected error in step %s", task.node.uuid, run.flow.title, run.cursor.label)
        run.undo()
        return run.fail(errors.unexpected_error(exc))
    return after if task.released else advance(task, flows)  # the flow has ended, and another one follows


def _build_unknown_flow(task: Task, name: str) -> Flow:
    """Stand in for a flow that this release does not have: it can only fail.

    The API that accepted the request runs a newer release than this conductor, or this one was downgraded.
    """
    state = task.node.provision_state
    return Flow(
        name=name,
        title=f"Flow {name}",
        running=state if states.next_state(state, "fail") else None,
        done_event="done",
        on_fail=lambda task, exc: children.note_outcome(task, exc.message),
        advice="Upgrade all conductors to the release of the API, then ask again.",
    )


class Run:
    """One reconciliation of a running flow: decides what is done next. :attr:`cursor` is the place and writes it."""

    def __init__(self, task: Task, flow: Flow, flows: Mapping[str, Flow]) -> None:
        self.task = task
        self.flow = flow
        self.flows = flows
        self.cursor = FlowCursor(task, flow)
        self._came_from_wait = False

    def go_on(self) -> float | None:
        """Do what can be done now; see :func:`advance`."""
        node = self.task.node
        if not self.cursor.plan and node.provision_state == self.flow.waiting and self.flow.collect_after:
            if not self._continue_without_plan():
                return None
        elif node.run_id is None:
            if not self._start():
                return None
        elif node.step_state == StepState.NEXT:
            self._begin_step()
        elif node.step_state == StepState.RUNNING:
            self._repeat_lost_attempt()
        elif not self._resume():
            return None
        return self._run_steps(is_answered=node.step_state in (StepState.ENDING, StepState.HOLDING))

    # Starting

    def _start(self) -> bool:
        """Plan a new run and begin its first step; False when there is nothing to do."""
        request = self.task.node.request
        replaced = request.get("replaces")
        if replaced and replaced["flow"] in self.flows:
            self.cursor.close_replaced(self.flows[replaced["flow"]], replaced["run"])
        self.cursor.clear()
        if "unchecked" in request:
            checks.check_late(self.task, self.flow, request["unchecked"])
        self.cursor.plan = planning.plan_at_start(self.task, self.flow)
        if not self.cursor.plan:
            self.cursor.write_end()
            return False
        LOG.info("Node %s: %s begins, run %s", self.task.node.uuid, self.flow.title, self.task.node.run_id)
        self.cursor.write_running(attempt=1)
        return True

    def _continue_without_plan(self) -> bool:
        """Continue a flow that waits for its agent and has no plan.

        It was begun before there were steps (specification 001), so it goes on with the driver's default steps. False
        while the agent has not called.
        """
        task, flow, cursor = self.task, self.flow, self.cursor
        if not session.is_alive(task):
            limit = task.conf.conductor[flow.timeout_option]
            if task.node.step_deadline is None and limit:
                task.set(step_deadline=clock.after(limit))
            self._check_deadline()
            cursor.write_still_waiting()
            return False
        LOG.warning("Node %s: %s was begun without steps; it goes on so", task.node.uuid, flow.title)
        cursor.clear()
        cursor.plan = planning.add_entries(task, flow, planning.default_steps(task, str(flow.kind), []))
        keys = [step.key for step in cursor.plan]
        cursor.index = keys.index(flow.collect_after) + 1 if flow.collect_after in keys else 0
        task.set(driver_internal_info={**task.node.driver_internal_info, COLLECTED: True})
        cursor.write_running(attempt=1)
        return True

    # Going on

    def _resume(self) -> bool:
        """Return whether the step that waits, polls or holds goes on now, or another instead."""
        node = self.task.node
        self._came_from_wait = node.provision_state != self.flow.running
        if self._can_abort_now() and self._abort():
            return True
        if node.step_state == StepState.HOLDING:
            if node.provision_state == self.flow.held:
                self.cursor.write_holding()
                return False
            return True
        self._check_step_timeout()
        is_wait = node.step_state in (StepState.WAITING, StepState.WATCHING, StepState.ENDING)
        if is_wait and node.agent_last_heartbeat in (None, node.step_heard):
            self._check_deadline()
            if node.step_state != StepState.WATCHING:
                self.cursor.write_still_waiting()
                return False
        self._protect()
        return True

    def _protect(self) -> None:
        """Mark a step that must not be repeated as running in each of its calls, not only in the first."""
        step, repeated = self.cursor.step, (StepState.WAITING, StepState.WATCHING, StepState.POLLING)
        if step and not step.idempotent and self.task.node.step_state in repeated:
            self.task.set(step_state=StepState.RUNNING, due_at=clock.now())
            self.task.write()

    def _check_step_timeout(self) -> None:
        """Fail a step that takes too long, however often its agent calls or its hardware says: not yet."""
        limit = self.task.conf.conductor.step_timeout
        started = self.task.node.step_started_at
        if limit and started and self.cursor.step and self.cursor.step.runner is not Runner.RESERVED:
            seconds = (clock.now() - started).total_seconds()
            if seconds > limit:
                raise errors.StepFailed(f"it has not ended after {seconds:.0f} s ([conductor] step_timeout)")

    def _check_deadline(self) -> None:
        """Fail a wait that has been too long: the agent has not called since."""
        node = self.task.node
        if node.step_deadline is not None and clock.now() >= node.step_deadline:
            heard = clock.iso(node.agent_last_heartbeat) or "never"
            began = node.provision_updated_at or node.step_deadline
            waited = (clock.now() - began).total_seconds()
            raise errors.StepFailed(f"timed out after waiting {waited:.0f} s for the agent; it was last heard {heard}")

    def _repeat_lost_attempt(self) -> None:
        """Repeat or fail a step whose conductor is gone, or lost the database in the middle."""
        node = self.task.node
        lost = "the conductor that ran it was lost"
        if not self.cursor.current.idempotent:
            raise errors.StepFailed(f"{lost}, and the step is not safe to repeat. Check the machine")
        own: _OwnMemory = node.step_memory.get(OWN_MEMORY, {})
        times = own.get("lost", 0) + 1
        if times >= MOST_LOST_ATTEMPTS:
            raise errors.StepFailed(f"{lost}, {times} times in a row. Look for the cause in their logs")
        self.cursor.note_end("interrupted", lost)
        memory = {**node.step_memory, OWN_MEMORY: {**own, "lost": times}}
        self.cursor.write_running(attempt=node.step_attempt + 1, memory=memory)

    # Calling

    def _run_steps(self, is_answered: bool) -> float | None:
        """Call step after step until one waits or the flow has ended.

        :param is_answered: whether the current step was ended by what it waited for, and is not called again.
        """
        while True:
            answer = self._call(is_answered)
            is_answered = False
            match answer:
                case results.Done():
                    if not self._next(answer):
                        return None
                case results.WaitForAgent():
                    self.cursor.write_waiting(answer)
                    return self._pause_questions() if answer.watch else None
                case results.PollAfter():
                    if answer.waits_for != Wait.HARDWARE or answer.until is not None:
                        own = self.task.memory.setdefault(OWN_MEMORY, {})
                        own |= {"waits_for": str(answer.waits_for), "until": answer.until}
                    self.cursor.write_polling(answer)
                    return answer.after
                case results.Hold():
                    self.cursor.write_holding()
                    return None

    def _pause_questions(self) -> float | None:
        """Return when to come back, should the agent call in the pause; see :func:`waits.pause_after_question`."""
        began, asked = self.task.node.step_started_at, self.cursor.called_at
        return (waits.pause_after_question(began, asked) if began else 0.0) or None

    def _call(self, is_answered: bool) -> results.Result:
        """Call the current step once, or what replaces it: a retry, or the first step of a plan made anew.

        The step that the agent comes with has not ended before the agent was asked for its steps.
        """
        while True:
            step, task = self.cursor.current, self.task
            task.step, task.memory = step, dict(task.node.step_memory)
            own: _OwnMemory = task.memory.pop(OWN_MEMORY, {})
            self.cursor.called_at = clock.now()
            try:
                has_ended = is_answered or own.get("ended")
                answer = results.DONE if has_ended else call_step(task, self.flow, step)
                if own.get("retries") and self.flow.running:
                    task.set(last_error=None)
                info = task.node.driver_internal_info
                if isinstance(answer, results.Done) and step.key == self.flow.collect_after and COLLECTED not in info:
                    own["ended"] = True
                    self.cursor.plan = planning.plan_with_agent(task, self.flow, self.cursor.done)
                    task.set(driver_internal_info={**task.node.driver_internal_info, COLLECTED: True})
                return answer
            except tuple(_RETRIED) as exc:
                return self._retry_later(exc, own)
            except errors.AgentVersionMismatch as exc:
                self._start_again(exc)

    def _retry_later(self, exc: errors.IngotError, own: _OwnMemory) -> results.PollAfter:
        """Retry hardware that does not answer, if repeating the step is safe.

        A good answer in between gives it back all its retries.
        """
        retries, node = own.get("retries", 0), self.task.node
        is_safe = self.cursor.current.idempotent or own.get("ended")
        if not is_safe or retries >= len(RETRY_DELAYS):
            raise exc
        LOG.warning("Node %s: attempt %d of step %s: %s", node.uuid, node.step_attempt, self.cursor.label, exc.message)
        self.cursor.note_end("failed", exc.message)
        self.task.set(step_attempt=node.step_attempt + 1, step_started_at=clock.now())
        self.task.memory[OWN_MEMORY] = {**own, "retries": retries + 1}
        if self.flow.running:  # it is the node's own flow
            chances = f"It is tried again in {RETRY_DELAYS[retries]:.0f} s, {len(RETRY_DELAYS) - retries} times at most"
            ended = self._describe_end(f"failed at attempt {node.step_attempt - 1}", exc.message.rstrip("."))
            self.task.set(last_error=make_storable(f"{ended}. {chances}."))
        waits_for = next(wait for error, wait in _RETRIED.items() if isinstance(exc, error))
        return results.PollAfter(RETRY_DELAYS[retries], waits_for=waits_for)

    def _start_again(self, exc: errors.AgentVersionMismatch) -> None:
        """Plan and run the steps with another agent than planned, unless this ends the flow (specification 002)."""
        request = self.task.node.request
        restarts = request.get("restarts", 0)
        if not self.flow.starts_again or restarts >= MOST_RESTARTS:
            raise exc
        LOG.warning("Node %s: %s starts again: %s", self.task.node.uuid, self.flow.title, exc.message)
        self.cursor.note_end("interrupted", f"{exc.message}; all steps start again")
        self.cursor.index = next(i for i, step in enumerate(self.cursor.plan) if step.key == self.flow.collect_after)
        info = {name: fact for name, fact in self.task.node.driver_internal_info.items() if name != COLLECTED}
        self.task.set(request={**request, "restarts": restarts + 1}, driver_internal_info=info)
        self.cursor.write_running(attempt=1, memory={OWN_MEMORY: {"ended": True, "again": True}})

    def _next(self, answer: results.Done) -> bool:
        """End the current step well and begin the next one; False when the flow has ended, or goes on elsewhere."""
        for hook in base.find_hooks(str(self.flow.kind_for(self.task)), *self.cursor.current.key):
            hook(self.task, answer.hook_result)
        if not self.task.node.step_memory.get(OWN_MEMORY, {}).get("again"):
            self.cursor.note_end("done", None)
        self.cursor.index += 1
        if self.cursor.step is None:
            self.cursor.write_end()
            return False
        if self.task.services.leaving.is_set():
            self.cursor.write_next()
            return False
        self._begin_step()
        return True

    def _begin_step(self) -> None:
        """Write that the current step runs.

        Until then the API takes an abort, also while this conductor ended the wait of the step before. Flows in which
        every wait can be aborted see it at the next wait.
        """
        node = self.task.node
        if self.cursor.current.key == self.flow.agent_ends_with:
            self._collect_logs(has_failed=False)
        self.cursor.write_running(attempt=1)
        self.task.is_first_call = True  # the calls of one task are of different steps
        if self._came_from_wait and not node.abort_requested and not self.flow.abort_any_step:
            node.abort_requested = nodes.get(self.task.db, node.uuid, ("abort_requested",)).abort_requested
        self._came_from_wait = False
        if node.abort_requested:
            self._abort()

    # Ending

    def _can_abort_now(self) -> bool:
        """Return whether a requested abort takes effect in the middle of the step.

        Between steps, and while an operator holds the flow, it always does.
        """
        node, step = self.task.node, self.cursor.step
        can_be_aborted = (
            self.flow.abort_any_step or node.step_state == StepState.HOLDING or bool(step and step.abortable)
        )
        return node.abort_requested and can_be_aborted

    def _abort(self) -> bool:
        """End the flow before its time, or have it leave what it entered, where it has something to leave.

        :returns: whether another step than the current one has begun; False where only leaving is left to do.
        :raises Aborted: it ends here.
        """
        task, cursor, leaving = self.task, self.cursor, planning.plan_entries(self.task, self.flow.last)
        if cursor.step and cursor.step.origin == "flow" and cursor.step.key in [step.key for step in leaving]:
            task.set(abort_requested=False)
            return False
        if cursor.step:
            children.abort_step(task, self.flow.kind, cursor.step)
        if not self.flow.abort_leaves or not leaving:
            raise errors.Aborted()
        reason = errors.Aborted().message
        message = self._describe_end("was aborted", reason)
        LOG.info("Node %s: %s", task.node.uuid, message)
        self._collect_logs(has_failed=False)
        task.set(request={**task.node.request, "aborted": f"{message}."}, abort_requested=False)
        cursor.note_end("aborted", reason)
        cursor.plan = [*cursor.done, *leaving]
        cursor.index += 1
        cursor.write_running(attempt=1)
        return True

    def undo(self) -> None:
        """Take back what was not written: it may be what could not be written."""
        self.task.discard()
        self.cursor = FlowCursor(self.task, self.flow)

    def fail(self, exc: errors.IngotError) -> float | None:
        """End a flow that does not end well: state, last_error, step run, history, logs, lock.

        :returns: as :func:`advance`: soon, where the machine is being switched off.
        """
        exc.message = make_storable(exc.message)
        try:
            self._fail(exc)
        except (errors.LockLost, errors.ServiceUnavailable):
            raise
        except Exception as also:  # what the step or a hook has set cannot be written: without it
            LOG.exception("Node %s: the failure of %s could not be written", self.task.node.uuid, self.cursor.label)
            self.undo()
            self._fail(errors.StepFailed(f"{exc.message} (and what it left could not be saved: {type(also).__name__})"))
        return POWER_AFTER if self.task.node.power_request else None

    def _fail(self, exc: errors.IngotError) -> None:
        node, flow, cursor = self.task.node, self.flow, self.cursor
        state, ended = ("aborted", "was aborted") if isinstance(exc, errors.Aborted) else ("failed", "failed")
        message = self._describe_end(ended, exc.message)
        LOG.error("Node %s: %s", node.uuid, message)
        if cursor.step:
            children.abort_step(self.task, flow.kind, cursor.step)
            if node.run_id:
                cursor.note_end(state, exc.message)
        if self.task.lost_conductors > MOST_LOST_ATTEMPTS:  # the last one with this: what was done here was deadly too
            cursor.write_failure(f"{message.rstrip('.')}. Nothing was cleaned up. {flow.advice}", state)
            return
        if not isinstance(exc, errors.AgentUnreachable | errors.AgentGone):  # it would not answer this either
            self._collect_logs(has_failed=True)
        try:
            flow.on_fail(self.task, exc)
        except (errors.LockLost, errors.ServiceUnavailable):
            raise
        except BaseException:  # whatever becomes of the flow's own remedy, the flow ends
            LOG.exception("Node %s: cleaning up after the failure failed too", node.uuid)
        cursor.write_failure(f"{message.rstrip('.')}. {flow.advice}", state)

    def _describe_end(self, what: str, reason: str) -> str:
        step = self.cursor.step
        where = f"in step {name_source(step.label, step.origin)}" if step else "before its first step"
        return f"{self.flow.title} {what} {where} on conductor {self.task.services.host}: {reason}"

    def _collect_logs(self, has_failed: bool) -> None:
        if self.task.node.run_id and self.flow.collect_after:
            agent_logs.collect(self.task, self.flow.name, self.task.node.run_id, has_failed)
