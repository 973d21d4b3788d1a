"""Boots a machine into the agent's ramdisk, and takes it down again, as phases of steps."""

from functools import partial

from oslo_log import log
from oslo_utils import strutils

from ingot.common import errors, states
from ingot.drivers.agent import client, secure_boot, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import BaseInterface, get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.management import ManagementInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.power import PowerInterface
from ingot.drivers.interfaces.results import Phase
from ingot.drivers.interfaces.task import Task

LOG = log.getLogger(__name__)

_SETUP = "bios"
_POWERED = "powered_to_connect"
"""Key of ``task.memory``: whether the machine was switched on so that it can be connected anew."""

FORCE_OUT_OF_BAND = "deploy_forces_oob_reboot"
"""Key of driver_info: true for machines on which an agent that switches off leaves something behind."""

_ASKED = "told"
"""Key of ``task.memory``, as other releases know it: whether the agent was asked to power its machine off."""


class AgentBooter(BaseInterface):
    """What interfaces have in common that boot the agent."""

    def get_properties(self) -> dict[str, str]:
        return {
            **dict.fromkeys(("deploy_kernel", "deploy_ramdisk"), "See the boot interface."),
            client.AUTHORITIES: "What verifies an agent that announces no certificate: true, the authorities of this "
            "host; a file or directory of authorities; or false, nothing. Optional, default true.",
        }

    def validate(self, task: Task) -> None:
        get_interface(task, BootInterface).validate(task)
        client.read_authorities(task)


def run_unless_running(task: Task, *phases: Phase) -> results.Result:
    """Run the phases that prepare the machine for the agent or boot it, unless an agent runs that can be used.

    That is fast track, ``[deploy] fast_track``. That it was used is noted, until the agent is forgotten.
    """
    if not results.has_begun(task) and session.can_fast_track(task):
        try:
            client.AgentClient(task).commands()
        except errors.AgentError as exc:
            LOG.warning(
                "Node %s: its agent called lately but does not answer, so one is booted: %s", task.node.uuid, exc
            )
        else:
            session.note_facts(task, used_as_found=True)
            return results.DONE
    return results.run_phases(task, *phases)


def reconnect(task: Task, *changes: Phase) -> results.Result:
    """Move the machine to other networks, as a phase; one that is off is on meanwhile if its smart NIC needs that.

    :param changes: phases of the network interface.
    """
    network = get_interface(task, NetworkInterface)
    if _POWERED not in task.memory and network.needs_power(task):
        task.memory[_POWERED] = power_control.read_power_state(task) == states.POWER_OFF
    if task.memory.get(_POWERED):
        changes = (_stay_in_setup, power_control.power_on, network.get_ready, *changes, power_control.power_off)
    answer = results.run_phases(task, *changes)
    if isinstance(answer, results.Done):
        task.memory.pop(_POWERED, None)
    return answer


def _stay_in_setup(task: Task) -> None:
    """Have the machine boot nothing but its setup, where it can: it is on for its network card only."""
    management = get_interface(task, ManagementInterface)
    if _SETUP in management.get_supported_boot_devices(task):
        management.set_boot_device(task, _SETUP, persistent=False)


def prepare_instance(task: Task) -> None:
    """Have the machine boot its instance from now on, as a phase."""
    secure_boot.switch(task, True)
    get_interface(task, BootInterface).prepare_instance(task)


def wait_for_agent(task: Task) -> results.Result:
    """Wait until the agent calls for the first time since it was forgotten."""
    return results.DONE if session.is_alive(task) else results.WaitForAgent()


def prepare(task: Task, forget: Phase, parameters: dict[str, str]) -> results.Answer:
    """Have the machine boot the agent next, if it can fetch it.

    :param forget: forgets the last agent; called as soon as the next one is known to be there, until it answers done.
    :param parameters: as those of :meth:`BootInterface.prepare_ramdisk`.
    """
    boot = get_interface(task, BootInterface)
    checked = boot.check_ramdisk(task)
    if isinstance(checked, results.PollAfter):
        return checked
    forgotten = forget(task)
    if isinstance(forgotten, results.PollAfter):
        return forgotten
    if boot.brings_token(task):
        session.choose_token(task)
    boot.prepare_ramdisk(task, parameters)
    task.save()  # before the machine starts: its agent's first heartbeat must not be overwritten
    return results.DONE


def boot(task: Task) -> results.Result:
    """Boot the agent; a machine that only an agent could restart, and that has none, is left to an operator."""
    if session.is_needed(task) and not results.has_begun(task):
        try:
            client.AgentClient(task).commands()
        except errors.AgentError as exc:
            LOG.warning("Node %s: restart its machine by hand, so that it boots the agent: %s", task.node.uuid, exc)
            session.drop(task)
            return results.DONE
    return results.run_phases(task, power_control.power_on)


BOOT: tuple[Phase, ...] = (
    partial(prepare, forget=session.forget, parameters={}),
    boot,
    wait_for_agent,
)
"""What follows when a machine is off: on from the network, and a wait until a new agent calls."""

REBOOT: tuple[Phase, ...] = (
    power_control.power_off,
    partial(prepare, forget=session.forget_connection, parameters={}),
    *BOOT[1:],
)
"""Off and the same, between two steps of one flow: what the agent offered, and in which versions, stays known."""


def _switch_off(task: Task) -> results.Result:
    """Watch the machine go off if its agent accepted that; otherwise, or if that does not work, cut the power."""
    if _ASKED not in task.memory:
        task.memory[_ASKED] = _ask_to_power_off(task)
    if task.memory[_ASKED] and get_interface(task, PowerInterface).sees_changes:
        return power_control.watch_off(task, patience=30.0)
    return power_control.power_off(task)


def _ask_to_power_off(task: Task) -> bool:
    """Have the agent sync its disks and, if it may, power the machine off; return whether it does so."""
    agent = client.AgentClient(task)
    try:
        agent.ask("standby.sync", {})
        if power_control.stays_on(task) or strutils.bool_from_string(task.node.driver_info.get(FORCE_OUT_OF_BAND)):
            return False
        agent.start("standby.power_off", {})
    except errors.AgentError as exc:
        LOG.warning("Node %s: its agent does not power it off: %s", task.node.uuid, exc)
        return False
    return True


def forget_agent(task: Task) -> None:
    """Forget the agent and what its ramdisk was booted with, as a phase."""
    session.close(task)
    get_interface(task, BootInterface).clean_up_ramdisk(task)


SHUT_DOWN: tuple[Phase, ...] = (_switch_off, forget_agent)
"""Lets the agent end cleanly, makes sure that the machine is off and forgets the agent.

A machine that stays on has its disks synced and goes on running.
"""
