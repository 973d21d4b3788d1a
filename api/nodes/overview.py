"""What the fleet needs and does: nodes that need attention by cause, the work under way, and counts.

Not part of the OpenStack API: it lives under /ingot/v1, where it cannot collide with it.
"""

from collections import Counter
from collections.abc import Mapping

from ingot.api.auth import access
from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import clock, masking
from ingot.common.json_types import Json
from ingot.common.triage import TITLES, Cause, Next
from ingot.db import models, node_lists, triage
from ingot.db.listing import Condition, Either
from ingot.db.triage import Finding, Progress

_COUNT = {"type": "integer"}
_COUNTS = {"type": "object", "additionalProperties": _COUNT}
_NODE = {**dict.fromkeys(("uuid", "provision_state"), fields.TEXT_SCHEMA), "name": fields.OPTIONAL_TEXT_SCHEMA}
_ACTION = fields.complete_schema({"kind": fields.TEXT_SCHEMA, "target": fields.OPTIONAL_TEXT_SCHEMA})
_NEED = {
    **dict.fromkeys(("since", "reason", "step", "by"), fields.OPTIONAL_TEXT_SCHEMA),
    "seconds": {"type": ["integer", "null"]},
    "next": fields.complete_schema({"text": fields.TEXT_SCHEMA, "action": {**_ACTION, "type": ["object", "null"]}}),
}
_GROUP = {
    "cause": {"enum": [str(cause) for cause in TITLES]},
    "title": fields.TEXT_SCHEMA,
    "count": _COUNT,
    "nodes": {"type": "array", "items": fields.complete_schema(_NODE | _NEED)},
}
_WORK = {
    **_NODE,
    **dict.fromkeys(("flow", "waits_for"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("run", "step", "started_at", "run_started_at", "basis", "eta"), fields.OPTIONAL_TEXT_SCHEMA),
    **dict.fromkeys(("index", "steps"), _COUNT),
    **dict.fromkeys(("expected_seconds", "progress"), fields.OPTIONAL_NUMBER_SCHEMA),
}
_OVERVIEW = {
    "at": fields.TEXT_SCHEMA,
    "stale_at": fields.OPTIONAL_TEXT_SCHEMA,
    "triage": {"type": "array", "items": fields.complete_schema(_GROUP)},
    "work": {"type": "array", "items": fields.complete_schema(_WORK)},
    "work_count": _COUNT,
    "counts": fields.complete_schema(
        {"total": _COUNT, **dict.fromkeys(("by_state", "by_conductor", "by_class"), _COUNTS)}
    ),
}
TRIAGE_SCHEMA: Json = {
    **fields.complete_schema({name: _GROUP[name] for name in ("cause", "title")} | _NEED),
    "type": ["object", "null"],
}
"""The form of :func:`render_need` with the cause."""


@operation(answer=Answer(shows=Plain(fields.complete_schema(_OVERVIEW))))
def index(call: Call) -> Reply:
    """Show what the nodes need that the request may see, the work under way, and how many nodes there are of what."""
    own = call.access.limit_to_project("ingot:overview")
    mine = [] if own is None else [access.NODE.condition(own)]
    seen = triage.read_overview(call.db, call.conf, mine)
    groups = [
        {
            "cause": cause,
            "title": title,
            "count": seen.counts[cause],
            "nodes": [_render_node(one.node) | render_need(call, one) for one in seen.found[cause]],
        }
        for cause, title in TITLES.items()
        if seen.counts.get(cause)
    ]
    return Reply(
        {
            "at": clock.now(),
            "stale_at": seen.stale_at,
            "triage": groups,
            "work": [_render_work(one) for one in seen.work if _sees_inside(call, one.node)],
            "work_count": seen.working,
            "counts": _count(call, mine),
        }
    )


def _sees_inside(call: Call, node: models.Node) -> bool:
    """Return whether the request may see what a node does: its runs, and who holds it."""
    return call.access.permits("ingot:node:timeline:get", access.build_node_target(node))


def _render_node(node: models.Node) -> Json:
    return {name: getattr(node, name) for name in _NODE}


def render_need(call: Call, found: Finding) -> Json:
    """Return what a node needs, as far as the request may see it."""
    inside = _sees_inside(call, found.node)
    return {
        "since": found.since,
        "seconds": None if found.since is None else int((clock.now() - found.since).total_seconds()),
        "reason": masking.mask_text(found.reason) if found.reason and inside else None,
        "step": found.step if inside else None,
        "by": found.by if inside else None,
        "next": _render_next(found.next, inside or found.cause not in _ADVISED),
    }


def render_triage(call: Call, found: Finding | None) -> Json | None:
    """Return what a node needs with the cause; None: nothing."""
    return found and {"cause": found.cause, "title": TITLES[found.cause], **render_need(call, found)}


_ADVISED = frozenset((Cause.UNRESPONSIVE, Cause.OVERDUE, Cause.WAITING))
"""Causes whose next actions have advice that names conductors and what they do."""

_ASK_OPERATORS = "If it lasts, ask the operators of this site."


def _render_next(after: Next, shows_text: bool) -> Json:
    text = after.text if shows_text else _ASK_OPERATORS
    return {"text": text, "action": after.action._asdict() if after.action else None}


def _render_work(one: Progress) -> Json:
    node = one.node
    return {
        **_render_node(node),
        "flow": node.flow,
        "run": node.run_id,
        "step": one.step,
        "index": one.position,
        "steps": one.steps,
        "waits_for": one.waits_for,
        "started_at": node.step_started_at,
        "run_started_at": one.began,
        "expected_seconds": one.usual.seconds if one.usual else None,
        "basis": one.basis,
        "progress": one.fraction,
        "eta": one.ends_at,
    }


def _count(call: Call, mine: list[Condition | Either]) -> Json:
    """Count nodes; what is in no class, or has no conductor now, is counted under an empty name."""
    places = node_lists.list_places(call.db, mine)
    owners = call.client.owners(places)
    counted: Mapping[str, Counter[str]] = {
        "by_state": Counter(node.provision_state for node in places),
        "by_conductor": Counter(owner or "" for owner in owners.values()),
        "by_class": Counter(node.resource_class or "" for node in places),
    }
    return {"total": len(places), **{name: dict(sorted(found.items())) for name, found in counted.items()}}
