"""The timeline of a node: its runs, and of each what ran, what runs, and what is still to come.

A run is one deployment, cleaning, servicing, tear-down. Not part of the OpenStack API: it lives under /ingot/v1, where
it cannot collide with it.
"""

import datetime
import urllib.parse
from collections.abc import Mapping
from typing import Any

from ingot.api.nodes import nodes
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import clock, errors, masking
from ingot.db import models, node_history

_PRESENT = (
    *("id", "uuid", "name", "flow", "run_id", "provision_state", "target_provision_state", "last_error"),
    *("driver_internal_info", "step_state", "step_attempt", "step_started_at", "reservation"),
)

_ENDS: Mapping[str, str] = {"done": "done", "aborted": "aborted"}
"""State of a run that is over, by that of its last attempt; any other is a failure."""
_FAILED = "failed"


_STEP = {
    **dict.fromkeys(("interface", "step", "state"), fields.TEXT_SCHEMA),
    **dict.fromkeys(
        ("origin", "runner", "started_at", "finished_at", "conductor", "error"), fields.OPTIONAL_TEXT_SCHEMA
    ),
    **dict.fromkeys(("priority", "duration"), fields.OPTIONAL_NUMBER_SCHEMA),
    "args": {"type": "object"},
    "attempt": {"type": "integer"},
}
_RUN = {
    **dict.fromkeys(("run", "flow"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("started_at", "finished_at", "last_error", "conductor"), fields.OPTIONAL_TEXT_SCHEMA),
    "state": {"enum": ["running", *_ENDS.values(), _FAILED]},
    "duration": fields.OPTIONAL_NUMBER_SCHEMA,
    "steps": {"type": "integer"},
}
_TIMELINE = {
    **dict.fromkeys(("node_uuid", "provision_state"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("node_name", "run", "flow", "target_provision_state", "last_error"), fields.OPTIONAL_TEXT_SCHEMA),
    "steps": {"type": "array", "items": fields.complete_schema(_STEP)},
}
_RUNS = {"runs": {"type": "array", "items": fields.complete_schema(_RUN)}}


@operation(Param("run", fields.parse_text), answer=Answer(shows=Plain(fields.complete_schema(_TIMELINE))))
def show(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, *_PRESENT)
    asked = call.query.get("run")
    return Reply(_timeline(found, asked, node_history.list_attempts(call.db, found.id, asked or found.run_id)))


def _timeline(found: models.Record, asked: str | None, ended: list[models.Record]) -> dict[str, Any]:
    """A run of a node: the one asked for, else the latest.

    :param ended: its attempts in the journal.
    """
    run_id = asked or found.run_id or (ended[-1].run_id if ended else None)
    present = found.run_id is not None and run_id == found.run_id
    plan, index = _plan(found.driver_internal_info) if present else ([], 0)
    return {
        "node_uuid": found.uuid,
        "node_name": found.name,
        "run": run_id,
        "flow": ended[-1].flow if ended else found.flow,
        "provision_state": found.provision_state,
        "target_provision_state": found.target_provision_state,
        "last_error": found.last_error,
        "steps": [_ended(attempt, plan) for attempt in ended] + _coming(found, plan[index:]),
    }


@operation(answer=Answer(shows=Plain(fields.complete_schema(_RUN | _TIMELINE))))
def run(call: Call, run: str) -> Reply:
    """One run by its id, whatever the node: what lists of runs say of it, and its steps as the timeline has them."""
    ident = fields.parse_uuid("run", run)
    found = nodes.read(call, node_history.find_node_of_run(call.db, ident), *_PRESENT)
    ended = node_history.list_attempts(call.db, found.id, ident)
    summary = _run(_whole(ended), running=ident == found.run_id) if ended else _begun(found)
    return Reply(summary | _timeline(found, ident, ended) | {"last_error": summary["last_error"]})


def _whole(ended: list[models.Record]) -> models.Record:
    """What :func:`ingot.db.node_history.list_runs` tells of a run, from its attempts."""
    started = min(attempt.started_at for attempt in ended)
    return models.Record(
        **vars(ended[-1]) | {"started_at": started, "steps": len({attempt.step_index for attempt in ended})}
    )


@operation(
    Param("limit", operations.parse_limit),
    Param("marker", fields.parse_uuid),
    answer=Answer(shows=Plain(fields.object_schema({**_RUNS, "next": fields.TEXT_SCHEMA}, _RUNS))),
)
def runs(call: Call, node: str) -> Reply:
    """The runs of a node, the latest first."""
    found = nodes.read(call, node, *_PRESENT)
    limit = min(call.query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    marker = call.query.get("marker")
    ended = _ended_before(call, found, limit, marker)
    listed = [_run(run, running=run.run_id == found.run_id) for run in ended]
    if found.run_id is not None and marker is None and found.run_id not in (run.run_id for run in ended):
        listed = [_begun(found), *listed][:limit]
    body: dict[str, Any] = {"runs": listed}
    if len(listed) == limit:
        query = urllib.parse.urlencode({"limit": limit, "marker": listed[-1]["run"]})
        body["next"] = f"{call.base}{call.path}?{query}"
    return Reply(body)


def _ended_before(call: Call, node: models.Node, limit: int, marker: str | None) -> list[models.Record]:
    try:
        return node_history.list_runs(call.db, node.id, limit, marker)
    except errors.NotFound:
        if marker != node.run_id:
            raise
        return node_history.list_runs(
            call.db, node.id, limit
        )  # that one has not ended a step yet: all others are older


def _run(run: models.Record, running: bool) -> dict[str, Any]:
    return {
        "run": run.run_id,
        "flow": run.flow,
        "state": "running" if running else _ENDS.get(run.state, _FAILED),
        "started_at": run.started_at,
        "finished_at": None if running else run.finished_at,
        "duration": _seconds(run.started_at, clock.now() if running else run.finished_at),
        "steps": run.steps,
        "last_error": run.error,
        "conductor": run.conductor,
    }


def _begun(node: models.Node) -> dict[str, Any]:
    """The run that has not ended a step yet."""
    begun = node.step_started_at
    row = {"run_id": node.run_id, "flow": node.flow, "started_at": begun, "steps": 0, "error": None}
    return _run(models.Record(**row, conductor=node.reservation), running=True)


def _plan(info: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """The plan of the flow that runs, and the position in it.

    A flow keeps them as ``<kind>_steps`` and ``<kind>_step_index``, and starts by removing those of the flow before it:
    whatever its kind, they are the only ones.
    """
    kind = next((key.removesuffix("_step_index") for key in info if key.endswith("_step_index")), None)
    return (info.get(f"{kind}_steps") or [], info[f"{kind}_step_index"]) if kind else ([], 0)


def _step(step: Mapping[str, Any], state: str) -> dict[str, Any]:
    told = {name: step.get(name) for name in ("interface", "step", "priority", "origin", "runner")}
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


def _ended(attempt: models.Record, plan: list[dict[str, Any]]) -> dict[str, Any]:
    """An attempt of the journal. Who ran it is known as long as its plan is."""
    planned = plan[attempt.step_index] if attempt.step_index < len(plan) else {}
    same = (planned.get("interface"), planned.get("step")) == (attempt.interface, attempt.step)
    return {
        **_step({**vars(attempt), "runner": planned.get("runner") if same else None}, attempt.state),
        "attempt": attempt.attempt,
        "started_at": attempt.started_at,
        "finished_at": attempt.finished_at,
        "duration": _seconds(attempt.started_at, attempt.finished_at),
        "conductor": attempt.conductor,
        "error": attempt.error,
    }


def _coming(node: models.Node, plan: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The step that runs, and those that are planned after it."""
    coming = [_step(step, "planned") for step in plan]
    if coming and node.step_state not in (None, "next"):  # the latter was handed over before it began
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
