"""What flows have in common that boot the agent, run steps and leave the agent: cleaning and servicing."""

import dataclasses
from typing import Any

from ingot.common import errors
from ingot.conductor.steps.flow import Entry, has_not_started
from ingot.conductor.task.task_manager import Task
from ingot.drivers.agent import session
from ingot.drivers.interfaces import results


@dataclasses.dataclass(frozen=True, slots=True)
class AgentSessionPhase:
    """A stay of a machine in the agent.

    :param what: for what, in the words of the deploy interface's methods ``prepare_`` and ``tear_down_``.
    :param fault: the node's fault after a failure, until the same has ended well.
    """

    what: str
    fault: str

    @property
    def _mark(self) -> str:
        """Key of driver_internal_info from when a machine enters until it has left, whatever fails."""
        return f"in_agent_for_{self.what}"

    def lasts(self, task: Task) -> bool:
        """Whether the machine is there, or was left there by what failed."""
        return self._mark in task.node.driver_internal_info

    def forget(self, task: Task) -> None:
        left = {name: value for name, value in task.node.driver_internal_info.items() if name != self._mark}
        task.set(driver_internal_info=left)

    @property
    def entering(self) -> Entry:
        def enter(task: Task) -> Any:
            task.set(driver_internal_info={**task.node.driver_internal_info, self._mark: True})
            return getattr(task.driver.deploy, name)(task)

        name = f"prepare_{self.what}"
        return Entry("deploy", name, enter)

    @property
    def leaving(self) -> Entry:
        def leave(task: Task) -> Any:
            return results.run_phases(task, getattr(task.driver.deploy, name), self.forget)

        name = f"tear_down_{self.what}"
        return Entry("deploy", name, leave)

    def done(self, task: Task) -> None:
        """What had failed has ended well now: its maintenance ends. That for other reasons does not."""
        task.end_fault(self.fault)

    def failed(self, task: Task, exc: errors.IngotError) -> None:
        """The machine is left as it is, for an operator: a power cycle in the middle of a firmware update could destroy
        it (specification 002)."""
        if has_not_started(task):
            return
        session.forget(task)
        if not self._was_refused(task, exc) and not isinstance(exc, errors.Aborted):
            task.begin_fault(self.fault, exc.message)

    def _was_refused(self, task: Task, exc: errors.IngotError) -> bool:
        """Whether it ended because its request was wrong, before any of its steps ran."""
        return isinstance(exc, errors.Invalid) and task.step.get("step") == f"prepare_{self.what}"

    def around_steps(self) -> dict[str, Any]:
        """The fields of a flow that are about it."""
        first, last = self.entering, self.leaving
        return {
            "needs": ("power", "management", "network"),
            "first": (first,),
            "last": (last,),
            "collect_after": (first.interface, first.name),
            "agent_ends_with": (last.interface, last.name),
            "on_fail": self.failed,
        }
