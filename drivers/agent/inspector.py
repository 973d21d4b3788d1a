"""Inspects machines by a service of its own, such as ironic-inspector: it is asked to, and then whether it is done.

Where the node's boot interface can boot the agent, that is done here, and the agent sends what it finds to the service.
Otherwise the service boots the machine. Either way the agent's data become inventory, ports and properties here.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from oslo_log import log

from ingot.common import errors
from ingot.common.waits import Wait
from ingot.drivers.agent import booting
from ingot.drivers.agent.inspect import MANAGED, AgentInspect, build_parameters, enter_network
from ingot.drivers.agent.introspection_service import Away, Progress, Service
from ingot.drivers.images import fetches
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_What = TypeVar("_What")

_BEGAN = "began"
"""Key of ``task.memory``: when the inspection began."""

_PAUSE_AFTER_SILENCE = 5.0
_PATIENCE_TO_START = 60.0
"""Seconds for which a service that does not answer is asked to begin."""


class InspectorInspect(AgentInspect):
    """The inspect interface ``inspector``."""

    requires_managed_boot = False

    def validate(self, task: Task) -> None:
        Service(self.conf)
        super().validate(task)

    def inspect_hardware(self, task: Task) -> results.Result:
        service, memory = Service(self.conf), task.memory
        if _BEGAN not in memory:
            memory |= {_BEGAN: time.time(), MANAGED: self.can_boot(task)}
        until, managed = memory[_BEGAN] + self.conf.conductor.inspect_wait_timeout, memory[MANAGED]
        start = partial(_start, service=service, manages_boot=not managed)
        follow = (partial(_wait, service=service, until=until), partial(_collect, service=service, until=until))
        if not managed:
            return results.run_phases(task, start, *follow)
        boot = (power_control.power_off, partial(self._boot_for, service), start, booting.boot)
        return results.run_phases(task, *boot, *follow, *self.end(task))

    def _boot_for(self, service: Service, task: Task) -> results.Answer:
        callback = fetches.ask_for_node(
            task, "callback of the inspection service", _limit(service), service.find_callback
        )
        if isinstance(callback, results.PollAfter):
            return callback
        return booting.prepare(task, enter_network, build_parameters(self.conf, callback))

    def clean_up(self, task: Task) -> None:
        """Have the service forget the node, too, without waiting for that."""
        try:
            service = Service(self.conf)
            abort = partial(_abort, service, task.node.uuid)
            fetches.ask_for_node(task, "abort of the inspection", _limit(service), abort)
        finally:
            super().clean_up(task)


def _limit(service: Service) -> float:
    return service.longest + 5.0


def _abort(service: Service, node: str) -> None:
    try:
        service.abort(node)
    except errors.StepFailed as exc:  # most often it has ended there, too
        LOG.info("Node %s: its inspection by the service is not aborted: %s", node, exc.message)


def _ask(task: Task, service: Service, what: str, get: Callable[[], _What], until: float) -> _What | results.PollAfter:
    """Return what the service answers, or when to ask again; until a time also if it does not answer.

    :raises StepFailed: it refuses, or has not answered in time.
    """
    try:
        answer = fetches.ask_for_node(task, what, _limit(service), get)
    except Away as exc:
        if time.time() >= until:
            raise
        LOG.warning("Node %s: %s; it is asked again", task.node.uuid, exc.message)
        answer = results.PollAfter(_PAUSE_AFTER_SILENCE)
    if isinstance(answer, results.PollAfter):
        return results.PollAfter(answer.after, abortable=True, waits_for=Wait.INSPECTION_SERVICE, until=until)
    return answer


def _start(task: Task, service: Service, manages_boot: bool) -> results.Answer:
    until = task.memory.setdefault("until", time.time() + _PATIENCE_TO_START)
    begin = partial(service.start, task.node.uuid, manages_boot)
    return _ask(task, service, "start of the inspection", begin, until)


def _wait(task: Task, service: Service, until: float) -> results.Answer:
    """Wait, as a phase, until the service is done, or an agent has sent its inventory here."""
    if task.inventory() is not None:
        return results.DONE
    found = _ask(task, service, "state of the inspection", partial(service.progress, task.node.uuid), until)
    if isinstance(found, results.PollAfter):
        return found
    return _judge(task, found, until)


def _judge(task: Task, found: Progress, until: float) -> results.Answer:
    if found.error:
        raise errors.StepFailed(f"the inspection service reports: {found.error}")
    if found.finished:
        return results.DONE
    if time.time() >= until:
        raise errors.StepFailed(
            "the inspection service is not done within [conductor] inspect_wait_timeout, which is "
            f"{task.conf.conductor.inspect_wait_timeout} s: look at the machine's console and the service's log"
        )
    pause = min(task.conf.inspector.status_check_period, max(until - time.time(), 1.0))
    return results.PollAfter(pause, abortable=True, waits_for=Wait.INSPECTION_SERVICE, until=until)


def _collect(task: Task, service: Service, until: float) -> results.Answer:
    """Keep, as a phase, what the ramdisk has sent to the service, for hooks and rules."""
    if task.inventory() is not None:
        return results.DONE
    data = _ask(task, service, "data of the inspection", partial(service.data, task.node.uuid), until)
    if isinstance(data, results.PollAfter):
        return data
    inventory = data.pop("inventory", None)
    if isinstance(inventory, dict):
        task.keep_inventory(inventory, data)
    else:
        LOG.warning(
            "Node %s: the inspection service keeps no inventory ([processing] store_data): hooks and rules have "
            "nothing to work with, and ports and properties are those that it has written itself",
            task.node.uuid,
        )
    return results.DONE
