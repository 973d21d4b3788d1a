"""Software RAID, built by the agent on the machine."""

from collections.abc import Mapping
from functools import partial

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.common.steps import StepJson
from ingot.drivers.agent import answers, commands
from ingot.drivers.interfaces import base, results
from ingot.drivers.interfaces.raid import RAIDInterface, record_arrays
from ingot.drivers.interfaces.task import Task

_APPLY: base.ArgsInfo = {
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

    Templates, users and manual cleaning request its steps; by default one runs only if the operator, or else the agent,
    gives it a priority. The agent's steps have the names of these, in every kind of flow: the methods only check the
    arguments.
    """

    def run_declared(self, task: Task, kind: str, step: StepJson) -> results.Result:
        super().run_declared(task, kind, step)
        defaults = {"delete_existing": True} if step["step"] == "apply_configuration" else {}
        args = {**defaults, **(step.get("args") or {})}
        return commands.execute_by_name(task, kind, "raid", step["step"], lambda: args)

    @base.service_step(argsinfo=_APPLY)
    @base.deploy_step(priority=None, argsinfo=_APPLY, requires_ramdisk=True, idempotent=True)
    def apply_configuration(self, task: Task, raid_config: Json, delete_existing: bool = True) -> None:
        """Build the arrays of an argument."""
        self.validate_raid_config(raid_config)

    @base.service_step()
    @base.clean_step(priority=base.from_option("deploy", "create_configuration_priority"))
    def create_configuration(self, task: Task) -> None:
        """Build the arrays of the node's ``target_raid_config``."""
        self.validate_raid_config(task.node.target_raid_config)

    @base.service_step()
    @base.clean_step(priority=base.from_option("deploy", "delete_configuration_priority"))
    def delete_configuration(self, task: Task) -> None:
        """Delete all arrays."""


def _record_built(kind: str, task: Task, result: object) -> None:
    """Keep what the agent reports it built; out-of-band implementations have no result and record it themselves.

    :raises StepFailed: the agent reports no arrays, or what cannot be arrays.
    """
    if not isinstance(result, Mapping):
        return
    try:
        record_arrays(task, answers.read_arrays(f"{kind}_result", result))
    except answers.Malformed as exc:
        raise errors.StepFailed(f"the agent does not say which arrays it has built: {exc}") from None


def _record_deleted(task: Task, result: object) -> None:
    if isinstance(result, Mapping):
        record_arrays(task, {})


_REGISTER = {
    "clean": base.post_clean_step_hook,
    "deploy": base.post_deploy_step_hook,
    "service": base.post_service_step_hook,
}
for _kind, _register in _REGISTER.items():
    for _name in ("apply_configuration", "create_configuration"):
        _register("raid", _name)(partial(_record_built, _kind))
    _register("raid", "delete_configuration")(_record_deleted)
