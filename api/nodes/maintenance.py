"""The maintenance of a node: the flag of the OpenStack API, and under /ingot/v1 the holds that it stands for."""

from ingot.api.nodes import nodes
from ingot.api.web import call as calls
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import errors
from ingot.common.json_types import Hold
from ingot.db import maintenance
from ingot.db import nodes as rows

_SHOWN = fields.complete_schema(
    {
        "name": fields.TEXT_SCHEMA,
        "scope": {"enum": list(maintenance.SCOPES)},
        **dict.fromkeys(("reason", "since", "user", "project", "fault", "conductor"), fields.OPTIONAL_TEXT_SCHEMA),
    }
)
_REASON = Field("reason", type=fields.LONG_TEXT)


@operation(answer=Answer(shows=Plain(fields.list_schema("holds", _SHOWN))))
def index(call: Call, node: str) -> Reply:
    """List the holds of a node; what was set last is last."""
    return Reply({"holds": maintenance.read_holds(nodes.read(call, node, *maintenance.FLAG))})


@operation(answer=Answer(shows=Plain(_SHOWN)))
def show(call: Call, node: str, hold: str) -> Reply:
    return Reply(_find_hold(call, node, hold))


@operation(
    body=fields.Body("hold", Field("scope", type=fields.FieldType({"enum": list(maintenance.SCOPES)})), _REASON),
    answer=operations.EMPTY_204,
)
def put(call: Call, node: str, hold: str) -> Reply:
    """Set a hold, with the same effect however often it is sent: the client chooses the name."""
    name, scope = fields.parse_name("hold", hold), call.body.get("scope", maintenance.ALL)
    added = maintenance.user_hold(call.ctx, call.body.get("reason"), name, scope)
    _write(call, node, lambda found: maintenance.add_hold(found, added))
    return calls.NO_CONTENT


@operation(answer=operations.EMPTY_204)
def delete(call: Call, node: str, hold: str) -> Reply:
    _find_hold(call, node, hold)
    _write(call, node, lambda found: maintenance.remove_holds(found, lambda one: one["name"] == hold))
    return calls.NO_CONTENT


@operation(body=fields.Body("maintenance request", _REASON), answer=operations.EMPTY_202)
def set_flag(call: Call, node: str) -> Reply:
    _write(call, node, lambda found: maintenance.set_flag(found, call.ctx, True, call.body.get("reason")))
    return Reply(None, 202)


@operation(answer=operations.EMPTY_202)
def clear_flag(call: Call, node: str) -> Reply:
    _write(call, node, lambda found: maintenance.set_flag(found, call.ctx, False))
    return Reply(None, 202)


@calls.repeat_if_changed
def _write(call: Call, node: str, change: maintenance.Change) -> None:
    found = nodes.read(call, node, "uuid", "revision")
    if call.dry_run:
        return
    with call.notifier.change(call.ctx, "node", "maintenance_set", found) as tell:
        maintenance.write_holds(call.db, found.uuid, change, found.revision if call.preconditions else None)
        if call.notifier.is_on:
            tell(rows.get(call.db, found.uuid, call.notifier.node_columns))


def _find_hold(call: Call, node: str, name: str) -> Hold:
    """Return a hold by name.

    :raises NotFound: the node has none of that name.
    """
    for hold in maintenance.read_holds(nodes.read(call, node, *maintenance.FLAG)):
        if hold["name"] == name:
            return hold
    raise errors.NotFound(noun="Hold", ident=name)
