"""What deploy interfaces that boot the agent have in common: cleaning, servicing, the agent's steps, its logs."""

import base64
import binascii

from oslo_log import log

from ingot.common import errors
from ingot.common.steps import StepJson
from ingot.drivers.agent import answers, booting, client, commands, session
from ingot.drivers.interfaces import power_control, results
from ingot.drivers.interfaces.base import get_interface
from ingot.drivers.interfaces.boot import BootInterface
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.interfaces.network import NetworkInterface
from ingot.drivers.interfaces.storage import StorageInterface
from ingot.drivers.interfaces.task import Task
from ingot.drivers.loading import priorities

LOG = log.getLogger(__name__)


class AgentDeploy(DeployInterface):
    """The base of ``direct`` and ``ramdisk``."""

    def get_properties(self) -> dict[str, str]:
        return booting.PROPERTIES

    def prepare_cleaning(self, task: Task) -> results.Result:
        enter = (power_control.power_off, self._enter_cleaning_network)
        return booting.run_unless_running(task, *enter, *booting.BOOT)

    @staticmethod
    def _enter_cleaning_network(task: Task) -> None:
        get_interface(task, NetworkInterface).add_cleaning_network(task)

    def tear_down_cleaning(self, task: Task) -> results.Result:
        """With fast track the agent stays, for what comes next."""
        if not results.has_begun(task) and session.can_fast_track(task):
            return results.DONE
        return results.run_phases(task, power_control.power_off, self._leave_cleaning)

    @staticmethod
    def _leave_cleaning(task: Task) -> None:
        session.forget(task)
        get_interface(task, BootInterface).clean_up_ramdisk(task)
        get_interface(task, NetworkInterface).remove_cleaning_network(task)

    def prepare_service(self, task: Task) -> results.Result:
        """The user's system is asked to shut down before it is cut off."""
        enter = (power_control.soft_power_off, self._enter_servicing_network)
        return booting.run_unless_running(task, *enter, *booting.BOOT)

    @staticmethod
    def _enter_servicing_network(task: Task) -> None:
        network = get_interface(task, NetworkInterface)
        network.unconfigure_tenant_networks(task)
        network.add_servicing_network(task)

    def tear_down_service(self, task: Task) -> results.Result:
        return results.run_phases(task, *booting.SHUT_DOWN, self._return_to_user, power_control.power_on)

    @staticmethod
    def _return_to_user(task: Task) -> None:
        network = get_interface(task, NetworkInterface)
        network.remove_servicing_network(task)
        network.configure_tenant_networks(task)
        get_interface(task, BootInterface).prepare_instance(task)

    def adopt(self, task: Task) -> None:
        get_interface(task, NetworkInterface).configure_tenant_networks(task)
        get_interface(task, BootInterface).prepare_instance(task)

    def tear_down(self, task: Task) -> results.Result:
        return results.run_phases(task, power_control.power_off, self._leave_networks)

    @staticmethod
    def _leave_networks(task: Task) -> None:
        session.forget(task)
        network = get_interface(task, NetworkInterface)
        network.remove_provisioning_network(task)
        network.remove_servicing_network(task)
        network.unconfigure_tenant_networks(task)
        get_interface(task, StorageInterface).detach_volumes(task)

    def clean_up(self, task: Task) -> None:
        boot = get_interface(task, BootInterface)
        boot.clean_up_ramdisk(task)
        boot.clean_up_instance(task)

    def runs_agent(self, task: Task, kind: str) -> bool:
        return kind in ("clean", "service")

    def get_in_band_steps(self, task: Task, kind: str) -> list[StepJson]:
        steps = list(commands.get_steps(task, kind))
        if kind == "clean":  # how disks are erased by default is up to the operator
            erasing = priorities.erase_priorities(self.conf)
            for step in steps:
                if step["interface"] == "deploy":
                    step["priority"] = erasing.get(step["step"], step["priority"])
        return steps

    def execute_in_band_step(self, task: Task, kind: str, step: StepJson) -> results.Result:
        return commands.execute_step(task, kind, step)

    def collect_logs(self, task: Task) -> bytes | None:
        if not session.is_alive(task):
            return None
        try:
            return client.AgentClient(task).ask_for("log.collect_system_logs", {}, _read_logs)
        except (errors.AgentError, binascii.Error) as exc:
            LOG.warning("Node %s: no logs from its agent: %s", task.node.uuid, exc)
            return None


def _read_logs(result: object) -> bytes:
    logs = answers.read_object("result", result).get("system_logs")
    return base64.b64decode(answers.read_text("system_logs", logs))
