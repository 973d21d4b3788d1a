"""Software RAID, built by the agent on the machine."""

from collections.abc import Mapping
from typing import Any

from ingot.common import clock, errors
from ingot.drivers import results, steps
from ingot.drivers.agent import commands
from ingot.drivers.interfaces.raid import RAIDInterface
from ingot.drivers.task import Task

_APPLY = {
    "raid_config": {
        "description": "Object with logical_disks, a list of objects with raid_level, size_gb and more.",
        "required": True,
    },
    "delete_existing": {
        "description": "Whether arrays that exist are deleted first: true or false. Default: true.",
        "required": False,
    },
}


class AgentRAID(RAIDInterface):
    """The raid interface ``agent``. Nothing runs by itself; templates, users and manual cleaning ask for it."""

    @steps.deploy_step(priority=0, argsinfo=_APPLY, requires_ramdisk=True, idempotent=True)
    def apply_configuration(
        self, task: Task, raid_config: dict[str, Any], delete_existing: bool = True
    ) -> results.Result:
        """Builds the arrays of an argument, during a deployment."""
        self.validate_raid_config(raid_config)
        if not isinstance(delete_existing, bool):
            raise errors.Invalid(field="delete_existing", value=delete_existing, allowed="true or false.")
        args = {"raid_config": raid_config, "delete_existing": delete_existing}
        return self._on_agent(task, "deploy", "apply_configuration", args)

    @steps.clean_step(priority=0)
    def create_configuration(self, task: Task) -> results.Result:
        """Builds the arrays of the node's ``target_raid_config``."""
        self.validate_raid_config(task.node.target_raid_config)
        return self._on_agent(task, "clean", "create_configuration", {})

    @steps.clean_step(priority=0)
    def delete_configuration(self, task: Task) -> results.Result:
        """Deletes all arrays."""
        return self._on_agent(task, "clean", "delete_configuration", {})

    @staticmethod
    def _on_agent(task: Task, kind: str, name: str, args: dict[str, Any]) -> results.Result:
        step = {"interface": "raid", "step": name, "priority": 0, "args": args}
        return commands.execute_step(task, kind, {**step, "reboot_requested": False})


@steps.post_deploy_step_hook("raid", "apply_configuration")
def _record_applied(task: Task, result: Any) -> None:
    _record(task, result, "deploy_result")


@steps.post_clean_step_hook("raid", "create_configuration")
def _record_created(task: Task, result: Any) -> None:
    _record(task, result, "clean_result")


@steps.post_clean_step_hook("raid", "delete_configuration")
def _record_deleted(task: Task, result: Any) -> None:
    if isinstance(result, Mapping):
        task.set(raid_config={})


def _record(task: Task, result: Any, key: str) -> None:
    """Keeps what the agent says it built; out-of-band implementations have no result and record it themselves."""
    built = result.get(key) if isinstance(result, Mapping) else None
    if isinstance(built, Mapping):
        task.set(raid_config={**built, "last_updated": clock.iso(clock.now())})
