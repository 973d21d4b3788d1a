"""Rescues with the agent's ramdisk: the agent sets the password of its user and ends, and the user logs in."""

from functools import partial

from ingot.drivers.agent import booting, client, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.rescue import RescueInterface
from ingot.drivers.interfaces.task import Task


class AgentRescue(booting.AgentBooter, RescueInterface):
    """The rescue interface ``agent``."""

    def rescue(self, task: Task, password_hash: str) -> results.Result:
        """Boot the agent; the user's system is asked to shut down before it is cut off."""

        def leave_user(task: Task) -> results.Answer:
            network = get_interface(task, NetworkInterface)
            leave = (network.unconfigure_tenant_networks, network.remove_servicing_network)  # of a failed service
            return booting.reconnect(task, *leave, network.add_rescuing_network)

        boot = (power_control.soft_power_off, leave_user, *booting.BOOT)
        return results.run_phases(task, *boot, partial(_send_password, password_hash=password_hash), self._give_to_user)

    def _give_to_user(self, task: Task) -> results.Answer:
        return booting.reconnect(task, self.clean_up, get_interface(task, NetworkInterface).configure_tenant_networks)

    def unrescue(self, task: Task) -> results.Result:
        leave = (power_control.soft_power_off, self._give_to_user)
        return results.run_phases(task, *leave, booting.prepare_instance, power_control.power_on)

    def clean_up(self, task: Task) -> None:
        booting.forget_agent(task)
        get_interface(task, NetworkInterface).remove_rescuing_network(task)


def _send_password(task: Task, password_hash: str) -> results.Result:
    """Have the agent set the password, which is the last thing that it does.

    An agent that got it has ended. If that is not known, because a conductor was lost or the answer did not come,
    another agent is booted.
    """
    is_lost = results.has_begun(task)
    if session.read_facts(task).get("was_told_the_password"):
        session.note_facts(task, was_told_the_password=False)
        results.restart_phases(task)  # the agent that another conductor had booted got it too
        is_lost = True
    if is_lost:
        result = results.run_phases(task, power_control.power_off, *booting.BOOT)
        if not isinstance(result, results.Done):
            return result
    session.note_facts(task, was_told_the_password=True)
    task.save()
    client.AgentClient(task).ask("rescue.finalize_rescue", {"rescue_password": password_hash, "hashed": True})
    return results.DONE
