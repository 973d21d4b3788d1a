"""The end of every inspection: what was found becomes properties, ports, whatever hooks and rules make of it.

Hooks are plug-ins, of which the option [inspector] hooks chooses some.
"""

import base64

from oslo_log import log

from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.conductor.inspection import facts, rules
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.task import agent_logs
from ingot.conductor.task.task_manager import InspectionHook, Task
from ingot.db import inventory

LOG = log.getLogger(__name__)

_MOST_SERIALS = 1024


def describe_before(task: Task) -> Json:
    """Return what an inspection that begins must know of the one before, for the node's ``request``."""
    before = task.inventory()
    if before is None:
        return {"inventory_before": None}
    serials = facts.list_serials(before.inventory)[:_MOST_SERIALS]
    return {"inventory_before": clock.iso(before.inspected_at), "serials_before": serials}


def apply(task: Task) -> None:
    """Make of the inventory what hooks and rules say; all of it is written with the end of the step, or nothing.

    The ramdisk's logs leave the inventory either way.

    Nothing is done where the inspect interface has found no inventory, and has set the properties itself.

    :raises StepFailed: a hook or rule refuses the machine, or fails.
    """
    found = task.inventory()
    if found is None:
        return
    logs = found.plugin_data.pop("logs", None)
    draft = Draft(task, found)
    try:
        for hook in task.services.inspection_hooks:
            _run_hook(hook, draft)
        rules.run(draft)
    except errors.IngotError:
        _keep(task, logs, failed=True)
        task.add_extra_write(inventory.write_plugin_data(task.node.id, found.plugin_data))
        raise
    draft.hand_over()
    _keep(task, logs, failed=False)


def _run_hook(hook: InspectionHook, draft: Draft) -> None:
    """Run a hook, which may come with a plug-in.

    :raises StepFailed: it refuses the machine, or raises what it may not.
    """
    try:
        hook.run(draft)
    except errors.IngotError:
        raise
    except Exception as exc:
        name = type(hook).__name__
        LOG.exception("Node %s: the inspection hook %s has an error", draft.node["uuid"], name)
        raise errors.StepFailed(f"the inspection hook {name} has an error: {type(exc).__name__}: {exc}") from exc


def _keep(task: Task, logs: object, failed: bool) -> None:
    """Keep the ramdisk's logs, base64 of a tar.gz, as those of any agent."""
    if not isinstance(logs, str):
        return
    try:
        content = base64.b64decode(logs, validate=True)
    except ValueError:
        return
    agent_logs.keep(task, "inspect", str(task.node.run_id), content, failed)
