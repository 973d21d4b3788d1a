"""What deploy interfaces that boot the agent have in common: cleaning, the agent's steps, its logs."""

import base64
import binascii
from typing import Any

from oslo_log import log

from ingot.common import errors
from ingot.drivers import power_control, results
from ingot.drivers.agent import booting, client, commands, session
from ingot.drivers.interfaces.deploy import DeployInterface
from ingot.drivers.task import Task

LOG = log.getLogger(__name__)

_ERASING = ("erase_devices", "erase_devices_metadata")


class AgentDeploy(DeployInterface):
    """The base of ``direct`` and ``ramdisk``."""

    def prepare_cleaning(self, task: Task) -> results.Result:
        if session.fast_track(task):
            return results.DONE
        return results.in_phases(task, power_control.power_off, self._enter_cleaning_network, *booting.BOOT)

    @staticmethod
    def _enter_cleaning_network(task: Task) -> None:
        task.driver.network.add_cleaning_network(task)

    def tear_down_cleaning(self, task: Task) -> results.Result:
        return results.in_phases(task, power_control.power_off, self._leave_cleaning)

    @staticmethod
    def _leave_cleaning(task: Task) -> None:
        session.forget(task)
        task.driver.boot.clean_up_ramdisk(task)
        task.driver.network.remove_cleaning_network(task)

    def tear_down(self, task: Task) -> results.Result:
        return results.in_phases(task, power_control.power_off, self._leave_networks)

    @staticmethod
    def _leave_networks(task: Task) -> None:
        session.forget(task)
        task.driver.network.remove_provisioning_network(task)
        task.driver.network.unconfigure_tenant_networks(task)
        task.driver.storage.detach_volumes(task)

    def clean_up(self, task: Task) -> None:
        task.driver.boot.clean_up_ramdisk(task)
        task.driver.boot.clean_up_instance(task)

    def get_in_band_steps(self, task: Task, kind: str) -> list[dict[str, Any]]:
        return [{**step, "priority": self._priority(kind, step)} for step in commands.get_steps(task, kind)]

    def _priority(self, kind: str, step: dict[str, Any]) -> int:
        """How disks are erased by default is the operator's to say."""
        if kind == "clean" and step["interface"] == "deploy" and step["step"] in _ERASING:
            configured: int | None = self.conf.deploy[f"{step['step']}_priority"]
            if configured is not None:
                return configured
        return int(step.get("priority") or 0)

    def execute_in_band_step(self, task: Task, kind: str, step: dict[str, Any]) -> results.Result:
        return commands.execute_step(task, kind, step)

    def collect_logs(self, task: Task) -> bytes | None:
        if not session.alive(task):
            return None
        try:
            answer = client.AgentClient(task.conf, task.node).ask("log.collect_system_logs", {})
            return base64.b64decode(answer["system_logs"])
        except (errors.AgentError, KeyError, TypeError, binascii.Error) as exc:
            LOG.warning("Node %s: no logs from its agent: %s", task.node.uuid, exc)
            return None
