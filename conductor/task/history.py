"""What flows, their steps and power changes enter into a node's history: one shape for all."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

from ingot.common import clock
from ingot.conductor.task.task_manager import Task

_ENDS: Mapping[str, str] = {"done": "completed", "aborted": "was aborted", "interrupted": "was interrupted"}
"""How messages put the state of an attempt; what is not here ``failed``."""


def writable(text: str) -> str:
    """A message of a machine or a driver without what databases refuse: NUL and halves of surrogate pairs."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()


def entry(task: Task, event_type: str, severity: str, event: str, seconds: float | None = None) -> dict[str, Any]:
    """A row for ``Task.write`` or ``Task.release``.

    Who asked for the work is in the accepted request (``asked_by``: user and project); what a conductor does on its
    own account has the user of its task.

    :param event_type: ``provisioning``, ``step`` or ``power``.
    :param severity: ``INFO`` or ``ERROR``.
    :param seconds: how long what ended now has taken, where that is known.
    """
    asked_by = task.node.request.get("asked_by") or {"user": task.context.user_id, "project": task.context.project_id}
    return {
        "created_at": clock.now(),
        "conductor": task.services.host,
        "severity": severity,
        "event_type": event_type,
        "event": event,
        "user": asked_by.get("user"),
        "project": asked_by.get("project"),
        "state": task.node.provision_state,
        "target_provision_state": task.node.target_provision_state,
        "duration_seconds": seconds,
    }


def of_steps(task: Task, attempts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each step that a run has ended, for the write that ends the run.

    :param attempts: the run's journal, oldest first: rows of ``step_runs``, written or about to be. Attempts of one
        step follow each other, and the first of each step has number 1.
    """
    return [_of_step(task, tried) for tried in _steps(attempts)]


def _steps(attempts: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The attempts of each step. A step that runs again later, after a restart of the cleaning say, is another one."""
    steps: list[list[Mapping[str, Any]]] = []
    for attempt in attempts:
        if attempt["attempt"] > 1 and steps and steps[-1][-1]["step_index"] == attempt["step_index"]:
            steps[-1].append(attempt)
        else:
            steps.append([attempt])
    return steps


def _of_step(task: Task, tried: list[Mapping[str, Any]]) -> dict[str, Any]:
    last = tried[-1]
    started: datetime.datetime = tried[0]["started_at"]
    seconds = (last["finished_at"] - started).total_seconds()
    told = entry(task, "step", "INFO" if last["state"] == "done" else "ERROR", _event(tried), seconds)
    return {**told, "created_at": last["finished_at"], "conductor": last["conductor"]}


def _event(tried: list[Mapping[str, Any]]) -> str:
    """E.g. ``Step raid.apply_configuration (template CUSTOM_MIRROR) of flow deploy completed at attempt 2.``"""
    last = tried[-1]
    told = f"Step {last['interface']}.{last['step']} ({last['origin']}) of flow {last['flow']} {_end(last)}"
    if last["attempt"] > 1:
        told += f" at attempt {last['attempt']}"
    if last["error"]:
        told += f": {last['error'].rstrip('.')}"
    before = [f"attempt {attempt['attempt']} {_end(attempt)}: {attempt['error']}" for attempt in tried[:-1]]
    return f"{told}. Before that, {'; '.join(before).rstrip('.')}." if before else f"{told}."


def _end(attempt: Mapping[str, Any]) -> str:
    return _ENDS.get(attempt["state"], "failed")
