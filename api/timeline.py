"""The timeline of a node: what ran, what runs, and what is still to come of a deployment, a cleaning, a tear-down.

Not part of the OpenStack API: it lives under /ingot/v1, where it cannot collide with it.
"""

import datetime
from typing import Any

from ingot.api import nodes, params
from ingot.api.call import Call, Reply, operation
from ingot.api.params import Param
from ingot.common import clock, masking
from ingot.db import records, step_runs

_PRESENT = (
    *("id", "uuid", "name", "flow", "run_id", "provision_state", "target_provision_state", "last_error"),
    *("driver_internal_info", "step_state", "step_attempt", "step_started_at", "reservation"),
)


@operation(Param("run", params.text))
def show(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, *_PRESENT)
    asked = call.query.get("run")
    ended = step_runs.of_run(call.db, found.id, asked or found.run_id)
    run_id = asked or found.run_id or (ended[-1].run_id if ended else None)
    steps = [_ended(attempt) for attempt in ended]
    if run_id == found.run_id:
        steps += _present(found)
    return Reply(
        {
            "node_uuid": found.uuid,
            "node_name": found.name,
            "run": run_id,
            "flow": ended[-1].flow if ended else found.flow,
            "provision_state": found.provision_state,
            "target_provision_state": found.target_provision_state,
            "last_error": found.last_error,
            "steps": steps,
        }
    )


def _step(step: dict[str, Any], state: str) -> dict[str, Any]:
    told = {name: step.get(name) for name in ("interface", "step", "priority", "origin")}
    return {
        **told,
        "args": masking.mask(step.get("args") or {}),
        "state": state,
        "attempt": 0,
        "started_at": None,
        "finished_at": None,
        "duration": None,
        "conductor": None,
        "error": None,
    }


def _ended(attempt: records.Record) -> dict[str, Any]:
    return {
        **_step(vars(attempt), attempt.state),
        "attempt": attempt.attempt,
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
        "duration": _seconds(attempt.started_at, attempt.finished_at),
        "conductor": attempt.conductor,
        "error": attempt.error,
    }


def _present(node: records.Record) -> list[dict[str, Any]]:
    """The step that runs, and those that are planned after it."""
    kind = (node.flow or "").rpartition("_")[2]  # automated_clean and manual_clean plan clean steps
    plan = node.driver_internal_info.get(f"{kind}_steps") or []
    index = node.driver_internal_info.get(f"{kind}_step_index")
    if index is None:
        return [_step(step, "planned") for step in plan]
    coming = [_step(step, "planned") for step in plan[index:]]
    if coming and node.step_state is not None:
        coming[0] |= {
            "state": node.step_state,
            "attempt": node.step_attempt,
            "started_at": node.step_started_at,
            "duration": _seconds(node.step_started_at, clock.now()),
            "conductor": node.reservation,
        }
    return coming


def _seconds(started: datetime.datetime | None, finished: datetime.datetime) -> float | None:
    return None if started is None else round((finished - started).total_seconds(), 3)
