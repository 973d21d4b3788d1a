"""Nodes that bodies and filters name: which there are, and what a request may do with them."""

from typing import Any

from ingot.api.auth import access
from ingot.api.web.call import Call
from ingot.common import errors
from ingot.db import listing, models, nodes

_NEEDED = ("id", "uuid", "owner", "lessee")


def referred(call: Call, given: str) -> models.Node:
    """The node (id, uuid, owner, lessee) that a filter or a field names.

    :raises NotFound: there is none, or none that the request may see.
    """
    found = nodes.get(call.db, given, _NEEDED)
    call.access.require_seen("baremetal:node:get", access.node_target(found), "Node", given)
    return found


def linked(call: Call, given: str, owner: str | None) -> models.Node:
    """The node that something of a project is attached to: it must be the same project's.

    :raises NotFound: there is none, none that the request may see, or it is another project's.
    """
    found = referred(call, given)
    if found.owner != owner:
        raise errors.NotFound(noun="Node", ident=given)
    return found


def holder(call: Call, field: str, given: str, moved: models.Record | None) -> int:
    """The id of the node that a port, portgroup or volume is to belong to.

    :param field: what names it, for the message.
    :param moved: what belongs to another one so far; None for a new one, for which the request's rule is asked.
    :raises Forbidden: the request may not give a new one to this node, or there is no such node and it may to none.
    :raises Invalid: there is none, or none that it may belong to; see :func:`linked`.
    """
    try:
        found = nodes.get(call.db, given, _NEEDED) if moved is None else linked(call, given, moved.node_owner)
    except errors.NotFound as exc:
        if moved is None:
            call.access.require(call.rule)  # who learns that there is no such node may know all nodes
        raise errors.Invalid(f"{field}: {exc.message}") from exc
    if moved is None:
        call.access.require(call.rule, access.node_target(found))
    return int(found.id)


def of_node(node_id: int) -> listing.Condition:
    """The condition for what belongs to a node."""
    return listing.Condition("node_id", "equals", node_id)


def named(call: Call) -> list[listing.Condition]:
    """What the filter ``node`` means for a list of what belongs to nodes.

    :raises NotFound: there is no such node, or none that the request may see.
    """
    return [of_node(referred(call, call.query["node"]).id)] if "node" in call.query else []


def prepared(call: Call, values: dict[str, Any], owned: models.Node | None) -> dict[str, Any]:
    """The columns of what belongs to a node: the node's uuid becomes its id.

    Taking the node away is accepted and changes nothing: what belongs to a node always has one.

    :param owned: as it is; None for a new one.
    :raises Invalid: a new one names no node, or the node is none that it may belong to.
    """
    row = {name: value for name, value in values.items() if name != "node_uuid"}
    if values.get("node_uuid"):
        row["node_id"] = holder(call, "node_uuid", values["node_uuid"], owned)
    elif owned is None:
        raise errors.Invalid("Schema error: 'node_uuid' is a required property. Send the UUID of a node.")
    return row
