"""Deploys ramdisks: the machine boots what the user gives from the network every time; its disks stay as they are."""

from ingot.common import errors
from ingot.drivers import glance_images, power_control, results, steps
from ingot.drivers.agent import session
from ingot.drivers.interfaces.base import needed
from ingot.drivers.modules.agent_deploy import AgentDeploy
from ingot.drivers.task import Task

_BOOTED = ("kernel", "ramdisk")


class RamdiskDeploy(AgentDeploy):
    """The deploy interface ``ramdisk``. Deployments run without the agent; cleaning is done by the agent."""

    def get_properties(self) -> dict[str, str]:
        return {"deploy_kernel": "See the boot interface.", "deploy_ramdisk": "See the boot interface."}

    def validate(self, task: Task) -> None:
        needed(task, "boot").validate(task)
        missing = [key for key in _BOOTED if not task.node.instance_info.get(key)]
        if missing:
            raise errors.MissingParameter(
                where="instance_info",
                names=f"{' and '.join(missing)} (URL, or id in Glance, of what the machine boots)",
            )
        if task.node.instance_info.get("image_source"):
            raise errors.Invalid(
                field="instance_info.image_source",
                value=task.node.instance_info["image_source"],
                allowed="The deploy interface ramdisk writes no image: leave it out, or use deploy interface direct.",
            )
        for key in _BOOTED:
            glance_images.check(task, f"instance_info.{key}", task.node.instance_info[key])

    def prepare(self, task: Task) -> results.Result:
        return results.in_phases(task, power_control.power_off, self._attach)

    @staticmethod
    def _attach(task: Task) -> None:
        session.forget(task)
        task.driver.storage.attach_volumes(task)

    @steps.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> None:
        """Notes what the machine boots from now on."""
        task.driver.boot.prepare_instance(task)

    @steps.deploy_step(priority=30, idempotent=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """To the networks of the user."""
        task.driver.network.configure_tenant_networks(task)

    @steps.deploy_step(priority=20, idempotent=True)
    def boot_instance(self, task: Task) -> results.Result:
        """Switches the machine on."""
        return power_control.power_on(task)
