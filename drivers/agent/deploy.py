"""Deploy interfaces that boot the agent: what they have in common, and ``ramdisk``, which adds little to that."""

import base64
import binascii
from collections.abc import Mapping

from oslo_log import log
from oslo_utils import strutils

from ingot.common import errors
from ingot.common.json_types import OfferedSteps
from ingot.common.steps import StepJson, get_label
from ingot.db import models
from ingot.drivers.agent import answers, booting, client, commands, secure_boot, session
from ingot.drivers.images import glance_images
from ingot.drivers.interfaces import base, power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.loading import priorities

LOG = log.getLogger(__name__)


class AgentDeploy(booting.AgentBooter, DeployInterface):
    """The base of ``direct`` and ``ramdisk``: cleaning, servicing, the agent's steps, its logs."""

    def prepare_cleaning(self, task: Task) -> results.Result:
        def enter_network(task: Task) -> results.Answer:
            return booting.reconnect(task, get_interface(task, NetworkInterface).add_cleaning_network)

        return booting.run_unless_running(task, power_control.power_off, enter_network, *booting.BOOT)

    def tear_down_cleaning(self, task: Task) -> results.Result:
        """Switch the machine off; with fast track the agent stays, for what comes next."""

        def leave(task: Task) -> results.Answer:
            booting.forget_agent(task)
            return booting.reconnect(task, get_interface(task, NetworkInterface).remove_cleaning_network)

        if not results.has_begun(task) and session.can_fast_track(task):
            return results.DONE
        return results.run_phases(task, power_control.power_off, leave)

    def prepare_service(self, task: Task) -> results.Result:
        """Boot the agent; the user's system is asked to shut down before it is cut off."""

        def enter_network(task: Task) -> results.Answer:
            network = get_interface(task, NetworkInterface)
            return booting.reconnect(task, network.unconfigure_tenant_networks, network.add_servicing_network)

        return booting.run_unless_running(task, power_control.soft_power_off, enter_network, *booting.BOOT)

    def tear_down_service(self, task: Task) -> results.Result:
        def change_networks(task: Task) -> results.Answer:
            network = get_interface(task, NetworkInterface)
            return booting.reconnect(task, network.remove_servicing_network, network.configure_tenant_networks)

        give_back = (change_networks, booting.prepare_instance, power_control.power_on)
        return results.run_phases(task, *booting.SHUT_DOWN, *give_back)

    def adopt(self, task: Task) -> results.Result:
        """Take over a running machine: it is connected to its VIFs; without any it stays on its networks."""
        network = get_interface(task, NetworkInterface)
        connect = (network.configure_tenant_networks,) if network.list_vifs(task) else ()
        return results.run_phases(task, *connect, booting.prepare_instance)

    def tear_down(self, task: Task) -> results.Result:
        def leave_networks(task: Task) -> results.Answer:
            session.forget(task)
            network = get_interface(task, NetworkInterface)
            operators = (network.remove_provisioning_network, network.remove_servicing_network)
            return booting.reconnect(task, *operators, network.unconfigure_tenant_networks)

        def detach_volumes(task: Task) -> results.Answer:
            return get_interface(task, StorageInterface).detach_volumes(task)

        def end(task: Task) -> None:
            task.remove_volume_targets()
            secure_boot.switch(task, False)

        return results.run_phases(task, power_control.power_off, leave_networks, detach_volumes, end)

    def clean_up(self, task: Task) -> None:
        boot = get_interface(task, BootInterface)
        boot.clean_up_ramdisk(task)
        boot.clean_up_instance(task)

    def runs_agent(self, task: Task, kind: str) -> bool:
        return kind in ("clean", "service")

    def get_in_band_steps(self, task: Task, kind: str) -> list[StepJson]:
        erasing = self._list_erasing(kind)
        offered = commands.get_steps(task, kind)
        return [{**step, "priority": erasing.get(get_label(step), step["priority"])} for step in offered]

    def recall_in_band_steps(self, task: Task, kind: str) -> OfferedSteps | None:
        offered, erasing = commands.recall_steps(task, kind), self._list_erasing(kind)
        if offered is None:
            return None
        own = offered["priorities"]
        return {"at": offered["at"], "priorities": {label: erasing.get(label, own[label]) for label in own}}

    def _list_erasing(self, kind: str) -> Mapping[str, float]:
        """Return the operator's priorities for erasing disks by default."""
        erasing = priorities.erase_priorities(self.conf) if kind == "clean" else {}
        return {f"deploy.{step}": priority for step, priority in erasing.items()}

    def execute_in_band_step(self, task: Task, kind: str, step: StepJson) -> results.Result:
        return commands.execute_step(task, kind, step)

    def collect_logs(self, task: Task) -> bytes | None:
        def read(result: object) -> bytes:
            logs = answers.read_object("result", result).get("system_logs")
            return base64.b64decode(answers.read_text("system_logs", logs))

        if not session.is_alive(task):
            return None
        try:
            return client.AgentClient(task).ask_for("log.collect_system_logs", {}, read)
        except (errors.AgentError, binascii.Error) as exc:
            LOG.warning("Node %s: no logs from its agent: %s", task.node.uuid, exc)
            return None


