"""What flows and power changes enter into a node's history: one shape for both."""

from typing import Any

from ingot.conductor.task_manager import Task


def entry(task: Task, event_type: str, severity: str, event: str, seconds: float | None = None) -> dict[str, Any]:
    """A row for ``Task.write`` or ``Task.release``.

    :param event_type: ``provisioning`` or ``power``.
    :param severity: ``INFO`` or ``ERROR``.
    :param seconds: how long what ended now has taken, where that is known.
    """
    return {
        "conductor": task.services.host,
        "severity": severity,
        "event_type": event_type,
        "event": event,
        "user": task.context.user_id,
        "project": task.context.project_id,
        "state": task.node.provision_state,
        "target_provision_state": task.node.target_provision_state,
        "duration_seconds": seconds,
    }
