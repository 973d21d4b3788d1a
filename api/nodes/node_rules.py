"""What must hold when a node is created, edited or deleted, beyond the form of single fields."""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from ingot.api.auth import access
from ingot.api.nodes import composition, node_links
from ingot.api.nodes.node_fields import TABLE
from ingot.api.web import fields
from ingot.api.web.call import Call
from ingot.common import errors, interfaces, states
from ingot.common.json_types import Json
from ingot.db import listing, maintenance, models, node_crud

RESERVED_NAMES = ("detail", "maintenance", "management", "states", "validate", "vendor_passthru")
"""They would hide behind URLs of other meaning."""

_HOSTNAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.ASCII | re.IGNORECASE)

NEEDED_TO_UPDATE = (
    *TABLE.patchable,
    *("uuid", "revision", "provision_state", "reservation", "lock_purpose", "locked_at", "flow"),
    *maintenance.FLAG,
)
NEEDED_TO_DELETE = (
    *("uuid", "revision", "provision_state", "maintenance", "maintenance_reason", "instance_uuid"),
    *("protected", "protected_reason", "flow", "parent_node"),
)

_AT_REST = frozenset((states.ENROLL, states.MANAGEABLE, states.INSPECTWAIT, states.AVAILABLE))
_COMPOSITION = frozenset(("driver", "conductor_group", *interfaces.FIELDS))
_FIXED_IN_FLOWS = _COMPOSITION | {"driver_info", "parent_node"}
"""What must not change while steps run on the machine."""


class _Limit(NamedTuple):
    """When a field can be changed, if not in all states in which a node can.

    :param allowed: the states.
    :param in_maintenance: whether it can be changed in maintenance, whatever the state.
    :param removable: whether it can be taken away in any state.
    """

    allowed: frozenset[str]
    in_maintenance: bool = False
    removable: bool = False


# Measured contract.
_LIMITS: Mapping[str, _Limit] = {
    **dict.fromkeys(interfaces.FIELDS, _Limit(_AT_REST, in_maintenance=True)),
    "resource_class": _Limit(_AT_REST),
    "protected": _Limit(frozenset((states.ACTIVE, states.RESCUE)), removable=True),
    "retired": _Limit(states.UPDATE_ALLOWED - {states.AVAILABLE}, removable=True),
}


def build_row(call: Call, values: Json) -> Json:
    """Return the row of a new node.

    :param values: values of all fields that a client can write.
    :raises Invalid: they do not go together.
    """
    row = {name: value for name, value in values.items() if name not in ("chassis_uuid", *interfaces.FIELDS)}
    _check_name(call, row["name"])
    given = {name: values[name] for name in interfaces.FIELDS}
    row |= composition.compose(call, row["driver"], row["conductor_group"], {}, given)
    if row["maintenance"]:
        row |= maintenance.hold_columns([maintenance.user_hold(call.ctx, None)])
    row |= _resolve_references(call, values, values["owner"])
    return row | {"resource_class": values["resource_class"] or None} | _derive_instance_name(values)


def build_changes(call: Call, node: models.Node, changes: Json) -> Json:
    """Return the columns to write for what a patch changes.

    :raises Invalid: they do not go together.
    """
    _check_name(call, changes.get("name"))
    row = {name: value for name, value in changes.items() if name != "chassis_uuid"}
    reset = bool(call.query.get("reset_interfaces"))
    if reset and not any(operation["path"] == "/driver" for operation in call.body):
        raise errors.Invalid("The reset_interfaces parameter can only be used when changing the driver: patch /driver.")
    if reset or not _COMPOSITION.isdisjoint(changes):
        row |= _compose(call, node, changes, reset)
    row |= _clear_reasons(node, changes)
    if any(operation["path"] == "/network_data" and operation.get("value") == {} for operation in call.body):
        hint = "Send links and networks, or remove /network_data."  # measured: only a new node may have an empty one
        raise errors.Invalid(field="network_data", value={}, allowed=hint)
    if "maintenance" in changes:
        row |= maintenance.set_flag(node, call.ctx, changes["maintenance"])
    row |= _resolve_references(call, changes, node.owner)
    if row.get("parent_node") == node.uuid:
        allowed = "A node cannot be its own parent: name another."
        raise errors.Invalid(field="parent_node", value=changes["parent_node"], allowed=allowed)
    if "resource_class" in changes:
        row["resource_class"] = changes["resource_class"] or None
    return row | _derive_instance_name({**vars(node), **changes})


def _compose(call: Call, node: models.Node, changes: Json, reset: bool) -> composition.Interfaces:
    """Return the interfaces that the whole patch leads to; single operations of it may be incompatible."""
    patched = {operation["path"].split("/")[1] for operation in call.body}
    given = {name: changes.get(name, getattr(node, name)) for name in interfaces.FIELDS if name in patched}
    kept = {} if reset else {name: getattr(node, name) for name in interfaces.FIELDS}
    driver, group = changes.get("driver", node.driver), changes.get("conductor_group", node.conductor_group)
    return composition.compose(call, driver, group, kept, given)


def _check_name(call: Call, name: str | None) -> None:
    if name in RESERVED_NAMES:
        allowed = f"These words are reserved: {', '.join(RESERVED_NAMES)}."
        raise fields.InvalidName(field="name", value=name, allowed=allowed)
    if name is not None and call.minor < 10 and not _HOSTNAME.fullmatch(name):
        raise fields.InvalidName(field="name", value=name, allowed="Before version 1.10 a name is a host name.")


