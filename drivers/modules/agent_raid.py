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
    """The raid interface ``agent``. Templates, users and manual cleaning ask for its steps; by itself one runs only if
    the operator gives it a priority.

    The agent's steps have the names of these, in every kind of flow: the methods check what they were asked for and
    return the arguments that the agent is given.
    """

    def run_declared(self, task: Task, kind: str, step: dict[str, Any]) -> results.Result:
        args = super().run_declared(task, kind, step)
        return commands.execute_by_name(task, kind, self.kind, step["step"], args)

    @steps.service_step(argsinfo=_APPLY)
    @steps.deploy_step(priority=0, argsinfo=_APPLY, requires_ramdisk=True, idempotent=True)
    def apply_configuration(
        self, task: Task, raid_config: dict[str, Any], delete_existing: bool = True
    ) -> dict[str, Any]:
        """Builds the arrays of an argument."""
        self.validate_raid_config(raid_config)
        if not isinstance(delete_existing, bool):
            raise errors.Invalid(field="delete_existing", value=delete_existing, allowed="true or false.")
        return {"raid_config": raid_config, "delete_existing": delete_existing}

    @steps.service_step()
    @steps.clean_step(priority=steps.from_option("deploy", "create_configuration_priority"))
    def create_configuration(self, task: Task) -> dict[str, Any]:
        """Builds the arrays of the node's ``target_raid_config``."""
        self.validate_raid_config(task.node.target_raid_config)
        return {}

    @steps.service_step()
    @steps.clean_step(priority=steps.from_option("deploy", "delete_configuration_priority"))
    def delete_configuration(self, task: Task) -> dict[str, Any]:
        """Deletes all arrays."""
        return {}


@steps.post_deploy_step_hook("raid", "apply_configuration")
def _record_deployed(task: Task, result: Any) -> None:
    _record(task, result, "deploy_result")


@steps.post_clean_step_hook("raid", "create_configuration")
def _record_cleaned(task: Task, result: Any) -> None:
    _record(task, result, "clean_result")


@steps.post_service_step_hook("raid", "apply_configuration")
@steps.post_service_step_hook("raid", "create_configuration")
def _record_serviced(task: Task, result: Any) -> None:
    _record(task, result, "service_result")


@steps.post_clean_step_hook("raid", "delete_configuration")
@steps.post_service_step_hook("raid", "delete_configuration")
def _record_deleted(task: Task, result: Any) -> None:
    if isinstance(result, Mapping):
        task.set(raid_config={})


def _record(task: Task, result: Any, key: str) -> None:
    """Keeps what the agent says it built; out-of-band implementations have no result and record it themselves."""
    built = result.get(key) if isinstance(result, Mapping) else None
    if isinstance(built, Mapping):
        task.set(raid_config={**built, "last_updated": clock.iso(clock.now())})