class RamdiskDeploy(AgentDeploy):
    """The deploy interface ``ramdisk``: the machine boots what the user gives from the network, every time.

    Its disks stay as they are. Deployments run without the agent; cleaning is done by the agent.
    """

    def supports_deploy(self, node: models.Node) -> bool:
        """Return whether the instance has what a machine boots, and says that it is for that, or has nothing else."""
        info = node.instance_info
        boots = info.get("boot_iso") or (info.get("kernel") and info.get("ramdisk"))
        asks = strutils.bool_from_string(info.get("ironic_ramdisk_deploy"))
        return bool(boots) and (asks or not info.get("image_source"))

    def validate(self, task: Task) -> None:
        super().validate(task)
        info = task.node.instance_info
        if info.get("boot_iso"):
            if not get_interface(task, BootInterface).boots_images:
                allowed = "Boot interfaces ipxe, redfish-virtual-media and redfish-https boot images of one's own."
                raise errors.Invalid(field="instance_info.boot_iso", value=info["boot_iso"], allowed=allowed)
        else:
            self._check_files(task)
        if info.get("image_source"):
            raise errors.Invalid(
                field="instance_info.image_source",
                value=info["image_source"],
                allowed="The deploy interface ramdisk writes no image: leave it out, or use deploy interface direct.",
            )

    @staticmethod
    def _check_files(task: Task) -> None:
        info = task.node.instance_info
        missing = [key for key in ("kernel", "ramdisk") if not info.get(key)]
        if missing:
            raise errors.MissingParameter(
                where="instance_info",
                names=f"{' and '.join(missing)} (URL, or id in Glance, of what the machine boots), or boot_iso",
            )
        for key in ("kernel", "ramdisk"):
            glance_images.read_permitted_image(task, f"instance_info.{key}", info[key])

    def prepare(self, task: Task) -> results.Result:
        def attach_volumes(task: Task) -> None:
            session.forget(task)
            get_interface(task, StorageInterface).attach_volumes(task)

        return results.run_phases(task, power_control.power_off, attach_volumes)

    @base.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> None:
        """Note what the machine boots from now on."""
        booting.prepare_instance(task)

    @base.deploy_step(priority=30, idempotent=True)
    def switch_to_tenant_network(self, task: Task) -> results.Answer:
        """Connect the machine to the networks of the user."""
        return get_interface(task, NetworkInterface).configure_tenant_networks(task)

    @base.deploy_step(priority=20, idempotent=True)
    def boot_instance(self, task: Task) -> results.Result:
        """Switch the machine on."""
        return power_control.power_on(task)
