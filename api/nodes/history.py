"""The past of a node: its history entries, the logs of its agents, its runs, and the timeline of a run; and why it is
where it is now.

A run is one deployment, cleaning, servicing, tear-down; its timeline is what ran, runs, and is still to come. Logs and
runs are not part of the OpenStack API: they live under /ingot/v1, where they cannot collide with it.
"""

import datetime
import urllib.parse
from collections.abc import Sequence

from ingot.api.nodes import nodes, overview
from ingot.api.web import collection, fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import clock, errors, masking, steps
from ingot.common.json_types import Json
from ingot.common.states import StepState
from ingot.db import durations, explanations, listing, models, node_history, triage
from ingot.db.node_history import Run

_SHORT = 251


def _build_entry_links(entry: models.NodeHistory, call: Call) -> list[dict[str, str]]:
    node = call.path.split("/")[3]
    return [{"href": f"{call.base}/v1/nodes/{node}/history/{entry.uuid}", "rel": "self"}]


_ENTRY = tables.Table(
    "history entry",
    *(Field(name, 78, brief=True, sortable=True) for name in ("uuid", "created_at", "severity")),
    Field("event", 78, brief=True),
    Field("links", 78, brief=True, compute=_build_entry_links, needs=("uuid",)),
    *(Field(name, 78, sortable=True) for name in ("event_type", "conductor", "user")),
    Field("project", 113, sortable=True),
    *(Field(name, 115, sortable=True) for name in ("state", "target_provision_state")),
    Field(
        "duration_seconds",
        115,
        sortable=True,
        compute=lambda entry, _call: None if entry.duration_seconds is None else int(entry.duration_seconds),
        needs=("duration_seconds",),
        schema={"type": ["integer", "null"]},
    ),
)


def _shorten(_call: Call, found: list[models.NodeHistory], selection: tables.Selection) -> None:
    for entry in found if "conductor" not in selection.names else ():
        if len(entry.event) > _SHORT:
            entry.event = f"{entry.event[:_SHORT]}..."


_HISTORY = collection.Collection("history", _ENTRY, node_history.ENTRIES, selects=False, complete=_shorten)


index = nodes.build_list_of_node(_HISTORY)


@operation(answer=Answer(shows=_HISTORY.one))
def show(call: Call, node: str, uuid: str) -> Reply:
    entry = listing.get_of_node(call.db, node_history.ENTRIES, nodes.read(call, node, "id").id, uuid)
    return Reply(_ENTRY.select(call.minor).render(entry, call))


# The same for Ingot's own clients, with what the Bare Metal API does not know

_OWN_ENTRY = tables.Table(
    "history entry with request",
    *(Field(name, brief=True, sortable=True) for name in ("uuid", "created_at", "severity", "event_type")),
    *(Field(name, brief=True) for name in ("event", "duration_seconds")),
    *(Field(name, brief=True, sortable=True) for name in ("conductor", "user", "project", "request_id")),
    *(Field(name, brief=True) for name in ("state", "target_provision_state")),
)

list_entries = nodes.build_list_of_node(
    collection.Collection("history", _OWN_ENTRY, node_history.ENTRIES, selects=False)
)


# Logs of agents: the ramdisk's logs of a run, kept when it failed


def _build_log_links(log: models.AgentLog, call: Call) -> list[dict[str, str]]:
    return [{"href": f"{call.base}{call.path.rstrip('/')}/{log.uuid}", "rel": "self"}]


_LOG = tables.Table(
    "log",
    Field("uuid", brief=True, sortable=True),
    Field("run", brief=True, compute=lambda log, _call: log.run_id, needs=("run_id",)),
    *(Field(name, brief=True, sortable=True) for name in ("flow", "created_at", "size")),
    Field("links", brief=True, compute=_build_log_links, needs=("uuid",)),
)

list_logs = nodes.build_list_of_node(collection.Collection("logs", _LOG, node_history.LOGS, selects=False))


