"""One verb on many nodes: each node is asked exactly what the single request would ask it, and answers for itself.

Nothing is decided here. The handler of the single request is called for each node, with the same checked body, the same
rule of policy and the same errors; a dry run goes the same way up to the statement that would accept the work. So the
cost is that of the single requests, without their HTTP, and two statements at most to find the nodes.

Not part of the OpenStack API: it lives under /ingot/v1, where it cannot collide with it.
"""

import dataclasses
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from werkzeug.datastructures import MultiDict

from ingot.api.auth import access
from ingot.api.nodes import maintenance, node_states, nodes, provision
from ingot.api.web import collection, faults, fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Operation, Plain, operation
from ingot.common import errors
from ingot.db import listing, models, node_lists


class _Action(NamedTuple):
    """What can be done to many nodes.

    :param single: the operation that does it to one node.
    :param rule: the rule of policy of that operation's route, asked for each node.
    """

    single: Operation
    rule: str


ACTIONS: Mapping[str, _Action] = {
    "provision": _Action(provision.set_provision, "baremetal:node:set_provision_state"),
    "power": _Action(node_states.set_power, "baremetal:node:set_power_state"),
    "set_maintenance": _Action(maintenance.set_flag, "baremetal:node:set_maintenance"),
    "clear_maintenance": _Action(maintenance.clear_flag, "baremetal:node:clear_maintenance"),
}

_FILTERS = {param.name: param for param in nodes.FILTERS}

_IDENTS = {"type": "array", "items": {"type": "string", "maxLength": 255}, "minItems": 1}
_FILTER = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {
        "anyOf": [{"type": ["string", "boolean"]}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    },
}
_RESULT = {
    "node": {"type": "string"},
    "name": {"type": ["string", "null"]},
    "accepted": {"type": "boolean"},
    "status": {"type": "integer"},
    "reason": {"type": ["string", "null"]},
}
_ANSWER = {
    "type": "object",
    "properties": {
        "action": {"enum": list(ACTIONS)},
        "dry_run": {"type": "boolean"},
        "accepted": {"type": "integer"},
        "refused": {"type": "integer"},
        "results": {"type": "array", "items": {"type": "object", "properties": _RESULT, "required": list(_RESULT)}},
    },
    "required": ["action", "dry_run", "accepted", "refused", "results"],
}


@operation(
    body=fields.Body(
        "bulk request",
        (
            Field("action", type=fields.FieldType({"enum": list(ACTIONS)}), required=True),
            Field("body", type=fields.FieldType({"type": ["object", "null"]})),
            Field("nodes", type=fields.FieldType(_IDENTS)),
            Field("filter", type=fields.FieldType(_FILTER)),
            Field("dry_run", type=fields.FLAG),
        ),
    ),
    answer=Answer(shows=Plain(_ANSWER)),
)
def create(call: Call) -> Reply:
    action = ACTIONS[call.body["action"]]
    dry_run = bool(call.body.get("dry_run"))
    body = _body(call, action.single)
    if ("nodes" in call.body) == ("filter" in call.body):
        raise errors.Invalid("Say which nodes are meant: send either nodes (a list of UUIDs or names) or filter.")
    found = _named(call) if "nodes" in call.body else _filtered(call, call.body["filter"])
    single = dataclasses.replace(call, body=body, query={}, rule=action.rule, preconditions=None, dry_run=dry_run)
    until = time.monotonic() + call.conf.api.bulk_timeout
    results = [_ask(action.single, single, ident, name, until) for ident, name in found.items()]
    accepted = sum(result["accepted"] for result in results)
    told = {"action": call.body["action"], "dry_run": dry_run}
    return Reply({**told, "accepted": accepted, "refused": len(results) - accepted, "results": results})


def _body(call: Call, single: Operation) -> Any:
    given = call.body.get("body")
    if single.body is not None:
        return single.body.check(given, call.minor)
    if given:
        raise errors.Invalid(field="body", value=given, allowed=f"{call.body['action']} takes none: leave it out.")
    return None


def _ask(single: Operation, call: Call, ident: str, name: str | None, until: float) -> dict[str, Any]:
    try:
        if time.monotonic() > until:
            raise errors.ServiceUnavailable(
                what="This request's time", reason=f"{call.conf.api.bulk_timeout} seconds were over before this node"
            )
        status = single.handler(call, node=ident).status
    except Exception as exc:  # noqa: BLE001 - the edge of the request to one node: the others have been asked, or will be
        error = faults.build_error(exc)
        return {"node": ident, "name": name, "accepted": False, "status": error.code, "reason": error.message}
    return {"node": ident, "name": name, "accepted": True, "status": status, "reason": None}


def _named(call: Call) -> dict[str, str | None]:
    """The names of the nodes meant by the UUIDs and names in the request, by UUID; each node once.

    What nothing is called that the request may see stands for itself: asking it says what is wrong with it.
    """
    given = call.body["nodes"]
    _check_size(call, len(given), "nodes")
    known: dict[str | None, models.Record] = {}
    for node in node_lists.find_named(call.db, given):
        if call.access.permits("baremetal:node:get", access.node_target(node)):
            known |= {node.uuid: node, node.name: node}
    return {known[ident].uuid if ident in known else ident: getattr(known.get(ident), "name", None) for ident in given}


def _filtered(call: Call, given: Mapping[str, Any]) -> dict[str, str | None]:
    """The same for the nodes that a list with these filters would show."""
    texts = {name: ",".join(value) if isinstance(value, list) else str(value) for name, value in given.items()}
    listed = dataclasses.replace(call, query=operations.read_query(_FILTERS, MultiDict(texts), call.minor))
    where: list[listing.Condition | listing.Either] = [
        *nodes.beside_filters(listed),
        *operations.build_conditions(nodes.FILTERS, listed.query),
        *collection.ownership_conditions(listed, nodes.NODES, listed.query.get("project")),
    ]
    most = call.conf.api.max_bulk_nodes
    found = listing.page(call.db, node_lists.SOURCE, ("uuid", "name"), listing.Page(where=where, limit=most + 1))
    _check_size(call, len(found), "filter")
    return {node.uuid: node.name for node in found}


def _check_size(call: Call, count: int, field: str) -> None:
    most = call.conf.api.max_bulk_nodes
    if count > most:
        named = f"{count} nodes" if field == "nodes" else f"more than {most} nodes"
        raise errors.Invalid(
            field=field, value=named, allowed=f"One request asks {most} at most ([api] max_bulk_nodes): send several."
        )
