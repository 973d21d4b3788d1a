"""Rescues with the agent's ramdisk: the agent sets the password of its user and ends, and the user logs in."""

from ingot.drivers.agent import booting, client, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.rescue import RescueInterface
from ingot.drivers.interfaces.task import Task


class AgentRescue(RescueInterface):
    """The rescue interface ``agent``."""

    def get_properties(self) -> dict[str, str]:
        return booting.PROPERTIES

    def validate(self, task: Task) -> None:
        get_interface(task, BootInterface).validate(task)

    def rescue(self, task: Task, password_hash: str) -> results.Result:
        """The user's system is asked to shut down before it is cut off."""

        def send_password(task: Task) -> results.Result:
            return _send_password(task, password_hash)

        enter = (power_control.soft_power_off, self._leave_user)
        return results.run_phases(task, *enter, *booting.BOOT, send_password, self._give_to_user)

    @staticmethod
    def _leave_user(task: Task) -> None:
        network = get_interface(task, NetworkInterface)
        network.unconfigure_tenant_networks(task)
        network.remove_servicing_network(task)  # of a service that has failed
        network.add_rescuing_network(task)

    def _give_to_user(self, task: Task) -> None:
        self.clean_up(task)
        get_interface(task, NetworkInterface).configure_tenant_networks(task)

    def unrescue(self, task: Task) -> results.Result:
        leave = (power_control.soft_power_off, self._give_to_user)
        return results.run_phases(task, *leave, booting.prepare_instance, power_control.power_on)

    def clean_up(self, task: Task) -> None:
        session.forget(task)
        get_interface(task, BootInterface).clean_up_ramdisk(task)
        get_interface(task, NetworkInterface).remove_rescuing_network(task)


def _send_password(task: Task, password_hash: str) -> results.Result:
    """Have the agent set the password, which is the last thing that it does.

    An agent that got it has ended. If that is not known, because a conductor was lost or the answer did not come,
    another agent is booted.
    """
    if session.read_facts(task).get("was_told_the_password"):
        session.note_facts(task, was_told_the_password=False)
        results.restart_phases(task)  # the agent that another conductor had booted got it too
        is_lost = True
    else:
        is_lost = results.has_begun(task)
    if is_lost:
        result = results.run_phases(task, power_control.power_off, *booting.BOOT)
        if not isinstance(result, results.Done):
            return result
    session.note_facts(task, was_told_the_password=True)
    task.save()
    client.AgentClient(task).ask("rescue.finalize_rescue", {"rescue_password": password_hash, "hashed": True})
    return results.DONE
