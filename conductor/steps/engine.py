"""Drives a flow of a node: plan, call, write down, wait; and goes on wherever somebody stopped.

Starting a flow, continuing it after a heartbeat, resuming it after a crash and taking it over from a dead conductor are
one function, :func:`advance`. The node's row says where the flow stands; ``step_state`` says how:

=========  ===========================================================================================
running    a conductor is in the step. Found without one, the attempt was lost: it is repeated if the
           step is idempotent, otherwise the flow fails
waiting    for a sign of life of the agent; then the step is called again
ending     the same, but the sign of life ends the step
polling    the step is called again when the node is due
=========  ===========================================================================================
"""

import datetime
from collections.abc import Mapping
from typing import Any

from oslo_log import log
from oslo_utils import uuidutils

from ingot.common import clock, errors, states
from ingot.conductor import history
from ingot.conductor.steps import catalog
from ingot.conductor.steps.flow import Flow, Step
from ingot.conductor.task_manager import Task
from ingot.db import nodes
from ingot.drivers import results
from ingot.drivers import steps as declared
from ingot.drivers.agent import session

LOG = log.getLogger(__name__)

COLLECTED = "in_band_steps_collected"
RETRY_DELAYS = (2.0, 10.0)
"""Seconds before an idempotent step is tried again on hardware that does not answer."""

MOST_LOST_ATTEMPTS = 5
"""A step that takes its conductor down with it must not take down one after the other for ever."""

_AT_REST: Mapping[str, Any] = {
    "step_state": None,
    "step_attempt": 0,
    "step_memory": {},
    "step_started_at": None,
    "step_deadline": None,
}
_ENDED: Mapping[str, Any] = {
    "flow": None,
    "request": {},
    "run_id": None,
    "abort_requested": False,
    "due_at": None,
}


def advance(task: Task, flows: Mapping[str, Flow]) -> float | None:
    """Does what can be done now for the flow of a locked node, and gives the lock back.

    :returns: seconds after which somebody must look again; None: at a heartbeat, at the node's due time, or never.
    :raises LockLost: the lock was taken over meanwhile; whoever has it goes on.
    """
    if task.node.flow not in flows:
        Run(task, _unknown(task)).fail(errors.StepFailed("this conductor's release does not know it"))
        return None
    run = Run(task, flows[task.node.flow])
    try:
        again = run.go_on()
    except (errors.LockLost, errors.ServiceUnavailable):
        raise  # not the flow's fault; it stands where it stood
    except errors.IngotError as exc:
        run.fail(exc)
        return None
    except BaseException as exc:  # a driver's sys.exit or cancelled coroutine must not leave the node behind either
        LOG.exception("Node %s: %s met a bug in step %s", task.node.uuid, run.flow.title, run.label)
        task.discard()  # it may be what could not be written
        told = str(exc).partition("\n")[0]  # further lines of a database's error are the statement
        run.fail(errors.StepFailed(f"unexpected {type(exc).__name__}: {told}"))
        return None
    if run.ended and run.flow.next_flow:
        return advance(task, flows)
    if not task.released:
        task.release()
    return again


def _unknown(task: Task) -> Flow:
    """Stands for a flow that this release does not have: it can only fail.

    Whoever accepted the request runs a newer release than this conductor, or this one was downgraded.
    """
    return Flow(
        name=task.node.flow,
        title=f"Flow {task.node.flow}",
        running=task.node.provision_state,
        done_event="done",
        advice="Upgrade all conductors to the release of the API, then ask again.",
    )


