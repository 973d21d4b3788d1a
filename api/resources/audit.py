"""The audit trail by query: who has changed what, newest first. Users of a project see what was done to its nodes."""

import datetime
import urllib.parse

from ingot.api.web import audit_trail, fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.db import audit

_COLUMNS = {
    "user": "user_id",
    "project": "project_id",
    "target": "target_id",
    "target_type": "target_type",
    "action": "action",
    "request_id": "request_id",
}
"""Filters, and what they are compared with."""

_OUTCOMES = ("success", "pending", "failure")
_PARTIES = ("id", "name", "project_id", "project_name", "address")
_EVENT = {
    **dict.fromkeys(("id", "event_time", "action", "request_id"), fields.TEXT_SCHEMA),
    "outcome": {"enum": list(_OUTCOMES)},
    "reason": fields.complete_schema({"code": {"type": "integer"}, "message": fields.OPTIONAL_TEXT_SCHEMA}),
    "initiator": fields.complete_schema(dict.fromkeys(_PARTIES, fields.OPTIONAL_TEXT_SCHEMA)),
    "target": fields.complete_schema(dict.fromkeys(("type", "id", "name"), fields.OPTIONAL_TEXT_SCHEMA)),
    "request": {
        "type": "object",
        "properties": {"fields": {"type": "array", "items": fields.TEXT_SCHEMA}},
        "additionalProperties": fields.TEXT_SCHEMA,
    },
    "global_request_id": fields.OPTIONAL_TEXT_SCHEMA,
}
_PAGE = {
    "type": "object",
    "properties": {
        "events": {"type": "array", "items": fields.complete_schema(_EVENT)},
        "next": fields.TEXT_SCHEMA,
    },
    "required": ["events"],
    "additionalProperties": False,
}


def _parse_moment(name: str, given: str) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(given.replace(" ", "+"))  # a plus that a client has not escaped
        return moment.astimezone(datetime.UTC).replace(tzinfo=None) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        allowed = "Send a moment of ISO 8601, such as 2026-01-31T12:00:00Z; without a zone it is UTC."
        raise errors.Invalid(field=name, value=given, allowed=allowed) from None


@operation(
    *(Param(name, fields.parse_text) for name in _COLUMNS),
    Param("outcome", operations.build_choice(_OUTCOMES)),
    Param("since", _parse_moment),
    Param("until", _parse_moment),
    Param("limit", operations.parse_limit),
    Param("marker", fields.parse_uuid),
    answer=Answer(shows=Plain(_PAGE)),
)
def index(call: Call) -> Reply:
    """List events that meet all filters, newest first."""
    project = call.access.limit_to_project("ingot:audit")
    query = call.query
    limit = min(query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    equal = {column: query[name] for name, column in _COLUMNS.items() if name in query}
    if "outcome" in query:
        equal["outcome"] = query["outcome"]
    span = query.get("since"), query.get("until")
    found = audit.read_page(call.db, equal, project, span, query.get("marker"), limit)
    body: dict[str, object] = {"events": [audit_trail.render(vars(event)) for event in found]}
    if len(found) == limit:
        asked = {
            name: value.isoformat() if isinstance(value, datetime.datetime) else str(value)
            for name, value in query.items()
        }
        onward = urllib.parse.urlencode({**asked, "limit": limit, "marker": found[-1].uuid})
        body["next"] = f"{call.base}{call.path}?{onward}"
    return Reply(body)