def _resolve_references(call: Call, values: Json, owner: str | None) -> Json:
    """Return the columns of fields that name other objects.

    :param owner: that of the node; its parent must have the same.
    """
    row: Json = {}
    field = "chassis_uuid"
    try:
        if field in values:
            chassis = values[field]
            row["chassis_id"] = listing.get(call.db, node_crud.CHASSIS.source, chassis).id if chassis else None
        field = "parent_node"
        if field in values:
            parent = values[field]
            row[field] = node_links.find_node_of_project(call, parent, owner).uuid if parent else None
    except errors.NotFound as exc:
        raise errors.Invalid(f"{field}: {exc.message}") from exc
    return row


def _derive_instance_name(values: Json) -> Json:
    name = values["instance_info"].get("display_name")
    given = isinstance(name, str) and 0 < len(name) < 256 and not values["instance_name"]
    return {"instance_name": name} if given else {}


def _clear_reasons(node: models.Node, changes: Json) -> Json:
    """Return the reasons of the flags that a patch takes away, cleared.

    :raises Invalid: it gives a reason for a flag that is not set.
    """
    for flag in ("protected", "retired"):
        reason = f"{flag}_reason"
        if changes.get(reason) is not None and not changes.get(flag, getattr(node, flag)):
            hint = f"set {flag} in the same patch."
            raise errors.Invalid(f"The {reason} field can only be set when {flag} is True: {hint}")
    return {f"{flag}_reason": None for flag in ("protected", "retired") if changes.get(flag) is False}


def refuse_unpermitted(call: Call, node: models.Node, changes: Json) -> None:
    """Check the rules of policy for changes that are special by their value or by the node's state.

    :raises Forbidden: the request may not switch cleaning off.
    :raises Conflict: the node is in use, and the request may not give it to another owner now.
    """
    target = access.build_node_target(node)
    if changes.get("automated_clean") is False:
        call.access.require("baremetal:node:disable_cleaning", target)
    moved = "owner" in changes and node.provision_state == states.ACTIVE
    if moved and not call.access.permits("baremetal:node:update_owner_provisioned", target):
        raise errors.Conflict(
            reason=f"Cannot update owner of node {node.uuid} while it is in state {node.provision_state}: undeploy it "
            "first, or have an administrator of the system do it."
        )


def refuse_update(node: models.Node, operations: list[Json], changes: Json) -> None:
    """Refuse a change that the state of the node does not allow.

    :raises NodeBusy: the node's state does not allow this change.
    :raises InstanceAssociated: the node has another instance.
    :raises Conflict: steps of its parent run on it.
    """
    state = node.provision_state
    freed = {(operation["op"], operation["path"]) for operation in operations} == {("remove", "/instance_uuid")}
    if state not in states.UPDATE_ALLOWED and not (node.maintenance and freed):
        raise _busy_error(node, "updated", states.UPDATE_ALLOWED)
    if not _FIXED_IN_FLOWS.isdisjoint(changes):
        refuse_in_parent_flow(node, f"given another {min(_FIXED_IN_FLOWS.intersection(changes))}")
    if changes.get("instance_uuid") and node.instance_uuid:
        raise errors.InstanceAssociated(node=node.uuid, instance=node.instance_uuid)
    for name, limit in ((name, _LIMITS[name]) for name in changes if name in _LIMITS):
        free = (limit.in_maintenance and node.maintenance) or (limit.removable and not changes[name])
        if state not in limit.allowed and not free:
            raise _busy_error(node, f"given another {name}", limit.allowed)


def refuse_delete(node: models.Node) -> None:
    """Refuse to delete a node that is protected or in use.

    :raises Forbidden: the node is protected.
    :raises NodeBusy: the node's state does not allow to delete it.
    :raises InstanceAssociated: it has an instance.
    :raises Conflict: steps of its parent run on it.
    """
    refuse_protected(node, "deleted")
    if node.maintenance:
        return
    if node.instance_uuid is not None:
        raise errors.InstanceAssociated(node=node.uuid, instance=node.instance_uuid)
    if node.provision_state not in states.DELETE_ALLOWED:
        raise _busy_error(node, "deleted", states.DELETE_ALLOWED, ", or any state in maintenance")
    refuse_in_parent_flow(node, "deleted")


def refuse_in_parent_flow(node: models.Node, done: str) -> None:
    """Refuse work on a node that runs steps for its parent.

    :param node: needs uuid, provision_state, flow, parent_node.
    :param done: what is refused, in a message: ``deleted``, ``asked to clean``.
    :raises Conflict: the node is at rest by its own state, but its parent's steps run on it.
    """
    if node.flow is not None and node.provision_state in states.STABLE | states.FAILED:
        raise errors.Conflict(
            reason=f"Node {node.uuid} can not be {done}: flow {node.flow} runs on it for its parent node "
            f"{node.parent_node or '(none any more)'}. Wait for its end, or abort what the parent does."
        )


def refuse_protected(node: models.Node, done: str) -> None:
    """Refuse work on a protected node.

    :raises Forbidden: the node is protected.
    """
    if node.protected:
        raise errors.Forbidden(
            f"Node {node.uuid} is protected ({node.protected_reason or 'no reason given'}) and cannot be {done}: "
            "set protected to false first."
        )


def refuse_unconfirmed(node: models.Node, action: str) -> None:
    """Refuse work on a node of a restored database, before an operator has looked at its machine.

    :raises Conflict: an operator has to confirm the node first.
    """
    if unconfirmed := maintenance.find_unconfirmed(node):
        raise errors.Conflict(
            reason=f"The {action} action cannot be performed on node {node.uuid} because it is in maintenance. "
            f"{unconfirmed['reason']}."
        )


def _busy_error(node: models.Node, done: str, allowed: Collection[str], more: str = "") -> errors.NodeBusy:
    listed = ", ".join(sorted(allowed)) + more
    return errors.NodeBusy(node=node.uuid, done=done, state=node.provision_state, allowed=listed)