@operation(answer=Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/gzip"))
def show_log(call: Call, node: str, uuid: str) -> Reply:
    """Send the archive itself."""
    found = nodes.read(call, node, "id", "uuid")
    log = listing.get_of_node(call.db, node_history.LOGS, found.id, uuid)
    name = f"{found.uuid}-{log.flow}-{clock.iso(log.created_at)}.tar.gz".replace(":", "")
    return Reply(log.content, headers={"Content-Disposition": f'attachment; filename="{name}"'})


# Runs and timelines

_PRESENT = (
    *("id", "name", "target_provision_state", "last_error", "request", "step_attempt"),
    *explanations.COLUMNS,
)

_ENDS = ("done", "aborted")
"""States of a run that is over, which are those of its last attempt; after any other it has failed."""

_STEP = {
    **dict.fromkeys(("interface", "step", "state"), fields.TEXT_SCHEMA),
    **dict.fromkeys(
        ("origin", "runner", "started_at", "finished_at", "conductor", "error"), fields.OPTIONAL_TEXT_SCHEMA
    ),
    **dict.fromkeys(("priority", "duration", "usual_duration"), fields.OPTIONAL_NUMBER_SCHEMA),
    "args": {"type": "object"},
    "attempt": {"type": "integer"},
}
_OF_ATTEMPT = ("state", "attempt", "started_at", "finished_at", "conductor", "error")
_RUN = {
    **dict.fromkeys(("run", "flow"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("started_at", "finished_at", "last_error", "conductor"), fields.OPTIONAL_TEXT_SCHEMA),
    "state": {"enum": ["running", *_ENDS, "failed"]},
    "duration": fields.OPTIONAL_NUMBER_SCHEMA,
    "steps": {"type": "integer"},
}
_IDS = ("request_id", "global_request_id")
_TIMELINE = {
    **dict.fromkeys(("node_uuid", "provision_state"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("node_name", "run", "flow", "target_provision_state", "last_error"), fields.OPTIONAL_TEXT_SCHEMA),
    **dict.fromkeys(_IDS, fields.OPTIONAL_TEXT_SCHEMA),
    "steps": {"type": "array", "items": fields.complete_schema(_STEP)},
}
_EXPLANATION = {
    **dict.fromkeys(("kind", "waits_for", "provision_state", "next", "advice"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("since", "until", "flow", "step", "conductor"), fields.OPTIONAL_TEXT_SCHEMA),
    "last_sign": {"type": ["object", "null"], "properties": dict.fromkeys(("what", "at"), fields.TEXT_SCHEMA)},
    **{name: {"type": "array", "items": fields.TEXT_SCHEMA} for name in ("usual_causes", "notes")},
}
_TIMELINE["explanation"] = {**fields.complete_schema(_EXPLANATION), "type": ["object", "null"]}
_OWN_EXPLANATION = {
    "node_uuid": fields.TEXT_SCHEMA,
    "node_name": fields.OPTIONAL_TEXT_SCHEMA,
    **_EXPLANATION,
    "triage": overview.TRIAGE_SCHEMA,
    "at": fields.TEXT_SCHEMA,
    "stale_at": fields.OPTIONAL_TEXT_SCHEMA,
}
_RUNS = {"runs": {"type": "array", "items": fields.complete_schema(_RUN)}}


@operation(Param("run", fields.parse_text), answer=Answer(shows=Plain(fields.complete_schema(_TIMELINE))))
def show_timeline(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, *_PRESENT)
    run_id = call.query.get("run")
    ended = node_history.list_attempts(call.db, found.id, run_id or found.run_id)
    return Reply(_render_timeline(call, found, run_id, ended))


@operation(answer=Answer(shows=Plain(fields.complete_schema(_OWN_EXPLANATION))))
def show_explanation(call: Call, node: str) -> Reply:
    """Show why a node is where it is: what it waits for, since when and until when, what comes next, usual causes.

    Under ``triage`` is what the overview says of it. ``stale_at`` is when it becomes different though nothing happens.
    """
    found = nodes.read(call, node, *triage.COLUMNS)
    online = explanations.read_online_for(call.db, call.conf, found)
    need = triage.find(call.db, call.conf, found, online)
    needed = overview.render_triage(call, need.finding)
    explained = explanations.explain(call.conf, found, online)
    moments = {"at": clock.now(), "stale_at": need.stale_at}
    return Reply({"node_uuid": found.uuid, "node_name": found.name, **explained, "triage": needed, **moments})


def _render_timeline(call: Call, found: models.Node, run_id: str | None, ended: Sequence[models.StepRun]) -> Json:
    """Return a run of a node: the one that is named, else the latest.

    :param ended: its attempts of steps that have ended.
    """
    run_id = run_id or found.run_id or (ended[-1].run_id if ended else None)
    present = found.run_id is not None and run_id == found.run_id
    plan, index = steps.read_plan(found.driver_internal_info) if present else ([], 0)
    coming = [_render_step(step) for step in plan[index:]]
    if coming and found.step_state not in (None, StepState.NEXT):
        coming[0] |= {
            "state": found.step_state,
            "attempt": found.step_attempt,
            "started_at": found.step_started_at,
            "duration": _seconds(found.step_started_at, clock.now()),
            "conductor": found.reservation,
        }
    asked_by = found.request.get("asked_by") or {} if present else {}
    flow = ended[-1].flow if ended else found.flow
    listed = [_render_attempt(attempt, plan) for attempt in ended] + coming
    _add_usual_durations(call, found, listed, flow or "", run_id)
    return {
        "node_uuid": found.uuid,
        "node_name": found.name,
        "run": run_id,
        "flow": flow,
        "provision_state": found.provision_state,
        "target_provision_state": found.target_provision_state,
        "last_error": found.last_error,
        **{name: getattr(ended[-1], name) if ended else asked_by.get(name) for name in _IDS},
        "steps": listed,
        "explanation": explanations.explain_now(call.db, call.conf, found) if present else None,
    }


def _add_usual_durations(call: Call, node: models.Node, listed: Sequence[Json], flow: str, run_id: str | None) -> None:
    """Add to the steps of a run what they usually take; the run itself does not count."""
    keys = [durations.Step(flow, step["interface"], step["step"]) for step in listed]
    past = durations.read_past(call.db, {key: [node.id] for key in keys}, without=run_id) if keys else None
    for step, key in zip(listed, keys, strict=True):
        usual = past and past.find(node, key)
        step["usual_duration"] = usual.seconds if usual else None


def _render_attempt(attempt: models.StepRun, plan: Sequence[Json]) -> Json:
    """Return an attempt that has ended. What ran it is known as long as its plan is."""
    planned = plan[attempt.step_index] if attempt.step_index < len(plan) else {}
    same = (planned.get("interface"), planned.get("step")) == (attempt.interface, attempt.step)
    return _render_step(
        {**vars(attempt), "runner": planned.get("runner") if same else None},
        duration=_seconds(attempt.started_at, attempt.finished_at),
        **{name: getattr(attempt, name) for name in _OF_ATTEMPT},
    )


def _render_step(step: Json, **attempt: object) -> Json:
    """Return a step of a timeline.

    :param attempt: what is known of its attempt; nothing of one that is still to come.
    """
    return {
        **{name: step.get(name) for name in ("interface", "step", "priority", "origin", "runner")},
        "args": masking.mask(step.get("args") or {}),
        "state": "planned",
        "attempt": 0,
        **dict.fromkeys(("started_at", "finished_at", "duration", "conductor", "error")),
        **attempt,
    }


def _seconds(started: datetime.datetime | None, finished: datetime.datetime) -> float | None:
    return None if started is None else round((finished - started).total_seconds(), 3)


@operation(answer=Answer(shows=Plain(fields.complete_schema(_RUN | _TIMELINE))))
def show_run(call: Call, run: str) -> Reply:
    """Show one run by its id, whatever the node: what lists of runs say of it, and its steps as in the timeline."""
    run_id = fields.parse_uuid("run", run)
    node = node_history.find_node_of_run(call.db, run_id)
    try:
        found = nodes.read(call, node, *_PRESENT)
    except errors.NotFound:  # a node of another project, which must not even be named
        raise errors.NotFound(noun="Run", ident=run_id) from None
    ended = node_history.list_attempts(call.db, found.id, run_id)
    if ended:
        begun = min(attempt.started_at for attempt in ended)
        whole = vars(ended[-1]) | {"started_at": begun, "steps": len({attempt.step_index for attempt in ended})}
        summary = _render_run(Run(**whole), running=run_id == found.run_id)
    else:
        summary = _render_new_run(found)
    return Reply(summary | _render_timeline(call, found, run_id, ended) | {"last_error": summary["last_error"]})


@operation(
    Param("limit", operations.parse_limit),
    Param("marker", fields.parse_uuid),
    answer=Answer(shows=Plain(fields.object_schema({**_RUNS, "next": fields.TEXT_SCHEMA}, _RUNS))),
)
def list_runs(call: Call, node: str) -> Reply:
    """List the runs of a node, the latest first."""
    found = nodes.read(call, node, *_PRESENT)
    limit = min(call.query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    marker = call.query.get("marker")
    ended = _list_ended(call, found, limit, marker)
    listed = [_render_run(run, running=run.run_id == found.run_id) for run in ended]
    if found.run_id is not None and marker is None and found.run_id not in (run.run_id for run in ended):
        listed = [_render_new_run(found), *listed][:limit]
    body: Json = {"runs": listed}
    if len(listed) == limit:
        query = urllib.parse.urlencode({"limit": limit, "marker": listed[-1]["run"]})
        body["next"] = f"{call.base}{call.path}?{query}"
    return Reply(body)


def _list_ended(call: Call, node: models.Node, limit: int, marker: str | None) -> list[Run]:
    try:
        return node_history.list_runs(call.db, node.id, limit, marker)
    except errors.NotFound:
        if marker != node.run_id:
            raise
        # No step of the marker's run has ended yet: all others are older.
        return node_history.list_runs(call.db, node.id, limit)


def _render_run(run: Run, running: bool) -> Json:
    return {
        "run": run.run_id,
        "flow": run.flow,
        "state": "running" if running else (run.state if run.state in _ENDS else "failed"),
        "started_at": run.started_at,
        "finished_at": None if running else run.finished_at,
        "duration": _seconds(run.started_at, clock.now() if running else run.finished_at),
        "steps": run.steps,
        "last_error": run.error,
        "conductor": run.conductor,
    }


def _render_new_run(node: models.Node) -> Json:
    """Return the run of a node's flow that has not ended a step yet."""
    row = {"run_id": node.run_id, "flow": node.flow, "started_at": node.step_started_at, "conductor": node.reservation}
    return _render_run(Run(**row, steps=0, error=None), running=True)
