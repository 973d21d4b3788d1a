"""Deploys ramdisks: the machine boots what the user gives from the network every time; its disks stay as they are."""

from ingot.common import errors
from ingot.drivers.agent import session
from ingot.drivers.agent.deploy import AgentDeploy
from ingot.drivers.images import glance_images
from ingot.drivers.interfaces import base, power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task

_BOOTED = ("kernel", "ramdisk")


class RamdiskDeploy(AgentDeploy):
    """The deploy interface ``ramdisk``. Deployments run without the agent; cleaning is done by the agent."""

    def validate(self, task: Task) -> None:
        get_interface(task, BootInterface).validate(task)
        info = task.node.instance_info
        missing = [key for key in _BOOTED if not info.get(key)]
        if missing:
            raise errors.MissingParameter(
                where="instance_info",
                names=f"{' and '.join(missing)} (URL, or id in Glance, of what the machine boots)",
            )
        if info.get("image_source"):
            raise errors.Invalid(
                field="instance_info.image_source",
                value=info["image_source"],
                allowed="The deploy interface ramdisk writes no image: leave it out, or use deploy interface direct.",
            )
        for key in _BOOTED:
            glance_images.read_permitted_image(task, f"instance_info.{key}", info[key])

    def prepare(self, task: Task) -> results.Result:
        return results.run_phases(task, power_control.power_off, self._attach)

    @staticmethod
    def _attach(task: Task) -> None:
        session.forget(task)
        get_interface(task, StorageInterface).attach_volumes(task)

    @base.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> None:
        """Note what the machine boots from now on."""
        get_interface(task, BootInterface).prepare_instance(task)

    @base.deploy_step(priority=30, idempotent=True)
    def switch_to_tenant_network(self, task: Task) -> None:
        """Connect the machine to the networks of the user."""
        get_interface(task, NetworkInterface).configure_tenant_networks(task)

    @base.deploy_step(priority=20, idempotent=True)
    def boot_instance(self, task: Task) -> results.Result:
        """Switch the machine on."""
        return power_control.power_on(task)
