"""What deploy interfaces that boot the agent have in common: cleaning, the agent's steps, its logs."""

import base64
import binascii
from typing import Any

from oslo_log import log

from ingot.common import errors
from ingot.drivers import power_control, priorities, results
from ingot.drivers.agent import booting, client, commands, offered_steps, session
from ingot.drivers.interfaces.base import needed
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.task import Task

LOG = log.getLogger(__name__)


class AgentDeploy(DeployInterface):
    """The base of ``direct`` and ``ramdisk``."""

    def prepare_cleaning(self, task: Task) -> results.Result:
        return booting.unless_there(task, power_control.power_off, self._enter_cleaning_network, *booting.BOOT)

    @staticmethod
    def _enter_cleaning_network(task: Task) -> None:
        task.driver.network.add_cleaning_network(task)

    def tear_down_cleaning(self, task: Task) -> results.Result:
        """With fast track the agent stays, for what comes next."""
        if not results.begun(task) and session.fast_track(task):
            return results.DONE
        return results.in_phases(task, power_control.power_off, self._leave_cleaning)

    @staticmethod
    def _leave_cleaning(task: Task) -> None:
        session.forget(task)
        task.driver.boot.clean_up_ramdisk(task)
        task.driver.network.remove_cleaning_network(task)

    def prepare_service(self, task: Task) -> results.Result:
        """The user's system is asked to shut down before it is cut off."""
        enter = (power_control.soft_power_off, self._enter_servicing_network)
        return booting.unless_there(task, *enter, *booting.BOOT)

    @staticmethod
    def _enter_servicing_network(task: Task) -> None:
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.network.add_servicing_network(task)

    def tear_down_service(self, task: Task) -> results.Result:
        return results.in_phases(task, *booting.SHUT_DOWN, self._return_to_user, power_control.power_on)

    @staticmethod
    def _return_to_user(task: Task) -> None:
        task.driver.network.remove_servicing_network(task)
        task.driver.network.configure_tenant_networks(task)
        task.driver.boot.prepare_instance(task)

    def adopt(self, task: Task) -> None:
        task.driver.network.configure_tenant_networks(task)
        task.driver.boot.prepare_instance(task)

    def tear_down(self, task: Task) -> results.Result:
        return results.in_phases(task, power_control.power_off, self._leave_networks)

    @staticmethod
    def _leave_networks(task: Task) -> None:
        session.forget(task)
        task.driver.network.remove_provisioning_network(task)
        task.driver.network.remove_servicing_network(task)
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.storage.detach_volumes(task)

    def clean_up(self, task: Task) -> None:
        boot = needed(task, "boot")
        boot.clean_up_ramdisk(task)
        boot.clean_up_instance(task)

    def runs_agent(self, task: Task, kind: str) -> bool:
        return kind in ("clean", "service")

    def get_in_band_steps(self, task: Task, kind: str) -> list[dict[str, Any]]:
        return [{**step.as_step(), "priority": self._priority(kind, step)} for step in commands.get_steps(task, kind)]

    def _priority(self, kind: str, step: offered_steps.OfferedStep) -> offered_steps.Priority:
        """How disks are erased by default is the operator's to say."""
        if kind != "clean" or step.interface != "deploy":
            return step.priority
        return priorities.of_erasing(self.conf).get(step.step, step.priority)

    def execute_in_band_step(self, task: Task, kind: str, step: dict[str, Any]) -> results.Result:
        return commands.execute_step(task, kind, step)

    def collect_logs(self, task: Task) -> bytes | None:
        if not session.alive(task):
            return None
        try:
            answer = client.AgentClient(task).ask("log.collect_system_logs", {})
            return base64.b64decode(answer["system_logs"])
        except (errors.AgentError, KeyError, TypeError, binascii.Error) as exc:
            LOG.warning("Node %s: no logs from its agent: %s", task.node.uuid, exc)
            return None
