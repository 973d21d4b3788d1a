"""What the flows have in common that boot the agent, run steps and leave the agent: cleaning and servicing."""

import dataclasses

from ingot.common import errors
from ingot.conductor.steps.flow import Entry, Flow, has_not_started
from ingot.conductor.task.task_manager import Task
from ingot.drivers.agent import session
from ingot.drivers.interfaces import results
from ingot.drivers.interfaces.results import Answer

_GIVEN = frozenset(("needs", "first", "last", "collect_after", "agent_ends_with", "on_fail"))
"""What a phase gives to a flow."""


@dataclasses.dataclass(frozen=True, slots=True)
class AgentSessionPhase:
    """The time that a machine spends in the agent, for one purpose.

    :param purpose: in the words of the deploy interface's methods ``prepare_`` and ``tear_down_``.
    :param fault: the node's fault after a failure, until the same has ended well.
    """

    purpose: str
    fault: str

    @property
    def _mark(self) -> str:
        """Key of driver_internal_info from when a machine enters until it has left, whatever fails."""
        return f"in_agent_for_{self.purpose}"

    def is_under_way(self, task: Task) -> bool:
        """Return whether the machine is there, or was left there by what failed."""
        return self._mark in task.node.driver_internal_info

    def forget(self, task: Task) -> None:
        left = {name: fact for name, fact in task.node.driver_internal_info.items() if name != self._mark}
        task.set(driver_internal_info=left)

    @property
    def enter_entry(self) -> Entry:
        def enter(task: Task) -> Answer:
            task.set(driver_internal_info={**task.node.driver_internal_info, self._mark: True})
            answer: Answer = getattr(task.driver.deploy, name)(task)
            return answer

        name = f"prepare_{self.purpose}"
        return Entry("deploy", name, enter)

    @property
    def leave_entry(self) -> Entry:
        def leave(task: Task) -> Answer:
            return results.run_phases(task, getattr(task.driver.deploy, name), self.forget)

        name = f"tear_down_{self.purpose}"
        return Entry("deploy", name, leave)

    def end_fault(self, task: Task) -> None:
        """End the maintenance for a failure, once the same has ended well. That for other reasons stays."""
        task.end_fault(self.fault)

    def fail(self, task: Task, exc: errors.IngotError) -> None:
        """Leave the machine as it is, for an operator: a power cycle in the middle of a firmware update could destroy
        it (specification 002)."""
        if has_not_started(task):
            return
        session.forget(task)
        if not self._is_refusal(task, exc) and not isinstance(exc, errors.Aborted):
            task.begin_fault(self.fault, exc.message)

    def _is_refusal(self, task: Task, exc: errors.IngotError) -> bool:
        """Return whether it ended because its request was wrong, before any of its steps ran."""
        return isinstance(exc, errors.Invalid) and task.step is not None and task.step.step == self.enter_entry.name

    def enclose(self, flow: Flow) -> Flow:
        """Return a flow with this phase around its steps.

        :raises TypeError: the flow has its own of what the phase gives it.
        """
        for field in dataclasses.fields(flow):
            if field.name in _GIVEN and getattr(flow, field.name) is not field.default:
                raise TypeError(f"flow {flow.name} has its own {field.name}, which its agent session gives it")
        first, last = self.enter_entry, self.leave_entry
        return dataclasses.replace(
            flow,
            needs=("power", "management", "network"),
            first=(first,),
            last=(last,),
            collect_after=(first.interface, first.name),
            agent_ends_with=(last.interface, last.name),
            on_fail=self.fail,
        )
