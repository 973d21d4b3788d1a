"""Rescues with the agent's ramdisk: the agent sets the password of its user and ends, and the user logs in."""

from ingot.drivers import power_control, results
from ingot.drivers.agent import booting, client, session
from ingot.drivers.interfaces.base import needed
from ingot.drivers.interfaces.rescue import RescueInterface
from ingot.drivers.task import Task

_TOLD = "was_told_the_password"


class AgentRescue(RescueInterface):
    """The rescue interface ``agent``."""

    def get_properties(self) -> dict[str, str]:
        return {name: "See the boot interface." for name in ("deploy_kernel", "deploy_ramdisk")}

    def validate(self, task: Task) -> None:
        needed(task, "boot").validate(task)

    def rescue(self, task: Task, password_hash: str) -> results.Result:
        """The user's system is asked to shut down before it is cut off."""

        def tell(task: Task) -> results.Result:
            return _tell(task, password_hash)

        enter = (power_control.soft_power_off, self._leave_user)
        return results.in_phases(task, *enter, *booting.BOOT, tell, self._give_to_user)

    @staticmethod
    def _leave_user(task: Task) -> None:
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.network.remove_servicing_network(task)  # of a service that has failed
        task.driver.network.add_rescuing_network(task)

    def _give_to_user(self, task: Task) -> None:
        self.clean_up(task)
        task.driver.network.configure_tenant_networks(task)

    def unrescue(self, task: Task) -> results.Result:
        return results.in_phases(
            task, power_control.soft_power_off, self._give_to_user, self._boot_instance, power_control.power_on
        )

    @staticmethod
    def _boot_instance(task: Task) -> None:
        task.driver.boot.prepare_instance(task)

    def clean_up(self, task: Task) -> None:
        session.forget(task)
        needed(task, "boot").clean_up_ramdisk(task)
        task.driver.network.remove_rescuing_network(task)


def _tell(task: Task, password_hash: str) -> results.Result:
    """Has the agent set the password, which is the last thing that it does.

    An agent that was told has ended: whoever cannot know whether it was, because a conductor was lost or the answer did
    not come, boots another one.
    """
    if session.known(task, _TOLD) or results.begun(task):
        answer = results.in_phases(task, power_control.power_off, *booting.BOOT)
        if not isinstance(answer, results.Done):
            return answer
    session.note(task, **{_TOLD: True})
    task.save()
    params = {"rescue_password": password_hash, "hashed": True}
    client.AgentClient(task).ask("rescue.finalize_rescue", params)
    return results.DONE
