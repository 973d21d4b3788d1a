"""Drives a flow of a node: plan, call, write down, wait; and goes on wherever somebody stopped.

Starting a flow, continuing it after a heartbeat, resuming it after a crash and taking it over from a dead conductor are
one function, :func:`advance`: the node's row says where the flow stands (see ``position``).
"""

from collections.abc import Mapping
from typing import Any

from oslo_log import log
from oslo_utils import uuidutils

from ingot.common import clock, errors, states
from ingot.conductor.steps import children, planning, runners
from ingot.conductor.steps.cursor import ABORTED, AT_REST, COLLECTED, NEXT, FlowCursor
from ingot.conductor.steps.flow import Flow, Step, key
from ingot.conductor.task import agent_logs, history
from ingot.conductor.task.task_manager import Task
from ingot.db import nodes
from ingot.drivers.agent import session
from ingot.drivers.interfaces import base, results

LOG = log.getLogger(__name__)

RETRY_DELAYS = (2.0, 10.0)
"""Seconds before an idempotent step is tried again on hardware that does not answer."""

MOST_LOST_ATTEMPTS = 5
"""A step that takes its conductor down with it must not take down one after the other for ever."""

_OWN = "engine"
"""Key of a step's memory that is the engine's: ``retries`` and ``lost`` in a row; ``ended``, the step has ended and
only the agent's steps are still to be collected; ``again``, it ended long ago, and they are collected once more."""

MOST_RESTARTS = 5
"""Agents that are of another version after each reboot must not make a cleaning start again for ever."""


def advance(task: Task, flows: Mapping[str, Flow]) -> float | None:
    """Does what can be done now for the flow of a locked node, and gives the lock back.

    :returns: seconds after which somebody must look again; None: at a heartbeat, at the node's due time, or never.
    :raises LockLost: the lock was taken over meanwhile; whoever has it goes on.
    """
    if task.node.flow not in flows:
        Run(task, _unknown(task), flows).fail(errors.StepFailed("this conductor's release does not know it"))
        return None
    run = Run(task, flows[task.node.flow], flows)
    try:
        again = run.go_on()
    except (errors.LockLost, errors.ServiceUnavailable):
        raise  # not the flow's fault; it stands where it stood
    except errors.IngotError as exc:
        run.fail(exc)
        return None
    except BaseException as exc:  # a driver's sys.exit or cancelled coroutine must not leave the node behind either
        LOG.exception("Node %s: %s met a bug in step %s", task.node.uuid, run.flow.title, run.at.label)
        task.discard()  # it may be what could not be written
        run.at.rewind()
        run.fail(errors.unexpected(exc))
        return None
    if run.ended and run.flow.next_flow and not task.services.leaving.is_set():
        return advance(task, flows)
    if not task.released:
        task.release()
    return again


def _unknown(task: Task) -> Flow:
    """Stands for a flow that this release does not have: it can only fail.

    Whoever accepted the request runs a newer release than this conductor, or this one was downgraded.
    """
    state = task.node.provision_state
    return Flow(
        name=task.node.flow,
        title=f"Flow {task.node.flow}",
        running=state if states.next_state(state, "fail") else None,
        done_event="done",
        on_fail=lambda task, exc: children.note(task, exc.message),
        advice="Upgrade all conductors to the release of the API, then ask again.",
    )


