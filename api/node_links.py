"""Nodes that bodies and filters name: which there are, and what a request may do with them."""

from ingot.api.call import Call
from ingot.api.policy import access
from ingot.common import errors
from ingot.db import nodes, records

_NEEDED = ("id", "uuid", "owner", "lessee")


def referred(call: Call, given: str) -> records.Record:
    """The node (id, uuid, owner, lessee) that a filter or a field names.

    :raises NotFound: there is none, or none that the request may see.
    """
    found = nodes.get(call.db, given, _NEEDED)
    call.access.require_seen("baremetal:node:get", access.of_node(found), "Node", given)
    return found


def linked(call: Call, given: str, owner: str | None) -> records.Record:
    """The node that something of a project is attached to: it must be the same project's.

    :raises NotFound: there is none, none that the request may see, or it is another project's.
    """
    found = referred(call, given)
    if found.owner != owner:
        raise errors.NotFound(noun="Node", ident=given)
    return found


def holder(call: Call, given: str, moved: records.Record | None) -> records.Record:
    """The node that a port, portgroup or volume is to belong to.

    :param moved: what belongs to another one so far; None for a new one, for which the request's rule is asked.
    :raises Forbidden: the request may not give a new one to this node, or there is no such node and it may to none.
    :raises NotFound: as in :func:`linked`.
    """
    if moved is not None:
        return linked(call, given, moved.node_owner)
    try:
        found = nodes.get(call.db, given, _NEEDED)
    except errors.NotFound:
        call.access.require(call.rule)  # who learns of 404 may know all nodes
        raise
    call.access.require(call.rule, access.of_node(found))
    return found
