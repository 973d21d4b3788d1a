"""The child nodes of a node, and the steps that its requests send to them: which children are meant."""

from typing import Any

from ingot.api.auth import access
from ingot.api.nodes import nodes as api_nodes
from ingot.api.web import collection, fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import errors
from ingot.db import listing, models, node_lists

_ON_CHILDREN = "execute_on_child_nodes"
_LIMIT = "limit_child_node_execution"

_LISTED = fields.complete_schema(
    {
        "children": {"type": "array", "items": {"type": "string", "format": "uuid"}},
        "links": fields.complete_schema({"href": fields.TEXT_SCHEMA, "rel": fields.TEXT_SCHEMA}),
    }
)


@operation(answer=Answer(shows=Plain(_LISTED)))
def index(call: Call, node: str) -> Reply:
    """The uuids of the children, and where more is told about them."""
    parent = api_nodes.read(call, node, "uuid").uuid
    where = [
        listing.Condition("parent_node", "equals", parent),
        *collection.ownership_conditions(call, api_nodes.NODES),
    ]
    found = listing.page(call.db, node_lists.SOURCE, ("uuid",), listing.Page(where=where))
    link = {"href": f"{call.base}/v1/nodes?parent_node={parent}", "rel": "children"}
    return Reply({"children": [child.uuid for child in found], "links": link})


def resolved(call: Call, node: models.Node, name: str, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps with the uuids of the children that each is limited to; one statement if any step is limited.

    A step without a limit, or with an empty one, is for all children: all must be such that the request may ask this of
    them. A child of which it may not is unknown as a limit.

    :param node: the parent; needs uuid.
    :param name: the list in messages: clean_steps, service_steps.
    :raises Invalid: a step is limited to something that is not a child of the node, or is not for children at all.
    :raises Forbidden: a step is for all children, and the request may not ask this of one of them.
    """
    for_all = call.access.limited and any(step.get(_ON_CHILDREN) and not step.get(_LIMIT) for step in steps)
    if not for_all and not any(_LIMIT in step for step in steps):
        return steps
    children = node_lists.list_children(call.db, node.uuid)
    if for_all:
        for child in children:
            call.access.require(call.rule, access.node_target(child))
    own = [child for child in children if call.access.permits(call.rule, access.node_target(child))]
    known = {ident: child.uuid for child in own for ident in (child.uuid, child.name)}
    return [_limited(node, f"{name}.{index}.{_LIMIT}", step, known) for index, step in enumerate(steps)]


def _limited(node: models.Node, field: str, step: dict[str, Any], known: dict[str, str]) -> dict[str, Any]:
    limit = step.get(_LIMIT)
    rest = {key: value for key, value in step.items() if key != _LIMIT}
    if not limit:
        return rest
    if not step.get(_ON_CHILDREN):
        raise errors.Invalid(field=field, value=limit, allowed=f"It needs {_ON_CHILDREN} true in the same step.")
    strangers = [ident for ident in limit if ident not in known]
    if strangers:
        names = ", ".join(sorted(ident for ident in known if ident)) or "none"
        raise errors.Invalid(
            field=field, value=", ".join(strangers), allowed=f"Node {node.uuid} is the parent of: {names}."
        )
    return {**rest, _LIMIT: list(dict.fromkeys(known[ident] for ident in limit))}