def _writable(text: str) -> str:
    """A message of a machine or a driver without what databases refuse: NUL and halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


class Run:
    """One look at a running flow."""

    def __init__(self, task: Task, flow: Flow) -> None:
        self.task = task
        self.flow = flow
        self.ended = False
        self.plan: list[Step] = list(task.node.driver_internal_info.get(flow.steps_key) or [])
        self.index: int = task.node.driver_internal_info.get(flow.index_key) or 0
        self.called_at = clock.now()
        self._journal: list[dict[str, Any]] = []

    @property
    def step(self) -> Step | None:
        return self.plan[self.index] if self.index < len(self.plan) else None

    @property
    def label(self) -> str:
        return catalog.label(self.step) if self.step else "none"

    def go_on(self) -> float | None:
        node = self.task.node
        if node.run_id is None:
            if not self._start():
                return None
        elif node.step_state == "running":
            self._repeat_lost_attempt()
        elif self._cuts_off():
            raise errors.StepFailed("somebody asked for it")
        elif node.step_state in ("waiting", "ending"):
            if not self._heard():
                return self._keep_waiting()
            if node.step_state == "ending":
                if not self._next(results.DONE):
                    return None
        return self._run_steps()

    def fail(self, exc: errors.IngotError) -> None:
        """The one end of every flow that does not end well: state, last_error, journal, history, lock."""
        node, flow = self.task.node, self.flow
        aborted = node.abort_requested
        where = f"in step {self.label}" if self.step else "before its first step"
        what = "was aborted" if aborted else "failed"
        reason = _writable(exc.message)
        message = f"{flow.title} {what} {where} on conductor {self.task.services.host}: {reason}"
        LOG.error("Node %s: %s", node.uuid, message)
        if self.step and node.run_id:
            self._journal_attempt("aborted" if aborted else "failed", reason)
        self._clean_up_after(exc)
        self._enter(states.next_state(node.provision_state, "fail"))
        self.task.set(**_AT_REST, last_error=f"{message.rstrip('.')}. {flow.advice}")
        entries = self._history("ERROR", self.task.node.last_error)
        self.task.set(**_ENDED)
        self._release(entries)
        self.ended = True

    def _clean_up_after(self, exc: errors.IngotError) -> None:
        """The flow's own failure hook. Whatever becomes of it, the flow ends."""
        try:
            self.flow.on_fail(self.task, exc)
        except (errors.LockLost, errors.ServiceUnavailable):
            raise
        except BaseException:
            LOG.exception("Node %s: cleaning up after the failure failed too", self.task.node.uuid)

    # Planning

    def _start(self) -> bool:
        """Plans a new run and begins its first step; False when there is nothing to do."""
        flow, task = self.flow, self.task
        info = {
            name: value
            for name, value in task.node.driver_internal_info.items()
            if not name.endswith(("_steps", "_step_index")) and name != COLLECTED
        }
        task.set(
            run_id=uuidutils.generate_uuid(),
            request={**task.node.request, "started_at": clock.iso(self.called_at)},
            driver_internal_info=info,
            abort_requested=False,
            clean_step={},
            deploy_step={},
            service_step={},
            **_AT_REST,
        )
        self.plan, self.index = [], 0
        if flow.skip(task):
            self._finish()
            return False
        steps = [entry.as_step() for entry in flow.first]
        if flow.plan_at_start:
            steps += self._plan_steps(steps)
        self.plan = steps
        if not self.plan:
            self._finish()
            return False
        self._begin(attempt=1)
        return True

    def _plan_steps(self, before: list[Step]) -> list[Step]:
        """The steps of a flow that plans before its agent is there, and what follows them."""
        last = [entry.as_step() for entry in self.flow.last]
        steps = self.flow.plan(self.task, None)
        if not any(catalog.key(step) == self.flow.collect_after for step in (*before, *steps)):
            steps = self.flow.plan(self.task, [])  # no agent will come: what nobody offers is an error now
        return steps + last

    def _collect(self) -> None:
        """Plans again with what the agent offers: what has run stays, the rest is replaced."""
        task, flow = self.task, self.flow
        offered: list[Step] = []
        if flow.kind and session.alive(task) and not task.node.request.get("disable_ramdisk"):
            offered = task.driver.deploy.get_in_band_steps(task, flow.kind)
        done = self.plan[: self.index + 1]
        rest = flow.plan(task, offered)
        for ran in done:
            # A template or an option may have changed since: what has run does not run again for that.
            same = [step for step in rest if catalog.key(step) == catalog.key(ran)]
            if same:
                rest.remove(ran if ran in same else same[0])
        self.plan = [*done, *rest, *(entry.as_step() for entry in flow.last)]
        task.set(driver_internal_info={**task.node.driver_internal_info, COLLECTED: True})

    # Calling

    def _run_steps(self) -> float | None:
        """Calls step after step until one waits or the flow has ended."""
        while True:
            try:
                answer = self._call()
            except errors.HardwareUnreachable as exc:
                answer = self._retry_later(exc)
            if isinstance(answer, results.WaitForAgent):
                self._wait(answer)
                return None
            if isinstance(answer, results.LookAgain):
                return self._poll(answer)
            if not self._next(answer):
                return None

    def _call(self) -> results.Result:
        step, task, flow = self.plan[self.index], self.task, self.flow
        task.step, task.memory = step, dict(task.node.step_memory)
        self.called_at = clock.now()
        kind = "deploy" if step["in_band"] else step["interface"]
        interface = getattr(task.driver, kind)
        if interface is None:
            raise errors.StepFailed(task.missing[kind])
        if step["origin"] == "flow":
            answer = flow.entry(step).run(task)
        elif step["in_band"]:
            answer = interface.execute_in_band_step(task, flow.kind, step)
        else:
            answer = getattr(interface, f"execute_{flow.kind}_step")(task, step)
        return results.typed(answer, self.label)

    def _retry_later(self, exc: errors.HardwareUnreachable) -> results.LookAgain:
        """Hardware that does not answer gets another chance, if repeating the step is safe."""
        attempt = self.task.node.step_attempt
        if not self.plan[self.index]["idempotent"] or attempt > len(RETRY_DELAYS):
            raise exc
        LOG.warning("Node %s: attempt %d of step %s: %s", self.task.node.uuid, attempt, self.label, exc.message)
        self._journal_attempt("failed", exc.message)
        self.task.set(step_attempt=attempt + 1, step_started_at=clock.now())
        return results.LookAgain(RETRY_DELAYS[attempt - 1])

    def _repeat_lost_attempt(self) -> None:
        """The conductor that ran the step is gone, or lost the database in the middle."""
        step, node = self.plan[self.index], self.task.node
        lost = "the conductor that ran it was lost"
        if not step["idempotent"]:
            raise errors.StepFailed(f"{lost}, and the step is not safe to repeat. Check the machine")
        if node.step_attempt >= MOST_LOST_ATTEMPTS:
            raise errors.StepFailed(f"{lost}, attempt {node.step_attempt} of it. Look for the cause in their logs")
        self._journal_attempt("interrupted", lost)
        self._begin(attempt=node.step_attempt + 1, memory=node.step_memory)

    def _next(self, answer: results.Done) -> bool:
        """Ends the current step well and begins the next one; False when the flow has ended."""
        step = self.plan[self.index]
        if self.flow.kind:
            for hook in declared.hooks_after(self.flow.kind, step["interface"], step["step"]):
                hook(self.task, answer.hook_result)
        if catalog.key(step) == self.flow.collect_after:
            self._collect()
        self._journal_attempt("done", None)
        self.index += 1
        if self.step is None:
            self._finish()
            return False
        self._begin(attempt=1)
        if self.task.node.abort_requested:
            raise errors.StepFailed("somebody asked for it")
        return True

    # Writing down

    def _begin(self, attempt: int, memory: Mapping[str, Any] | None = None) -> None:
        """One write before a step is called: what ran has ended, what comes is running."""
        info = {
            **self.task.node.driver_internal_info,
            self.flow.steps_key: self.plan,
            self.flow.index_key: self.index,
        }
        self._enter(self.flow.running)
        self._show(self.plan[self.index])
        self.task.set(
            driver_internal_info=info,
            step_state="running",
            step_attempt=attempt,
            step_started_at=clock.now(),
            step_memory=dict(memory or {}),
            step_deadline=None,
            due_at=clock.now(),  # should this conductor die in the step, the next sweep finds it
        )
        self.task.write(self._journal)
        self._journal = []

    def _wait(self, answer: results.WaitForAgent) -> None:
        if self.flow.waiting is None:
            raise errors.StepFailed(f"{self.flow.title} cannot wait for an agent")
        option = self.flow.timeout_option
        limit = answer.timeout if answer.timeout is not None else self.task.conf.conductor[option] if option else 0
        deadline = clock.after(limit) if limit else None
        self._enter(self.flow.waiting)
        self.task.set(
            step_state="waiting" if answer.again else "ending",
            step_memory=self.task.memory,
            step_deadline=deadline,
            provision_updated_at=self.called_at,  # a heartbeat that is younger ends the wait
            due_at=nodes.due_unless_called(self.task.node, self.called_at, deadline),
        )
        self._release()

    def _keep_waiting(self) -> float | None:
        """Somebody rang for nothing, or it has been too long."""
        node = self.task.node
        if node.step_deadline is not None and clock.now() >= node.step_deadline:
            heard = clock.iso(node.agent_last_heartbeat) or "never"
            waited = (clock.now() - node.provision_updated_at).total_seconds()
            raise errors.StepFailed(f"timed out after waiting {waited:.0f} s for the agent; it was last heard {heard}")
        self.task.set(due_at=nodes.due_unless_called(node, node.provision_updated_at, node.step_deadline))
        self._release()
        return None

    def _poll(self, answer: results.LookAgain) -> float:
        self._enter(self.flow.running)
        self.task.set(step_state="polling", step_memory=self.task.memory, due_at=clock.after(answer.after))
        self._release()
        return answer.after

    def _finish(self) -> None:
        node, flow = self.task.node, self.flow
        flow.on_done(self.task)
        self._enter(states.next_state(flow.running, flow.done_event))
        info = {name: value for name, value in node.driver_internal_info.items() if name not in self._flow_keys()}
        entries = self._history("INFO", f"{flow.title} completed.")
        self.task.set(**_AT_REST, **_ENDED, driver_internal_info=info, last_error=None)
        self._show({})
        self.ended = True
        LOG.info("Node %s: %s completed", node.uuid, flow.title)
        if flow.next_flow:
            self.task.set(flow=flow.next_flow, due_at=clock.now())
            self.task.write(self._journal, entries)
        else:
            self._release(entries)

    def _flow_keys(self) -> tuple[str, str, str]:
        return self.flow.steps_key, self.flow.index_key, COLLECTED

    def _release(self, entries: list[dict[str, Any]] | None = None) -> None:
        self.task.release(self._journal, entries or [])
        self._journal = []

    def _enter(self, state: str | None) -> None:
        """Moves the node to a provision state that differs from its own, with the target that goes with it."""
        node = self.task.node
        if state is None:
            raise errors.StepFailed(f"no transition from state {node.provision_state} ends {self.flow.title}")
        if state == node.provision_state:
            return
        target = states.TARGETS.get(state)
        if self.flow.done_event == "manage" and target is not None:
            target = states.MANAGEABLE  # a manual cleaning leads back to where it came from
        self.task.set(provision_state=state, target_provision_state=target, provision_updated_at=clock.now())

    def _show(self, step: Step) -> None:
        if self.flow.step_field:
            self.task.set(**{self.flow.step_field: step})

    def _journal_attempt(self, state: str, error: str | None) -> None:
        node, step = self.task.node, self.plan[self.index]
        self._journal.append(
            {
                "run_id": node.run_id,
                "flow": self.flow.name,
                "step_index": self.index,
                "attempt": node.step_attempt,
                "interface": step["interface"],
                "step": step["step"],
                "args": step["args"],
                "priority": step["priority"],
                "origin": step["origin"],
                "state": state,
                "started_at": node.step_started_at or self.called_at,
                "finished_at": clock.now(),
                "conductor": self.task.services.host,
                "error": error,
            }
        )

    def _history(self, severity: str, event: str) -> list[dict[str, Any]]:
        began = self.task.node.request.get("started_at")
        started = datetime.datetime.fromisoformat(began).replace(tzinfo=None) if began else self.called_at
        seconds = (clock.now() - started).total_seconds()
        return [history.entry(self.task, "provisioning", severity, event, seconds)]

    # Deciding

    def _heard(self) -> bool:
        """Whether the agent gave a sign of life since the wait began."""
        node = self.task.node
        return node.agent_last_heartbeat is not None and node.agent_last_heartbeat >= node.provision_updated_at

    def _cuts_off(self) -> bool:
        """Whether a requested abort takes effect in the middle of the step; between steps it always does."""
        allowed = self.flow.abort_any_step or bool(self.step and self.step["abortable"])
        return self.task.node.abort_requested and allowed
