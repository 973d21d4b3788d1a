"""Nodes that bodies and filters name: which there are, and what a request may do with them."""

from ingot.api.auth import access
from ingot.api.web.call import Call
from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import listing, models, nodes

_NEEDED = ("id", "uuid", "owner", "lessee")


def find_node(call: Call, given: str, *columns: str) -> models.Node:
    """Return the node (id, uuid, owner, lessee) that a filter or a field names.

    :param columns: further ones.
    :raises NotFound: there is none, or none that the request may see.
    """
    found = nodes.get(call.db, given, (*_NEEDED, *columns))
    call.access.require_seen("baremetal:node:get", access.build_node_target(found), "Node", given)
    return found


def find_node_of_project(call: Call, given: str, owner: str | None) -> models.Node:
    """Return the node that something of a project is attached to: it must be the same project's.

    :raises NotFound: there is none, none that the request may see, or it is another project's.
    """
    found = find_node(call, given)
    if found.owner != owner:
        raise errors.NotFound(noun="Node", ident=given)
    return found


def read_node_id(call: Call, field: str, given: str, moved: nodes.OfNode | None) -> int:
    """Return the id of the node that a port, portgroup or volume is to belong to.

    :param field: what names it, for the message.
    :param moved: what belongs to another one so far; None for a new one, for which the request's rule is asked.
    :raises Forbidden: the request may not give a new one to this node, or there is no such node and it may to none.
    :raises Invalid: there is none, or none that it may belong to; see :func:`find_node_of_project`.
    """
    try:
        found = find_node_of_project(call, given, moved.node_owner) if moved else nodes.get(call.db, given, _NEEDED)
    except errors.NotFound as exc:
        if moved is None:
            call.access.require(call.rule)  # only a user who may know all nodes learns that this one does not exist
        raise errors.Invalid(f"{field}: {exc.message}") from exc
    if moved is None:
        call.access.require(call.rule, access.build_node_target(found))
    return found.id


def node_condition(node_id: int) -> listing.Condition:
    """Return the condition for what belongs to a node."""
    return listing.Condition("node_id", "equals", node_id)


def build_node_filter(call: Call) -> list[listing.Condition]:
    """Return what the filter ``node`` means for a list of what belongs to nodes.

    :raises NotFound: there is no such node, or none that the request may see.
    """
    return [node_condition(find_node(call, call.query["node"]).id)] if "node" in call.query else []


def replace_node_uuid(call: Call, values: Json, owned: nodes.OfNode | None) -> Json:
    """Return the columns of what belongs to a node: the node's uuid becomes its id.

    Taking the node away is accepted and changes nothing: what belongs to a node always has one.

    :param owned: as it is; None for a new one.
    :raises Invalid: a new one names no node, or the node is none that it may belong to.
    """
    row = {name: value for name, value in values.items() if name != "node_uuid"}
    if values.get("node_uuid"):
        row["node_id"] = read_node_id(call, "node_uuid", values["node_uuid"], owned)
    elif owned is None:
        raise errors.Invalid("Schema error: 'node_uuid' is a required property. Send the UUID of a node.")
    return row
