"""One verb on many nodes: each node is asked exactly what the single request would ask it, with a result of its own.

Nothing is decided here. The handler of the single request is called for each node, with the same checked body, the same
rule of policy and the same errors; a dry run goes the same way up to the statement that would accept the work. So the
cost is that of the single requests, without their HTTP, and two statements at most to find the nodes.

Not part of the OpenStack API: it lives under /ingot/v1, where it cannot collide with it.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping

from werkzeug.datastructures import MultiDict

from ingot.api.auth import access
from ingot.api.nodes import fleet, fleet_filter, maintenance, node_states, nodes, provision
from ingot.api.web import collection, faults, fields, operations
from ingot.api.web.audit_trail import Subject
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Operation, Plain, operation
from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import listing, node_lists

ACTIONS: Mapping[str, Operation] = {
    "provision": provision.set_provision._replace(rule="baremetal:node:set_provision_state"),
    "power": node_states.set_power._replace(rule="baremetal:node:set_power_state"),
    "set_maintenance": maintenance.set_flag._replace(rule="baremetal:node:set_maintenance"),
    "clear_maintenance": maintenance.clear_flag._replace(rule="baremetal:node:clear_maintenance"),
}
"""What can be done to many nodes: the operations that do it to one, with the rules of their routes."""

_FILTERS = {param.name: param for param in nodes.FILTERS}

_IDENTS = {"type": "array", "items": {"type": "string", "maxLength": 255}, "minItems": 1}
_FILTER = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [{"type": ["string", "boolean"]}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    },
}
_MATCHING = {"type": "string", "minLength": 1}
_RESULT = {
    "node": fields.TEXT_SCHEMA,
    **dict.fromkeys(("name", "reason"), fields.OPTIONAL_TEXT_SCHEMA),
    "accepted": fields.FLAG_SCHEMA,
    "status": {"type": "integer"},
}
_ANSWER = {
    "action": {"enum": list(ACTIONS)},
    "dry_run": fields.FLAG_SCHEMA,
    **{name: {"type": "integer"} for name in ("accepted", "refused")},
    "results": {"type": "array", "items": fields.complete_schema(_RESULT)},
}

_BODY = fields.Body(
    "bulk request",
    Field("action", type=fields.FieldType({"enum": list(ACTIONS)}), required=True),
    Field("body", type=fields.FieldType({"type": ["object", "null"]})),
    Field("nodes", type=fields.FieldType(_IDENTS)),
    Field("filter", type=fields.FieldType(_FILTER)),
    Field("matching", type=fields.FieldType(_MATCHING, fleet_filter.parse)),
    Field("dry_run", type=fields.FLAG),
)


@operation(body=_BODY, answer=Answer(shows=Plain(fields.complete_schema(_ANSWER))))
def create(call: Call) -> Reply:
    name, given, dry_run = call.body["action"], call.body.get("body"), bool(call.body.get("dry_run"))
    action = ACTIONS[name]
    if given and action.body is None:
        raise errors.Invalid(field="body", value=given, allowed=f"{name} takes none: leave it out.")
    body = action.body.check(given, call.minor) if action.body else None
    meant = [find for name, find in _FINDERS.items() if name in call.body]
    if len(meant) != 1:
        ways = "nodes (a list of UUIDs or names), filter (as lists of nodes have it), matching (a filter of the fleet)"
        raise errors.Invalid(f"Say which nodes are meant: send one of {ways}.")
    found = meant[0](call)
    single = dataclasses.replace(call, body=body, query={}, rule=action.rule, preconditions=None, dry_run=dry_run)
    until = time.monotonic() + call.conf.api.bulk_timeout
    results = [{"node": ident, "name": named, **_run(action, single, ident, until)} for ident, named in found.items()]
    accepted = sum(result["accepted"] for result in results)
    counts = {"accepted": accepted, "refused": len(results) - accepted}
    return Reply({"action": name, "dry_run": dry_run, **counts, "results": results})


def _run(action: Operation, call: Call, node: str, until: float) -> Json:
    own = dataclasses.replace(call, subject=Subject(node))
    try:
        if time.monotonic() > until:
            late = f"{call.conf.api.bulk_timeout} seconds were over before this node"
            raise errors.ServiceUnavailable(what="This request's time", reason=late)
        status = action.handler(own, node=node).status
    except Exception as exc:  # noqa: BLE001 - the edge of the request to one node: the others go on
        error = faults.build_error(exc)
        _note(call, action, own, error.code, error.message)
        return {"accepted": False, "status": error.code, "reason": error.message}
    _note(call, action, own, status)
    return {"accepted": True, "status": status, "reason": None}


def _note(call: Call, action: Operation, own: Call, status: int, reason: str | None = None) -> None:
    """Note what has become of one node, for the audit trail; a dry run is one event, as nothing has."""
    if call.subject is not None and own.subject is not None and not call.dry_run:
        own.subject.note_body(call.body)
        own.subject.reason = reason
        call.subject.parts.append((action.rule, own.subject, status))


def _find_named(call: Call) -> dict[str, str | None]:
    """Return the names of the nodes that the request lists by UUID or name, by UUID; each node once.

    An identifier of no node that the request may see stands for itself: its result says what is wrong with it.
    """
    given = call.body["nodes"]
    _check_size(call, len(given), "nodes")
    known: dict[str | None, tuple[str, str | None]] = {}
    for node in node_lists.find_named(call.db, given):
        if call.access.permits("baremetal:node:get", access.build_node_target(node)):
            known |= dict.fromkeys((node.uuid, node.name), (node.uuid, node.name))
    return dict(known.get(ident, (ident, None)) for ident in given)


def _find_filtered(call: Call) -> dict[str, str | None]:
    """Return the same for the nodes that a list with the request's filters would show."""
    given: Json = call.body["filter"]
    texts = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in given.items()}
    listed = dataclasses.replace(call, query=operations.read_query(_FILTERS, MultiDict(texts), call.minor))
    where: list[listing.Condition | listing.Either] = [
        *nodes.build_conditions(listed),
        *operations.build_conditions(nodes.FILTERS, listed.query),
        *collection.build_ownership_conditions(listed, nodes.NODES, listed.query.get("project")),
    ]
    page = listing.Page(where=where, limit=call.conf.api.max_bulk_nodes + 1)
    found = listing.page(call.db, node_lists.SOURCE, ("uuid", "name"), page)
    _check_size(call, len(found), "filter")
    return {node.uuid: node.name for node in found}


def _find_matching(call: Call) -> dict[str, str | None]:
    """Return the same for the nodes that the fleet shows for a filter of a person."""
    asked: fleet_filter.Filter = call.body["matching"]
    if not (asked.terms or asked.owners):
        raise errors.Invalid(field="matching", value="", allowed="Send at least one term: uuid:* is all nodes.")
    found = fleet.find_matching(call, asked, call.conf.api.max_bulk_nodes + 1)
    _check_size(call, len(found), "matching")
    return {node.uuid: node.name for node in found}


_FINDERS: Mapping[str, Callable[[Call], dict[str, str | None]]] = {
    "nodes": _find_named,
    "filter": _find_filtered,
    "matching": _find_matching,
}
"""By the key of the body that says which nodes are meant."""


def _check_size(call: Call, count: int, field: str) -> None:
    most = call.conf.api.max_bulk_nodes
    if count > most:
        value = f"{count} nodes" if field == "nodes" else f"more than {most} nodes"
        allowed = f"One request asks {most} at most ([api] max_bulk_nodes): send several."
        raise errors.Invalid(field=field, value=value, allowed=allowed)