class Run:
    """One look at a running flow: decides what is done next. Where it stands, and writing that down, is :attr:`at`."""

    def __init__(self, task: Task, flow: Flow, flows: Mapping[str, Flow]) -> None:
        self.task = task
        self.flow = flow
        self.at = FlowCursor(task, flow)
        self.flows = flows
        self.ended = False
        self._came_from_wait = False

    def go_on(self) -> float | None:
        """Does what can be done now; see :func:`advance`."""
        node = self.task.node
        if not self.at.plan and node.provision_state == self.flow.waiting and self.flow.collect_after:
            if not session.is_alive(self.task):
                self._wait_without_plan()
                return None
            self._adopt()
        elif node.run_id is None:
            if not self._start():
                return None
        elif node.step_state == NEXT:
            self._begin_step()
        elif node.step_state == "running":
            self._repeat_lost_attempt()
        elif not self._resume():
            return None
        return self._run_steps(answered=node.step_state in ("ending", "holding"))

    def fail(self, exc: errors.IngotError) -> None:
        """The one end of every flow that does not end well: state, last_error, journal, history, logs, lock."""
        exc.message = history.writable(exc.message)
        try:
            self._fail(exc)
        except (errors.LockLost, errors.ServiceUnavailable):
            raise
        except Exception as odd:  # what the step or a hook has set cannot be written: without it
            LOG.exception("Node %s: the failure of %s could not be written down", self.task.node.uuid, self.at.label)
            self.task.discard()
            self.at.rewind()
            self._fail(errors.StepFailed(f"{exc.message} (and what it left could not be saved: {type(odd).__name__})"))

    def _fail(self, exc: errors.IngotError) -> None:
        node, flow, reason = self.task.node, self.flow, exc.message
        aborted = isinstance(exc, errors.Aborted)
        message = self._told_why("was aborted" if aborted else "failed", reason)
        LOG.error("Node %s: %s", node.uuid, message)
        if self.at.step:
            runners.cut_off(self.task, flow, self.at.step)
        if self.at.step and node.run_id:
            self.at.note_end("aborted" if aborted else "failed", reason)
        if not isinstance(exc, errors.AgentUnreachable | errors.AgentGone):  # it would not answer this either
            self._collect_logs(failed=True)
        self._clean_up_after(exc)
        self.at.write_failure(f"{message.rstrip('.')}. {flow.advice}")
        self.ended = True

    def _told_why(self, what: str, reason: str) -> str:
        where = f"in step {self.at.label}" if self.at.step else "before its first step"
        return f"{self.flow.title} {what} {where} on conductor {self.task.services.host}: {reason}"

    def _clean_up_after(self, exc: errors.IngotError) -> None:
        """The flow's own failure hook. Whatever becomes of it, the flow ends."""
        try:
            self.flow.on_fail(self.task, exc)
        except (errors.LockLost, errors.ServiceUnavailable):
            raise
        except BaseException:
            LOG.exception("Node %s: cleaning up after the failure failed too", self.task.node.uuid)

    def _collect_logs(self, failed: bool) -> None:
        if self.task.node.run_id and self.flow.collect_after:
            agent_logs.collect(self.task, self.flow.name, self.task.node.run_id, failed)

    # Starting

    def _start(self) -> bool:
        """Plans a new run and begins its first step; False when there is nothing to do."""
        self._close_replaced()
        self._forget_past()
        self.at.plan = planning.at_start(self.task, self.flow)
        if not self.at.plan:
            self._finish()
            return False
        self.at.write_running(attempt=1)
        return True

    def _close_replaced(self) -> None:
        """Tells of the end of a run that waited for something when this flow was asked for instead."""
        replaced = self.task.node.request.get("replaces")
        if replaced and replaced["flow"] in self.flows:
            self.task.set(run_id=replaced["run"])
            before = FlowCursor(self.task, self.flows[replaced["flow"]])
            if before.step:
                before.note_cut_off(self.flow.title)
                self.at.take_over(before)

    def _forget_past(self) -> None:
        task = self.task
        info = {
            name: value
            for name, value in task.node.driver_internal_info.items()
            if not name.endswith(("_steps", "_step_index")) and name != COLLECTED
        }
        task.set(
            run_id=task.node.request.get("run") or uuidutils.generate_uuid(),
            driver_internal_info=info,
            **AT_REST,
        )
        if self.flow.running is not None:
            task.set(clean_step={}, deploy_step={}, service_step={})
        self.at.plan, self.at.index = [], 0

    def _adopt(self) -> None:
        """A flow that waits for its agent and has no plan was begun before there were steps (specification 001). It
        goes on as it began: with what the driver does by itself after its agent is there."""
        LOG.warning("Node %s: %s was begun without steps; it goes on so", self.task.node.uuid, self.flow.title)
        self._forget_past()
        self.task.set(driver_internal_info={**self.task.node.driver_internal_info, COLLECTED: True})
        self.at.plan = planning.default_steps(self.task, self.flow)
        agent_is_there = [place for place, step in enumerate(self.at.plan) if key(step) == self.flow.collect_after]
        self.at.index = agent_is_there[0] + 1 if agent_is_there else 0
        self.at.write_running(attempt=1)

    # Going on

    def _resume(self) -> bool:
        """Whether the step that waits, polls or holds goes on now, or another instead."""
        node = self.task.node
        self._came_from_wait = node.provision_state != self.flow.running
        if self._cuts_off() and self._abort():
            return True
        if node.step_state == "holding":
            if node.provision_state == self.flow.held:
                self.at.write_holding()
                return False
            return True
        self._check_time()
        if node.step_state in ("waiting", "watching", "ending") and not self._heard():
            self._check_patience()
            if node.step_state != "watching":
                self.at.write_still_waiting()
                return False
        self._protect()
        return True

    def _protect(self) -> None:
        """A step that must not be repeated counts as running in each of its calls, not only in the first."""
        node = self.task.node
        if self.at.step and not self.at.step["idempotent"] and node.step_state in ("waiting", "watching", "polling"):
            self.task.set(step_state="running", due_at=clock.now())
            self.task.write()

    def _check_time(self) -> None:
        """No step may go on for ever, however often its agent calls or its hardware says: not yet."""
        limit = self.task.conf.conductor.step_timeout
        started = self.task.node.step_started_at
        if limit and started and self.at.step and runners.runner(self.at.step) != "reserved":
            taken = (clock.now() - started).total_seconds()
            if taken > limit:
                raise errors.StepFailed(f"it has not ended after {taken:.0f} s ([conductor] step_timeout)")

    def _repeat_lost_attempt(self) -> None:
        """The conductor that ran the step is gone, or lost the database in the middle."""
        step, node = self.at.current, self.task.node
        lost = "the conductor that ran it was lost"
        if not step["idempotent"]:
            raise errors.StepFailed(f"{lost}, and the step is not safe to repeat. Check the machine")
        own = node.step_memory.get(_OWN, {})
        times = own.get("lost", 0) + 1
        if times >= MOST_LOST_ATTEMPTS:
            raise errors.StepFailed(f"{lost}, {times} times in a row. Look for the cause in their logs")
        self.at.note_end("interrupted", lost)
        self.at.write_running(attempt=node.step_attempt + 1, memory={**node.step_memory, _OWN: {**own, "lost": times}})

    def _wait_without_plan(self) -> None:
        """For an agent that some other software has booted, or an earlier release."""
        option = self.flow.timeout_option
        if self.task.node.step_deadline is None and option and self.task.conf.conductor[option]:
            self.task.set(step_deadline=clock.after(self.task.conf.conductor[option]))  # nobody has set one
        self._check_patience()
        self.at.write_still_waiting()

    def _check_patience(self) -> None:
        """The agent has not called since: it may have been too long."""
        node = self.task.node
        if node.step_deadline is not None and clock.now() >= node.step_deadline:
            heard = clock.iso(node.agent_last_heartbeat) or "never"
            waited = (clock.now() - node.provision_updated_at).total_seconds()
            raise errors.StepFailed(f"timed out after waiting {waited:.0f} s for the agent; it was last heard {heard}")

    # Calling

    def _run_steps(self, answered: bool) -> float | None:
        """Calls step after step until one waits or the flow has ended.

        :param answered: whether the current step was ended by what it waited for, and is not called again.
        """
        while True:
            answer = self._call(answered)
            answered = False
            match answer:
                case results.Done():
                    if not self._next(answer):
                        return None
                case results.WaitForAgent():
                    self.at.write_waiting(answer)
                    return None
                case results.PollAfter():
                    self.at.write_polling(answer.after)
                    return answer.after
                case results.Hold():
                    self.at.write_holding()
                    return None

    def _call(self, answered: bool) -> results.Result:
        """One call of the current step, or of what replaces it: a retry, or the first step of a plan made anew.

        The step that the agent comes with has not ended before the agent was asked for its steps.
        """
        while True:
            step, task = self.at.current, self.task
            task.step, task.memory = step, dict(task.node.step_memory)
            own: dict[str, Any] = task.memory.pop(_OWN, {})
            self.at.called_at = clock.now()
            try:
                ended = answered or own.get("ended")
                answer = results.DONE if ended else runners.call(task, self.flow, step)
                if isinstance(answer, results.Done) and self._must_collect(step):
                    own["ended"] = True
                    self._collect()
                return answer
            except (errors.HardwareUnreachable, errors.AgentBusy, errors.ImageServiceUnavailable) as exc:
                return self._retry_later(exc, own)
            except errors.AgentVersionMismatch as exc:
                self._start_again(exc)

    def _must_collect(self, step: Step) -> bool:
        return key(step) == self.flow.collect_after and not self.task.node.driver_internal_info.get(COLLECTED)

    def _retry_later(self, exc: errors.IngotError, own: Mapping[str, Any]) -> results.PollAfter:
        """Hardware that does not answer gets another chance, if repeating the step is safe. A good answer in between
        gives it back all its chances."""
        retries, node = own.get("retries", 0), self.task.node
        safe = self.at.current["idempotent"] or own.get("ended")
        if not safe or retries >= len(RETRY_DELAYS):
            raise exc
        LOG.warning("Node %s: attempt %d of step %s: %s", node.uuid, node.step_attempt, self.at.label, exc.message)
        self.at.note_end("failed", exc.message)
        self.task.set(step_attempt=node.step_attempt + 1, step_started_at=clock.now())
        self.task.memory[_OWN] = {**own, "retries": retries + 1}
        return results.PollAfter(RETRY_DELAYS[retries])

    def _start_again(self, exc: errors.AgentVersionMismatch) -> None:
        """The agent is not the one that the steps were planned with: they are planned, and run, anew (specification
        002), unless the flow is one that this ends."""
        request = self.task.node.request
        restarts = request.get("restarts", 0)
        if not self.flow.starts_again or restarts >= MOST_RESTARTS:
            raise exc
        LOG.warning("Node %s: %s starts again: %s", self.task.node.uuid, self.flow.title, exc.message)
        self.at.note_end("interrupted", f"{exc.message}; all steps start again")
        self.at.index = next(place for place, step in enumerate(self.at.plan) if key(step) == self.flow.collect_after)
        info = {name: value for name, value in self.task.node.driver_internal_info.items() if name != COLLECTED}
        self.task.set(request={**request, "restarts": restarts + 1}, driver_internal_info=info)
        self.at.write_running(attempt=1, memory={_OWN: {"ended": True, "again": True}})

    def _next(self, answer: results.Done) -> bool:
        """Ends the current step well and begins the next one; False when the flow has ended, or goes on elsewhere."""
        step, kind = self.at.current, self.flow.kind_for(self.task)
        if kind:
            for hook in base.find_hooks(kind, step["interface"], step["step"]):
                hook(self.task, answer.hook_result)
        if not self.task.node.step_memory.get(_OWN, {}).get("again"):
            self.at.note_end("done", None)
        self.at.index += 1
        if self.at.step is None:
            self._finish()
            return False
        if self.task.services.leaving.is_set():
            self.at.write_next()
            return False
        self._begin_step()
        return True

    def _begin_step(self) -> None:
        if key(self.at.current) == self.flow.agent_ends_with:
            self._collect_logs(failed=False)
        self.at.write_running(attempt=1)
        if self._abort_came():
            self._abort()

    def _abort_came(self) -> bool:
        """Whether an abort was asked for, also while this conductor ended the wait of the step before: until the next
        step begins, the API takes it. Flows in which every wait can be cut off see it at the next wait."""
        node = self.task.node
        if self._came_from_wait and not node.abort_requested and not self.flow.abort_any_step:
            node.abort_requested = nodes.get(self.task.db, node.uuid, ("abort_requested",)).abort_requested
        self._came_from_wait = False
        return bool(node.abort_requested)

    def _abort(self) -> bool:
        """Ends the flow before its time, or has it leave what it entered, where it has something to leave.

        :returns: whether another step than the current one has begun; False where only leaving is left to do.
        :raises Aborted: it ends here.
        """
        task, leaving = self.task, planning.leaving(self.task, self.flow)
        if self.at.step and self.at.step["origin"] == "flow" and key(self.at.step) in map(key, leaving):
            task.set(abort_requested=False)
            return False
        if self.at.step:
            runners.cut_off(task, self.flow, self.at.step)
        if not self.flow.abort_leaves or not leaving:
            raise errors.Aborted()
        reason = errors.Aborted().message
        told = self._told_why("was aborted", reason)
        LOG.info("Node %s: %s", task.node.uuid, told)
        self._collect_logs(failed=False)
        task.set(request={**task.node.request, ABORTED: f"{told}."}, abort_requested=False)
        self.at.note_end("aborted", reason)
        self.at.plan = [*self.at.plan[: self.at.index + 1], *leaving]
        self.at.index += 1
        self.at.write_running(attempt=1)
        return True

    def _collect(self) -> None:
        """Plans again with what the agent offers."""
        task, flow = self.task, self.flow
        done = self.at.plan[: self.at.index + 1]
        offered: list[Step] = []
        if planning.asks_agent(task, flow, done):
            offered = task.driver.deploy.get_in_band_steps(task, flow.kind)
        self.at.plan = planning.with_agent(task, flow, done, offered)
        task.set(driver_internal_info={**task.node.driver_internal_info, COLLECTED: True})

    def _finish(self) -> None:
        self.at.write_end()
        self.ended = True
        LOG.info("Node %s: %s completed", self.task.node.uuid, self.flow.title)

    # Deciding

    def _heard(self) -> bool:
        """Whether the agent gave a sign of life since the step was called."""
        return self.task.node.agent_last_heartbeat not in (None, self.task.node.step_heard)

    def _cuts_off(self) -> bool:
        """Whether a requested abort takes effect in the middle of the step; between steps, and while an operator holds
        the flow, it always does."""
        node, step = self.task.node, self.at.step
        allowed = self.flow.abort_any_step or node.step_state == "holding" or bool(step and step["abortable"])
        return node.abort_requested and allowed
