"""Software RAID, built by the agent on the machine."""

from collections.abc import Mapping

from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.common.steps import StepJson
from ingot.drivers.agent import commands
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.raid import RAIDInterface
from ingot.drivers.interfaces.task import Task

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
    """The raid interface ``agent``.

    Templates, users and manual cleaning request its steps; by default one runs only if the operator gives it a
    priority. The agent's steps have the names of these, in every kind of flow: the methods only check the arguments.
    """

    def run_declared(self, task: Task, kind: str, step: StepJson) -> results.Result:
        super().run_declared(task, kind, step)
        defaults = {"delete_existing": True} if step["step"] == "apply_configuration" else {}
        args = {**defaults, **(step.get("args") or {})}
        return commands.execute_by_name(task, kind, "raid", step["step"], lambda: args)

    @base.service_step(argsinfo=_APPLY)
    @base.deploy_step(priority=0, argsinfo=_APPLY, requires_ramdisk=True, idempotent=True)
    def apply_configuration(self, task: Task, raid_config: Json, delete_existing: bool = True) -> None:
        """Build the arrays of an argument."""
        self.validate_raid_config(raid_config)
        if not isinstance(delete_existing, bool):
            raise errors.Invalid(field="delete_existing", value=delete_existing, allowed="true or false.")

    @base.service_step()
    @base.clean_step(priority=base.from_option("deploy", "create_configuration_priority"))
    def create_configuration(self, task: Task) -> None:
        """Build the arrays of the node's ``target_raid_config``."""
        self.validate_raid_config(task.node.target_raid_config)

    @base.service_step()
    @base.clean_step(priority=base.from_option("deploy", "delete_configuration_priority"))
    def delete_configuration(self, task: Task) -> None:
        """Delete all arrays."""


@base.post_deploy_step_hook("raid", "apply_configuration")
@base.post_clean_step_hook("raid", "create_configuration")
@base.post_service_step_hook("raid", "apply_configuration")
@base.post_service_step_hook("raid", "create_configuration")
def _record_built(task: Task, result: object) -> None:
    """Keep what the agent reports it built; out-of-band implementations have no result and record it themselves."""
    for key in ("deploy_result", "clean_result", "service_result"):
        built = result.get(key) if isinstance(result, Mapping) else None
        if isinstance(built, Mapping):
            task.set(raid_config={**built, "last_updated": clock.iso(clock.now())})


@base.post_clean_step_hook("raid", "delete_configuration")
@base.post_service_step_hook("raid", "delete_configuration")
def _record_deleted(task: Task, result: object) -> None:
    if isinstance(result, Mapping):
        task.set(raid_config={})
