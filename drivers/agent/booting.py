"""Boots a machine into the agent's ramdisk, and takes it down again, as phases of steps."""

from oslo_log import log
from oslo_utils import strutils

from ingot.common import errors
from ingot.drivers import power_control, results
from ingot.drivers.agent import client, session
from ingot.drivers.task import Task

LOG = log.getLogger(__name__)

FORCE_OUT_OF_BAND = "deploy_forces_oob_reboot"
"""Key of driver_info: true for machines on which an agent that switches off leaves something behind."""

_PATIENCE = 30.0


def unless_there(task: Task, *phases: power_control.Phase) -> results.Result:
    """Runs the phases that get a machine ready for the agent, or boot it, unless the agent that runs there already can
    be used (fast track, ``[deploy] fast_track``). That it was is noted: see :func:`was_used_as_found`."""
    if not results.begun(task) and _can_be_used(task):
        session.note(task, used_as_found=True)
        return results.DONE
    return results.in_phases(task, *phases)


def was_used_as_found(task: Task) -> bool:
    """Whether the machine was left where its agent was found, so that a new one must be given its networks first: the
    agent may be gone by the time it is asked again."""
    return bool(session.known(task, "used_as_found", False))


def _can_be_used(task: Task) -> bool:
    """An agent that called lately may be gone since; one that answers is there."""
    if not session.fast_track(task):
        return False
    try:
        client.AgentClient(task).commands()
    except errors.AgentError as exc:
        LOG.warning("Node %s: its agent called lately but does not answer, so one is booted: %s", task.node.uuid, exc)
        return False
    return True


def wait(task: Task) -> results.Result:
    """Waits until the agent calls for the first time since it was forgotten."""
    return results.DONE if session.alive(task) else results.WaitForAgent()


def _prepare(task: Task) -> None:
    session.forget(task)
    _from_network(task)


def _prepare_again(task: Task) -> None:
    session.forget_connection(task)
    _from_network(task)


def _from_network(task: Task) -> None:
    task.driver.boot.prepare_ramdisk(task, {})
    task.save()  # before the machine starts: its agent's first heartbeat must not be overwritten


BOOT: tuple[power_control.Phase, ...] = (_prepare, power_control.power_on, wait)
"""What follows when a machine is off: on from the network, and a wait until a new agent calls."""

REBOOT: tuple[power_control.Phase, ...] = (power_control.power_off, _prepare_again, power_control.power_on, wait)
"""Off and the same, between two steps of one flow: what the agent offered, and in which versions, stays known."""


def _switch_off(task: Task) -> results.Result:
    """Watches the machine go off if its agent was told to; otherwise, or if that does not work, cuts the power."""
    if "told" not in task.memory:
        task.memory["told"] = _told(task)
    if task.memory["told"] and task.driver.power.sees_changes:
        return power_control.watch_off(task, _PATIENCE)
    return power_control.power_off(task)


def _told(task: Task) -> bool:
    """Has the agent sync its disks and, unless that is not its to do, switch the machine off; whether it does so."""
    agent = client.AgentClient(task)
    try:
        agent.ask("standby.sync", {})
        if task.node.disable_power_off or _forced(task):
            return False
        agent.start("standby.power_off", {})
    except errors.AgentError as exc:
        LOG.warning("Node %s: its agent does not shut down by itself: %s", task.node.uuid, exc)
        return False
    return True


def _forced(task: Task) -> bool:
    """Whether the operator wants the BMC, and not the agent, to switch this machine off."""
    return strutils.bool_from_string(task.node.driver_info.get(FORCE_OUT_OF_BAND), default=False)


def _forget(task: Task) -> None:
    session.forget(task)
    task.driver.boot.clean_up_ramdisk(task)


SHUT_DOWN: tuple[power_control.Phase, ...] = (_switch_off, _forget)
"""Lets the agent end cleanly, makes sure that the machine is off and forgets the agent.

A machine that may not be switched off (``disable_power_off``) has its disks synced and goes on running.
"""


def shut_down(task: Task) -> results.Result:
    """Takes the agent down, as a step of its own; see :data:`SHUT_DOWN`."""
    return results.in_phases(task, *SHUT_DOWN)
