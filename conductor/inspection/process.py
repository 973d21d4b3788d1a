"""The end of every inspection: what was found becomes properties, ports, whatever hooks and rules make of it."""

import base64
import binascii

from ingot.common import errors
from ingot.conductor.inspection import hooks, rules
from ingot.conductor.inspection.draft import Draft
from ingot.conductor.task import agent_logs
from ingot.conductor.task.task_manager import Task
from ingot.db import inventory


def apply(task: Task) -> None:
    """Make of the inventory what hooks and rules say; all of it is written with the end of the step, or nothing. The
    ramdisk's logs leave the inventory either way.

    Nothing is done where the inspect interface has found no inventory, and has set the properties itself.

    :raises StepFailed: a hook or rule refuses the machine, or fails.
    """
    found = task.inventory()
    if found is None:
        return
    logs = found.plugin_data.pop("logs", None)
    draft = Draft(task, found)
    try:
        hooks.run(draft)
        rules.run(draft)
    except errors.IngotError:
        _keep(task, logs, failed=True)
        task.add_extra_write(inventory.write_plugin_data(task.node.id, found.plugin_data))
        raise
    draft.hand_over()
    _keep(task, logs, failed=False)


def _keep(task: Task, logs: object, failed: bool) -> None:
    """Keep the ramdisk's logs, base64 of a tar.gz, as those of any agent."""
    if not isinstance(logs, str):
        return
    try:
        content = base64.b64decode(logs, validate=True)
    except (ValueError, binascii.Error):
        return
    agent_logs.keep(task, "inspect", str(task.node.run_id), content, failed)
