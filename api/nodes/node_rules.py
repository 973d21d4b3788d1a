"""What must hold when a node is created, edited or deleted, beyond the form of single fields."""

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from ingot.api.auth import access
from ingot.api.nodes import composition, node_links
from ingot.api.nodes.node_fields import TABLE
from ingot.api.web.call import Call
from ingot.common import errors, interfaces, states
from ingot.db import listing, maintenance, models, node_crud

RESERVED_NAMES = ("detail", "maintenance", "management", "states", "validate", "vendor_passthru")
"""They would hide behind URLs of other meaning."""

_HOSTNAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*", re.ASCII | re.IGNORECASE)

EDITED = (
    *TABLE.patchable,
    *("uuid", "revision", "provision_state", "reservation", "lock_purpose", "locked_at", "flow"),
    *maintenance.FLAG,
)
"""What editing a node needs to know of it."""

DELETED = (
    "uuid",
    "revision",
    "provision_state",
    "maintenance",
    "maintenance_reason",
    "instance_uuid",
    "protected",
    "protected_reason",
    "flow",
    "parent_node",
)
"""What deleting a node needs to know of it."""

_AT_REST = frozenset((states.ENROLL, states.MANAGEABLE, states.INSPECTWAIT, states.AVAILABLE))
_COMPOSED_OF = frozenset(("driver", "conductor_group", *interfaces.FIELDS))
_WORKED_WITH = _COMPOSED_OF | {"driver_info", "parent_node"}
"""What must not change while steps run on the machine."""


class _Limit(NamedTuple):
    """When a field can be changed, if not in all states in which a node can.

    :param allowed: the states.
    :param lifted: whether it can be changed in maintenance, whatever the state.
    :param raised: whether that is only about setting it; taking it away is always possible.
    """

    allowed: frozenset[str]
    lifted: bool = False
    raised: bool = False

    def forbids(self, node: models.Node, value: Any) -> bool:
        """Whether a node cannot be given this value now."""
        free = (self.lifted and node.maintenance) or (self.raised and not value)
        return node.provision_state not in self.allowed and not free


# Measured contract.
_LIMITS: Mapping[str, _Limit] = {
    **dict.fromkeys(interfaces.FIELDS, _Limit(_AT_REST, lifted=True)),
    "resource_class": _Limit(_AT_REST),
    "protected": _Limit(frozenset((states.ACTIVE, states.RESCUE)), raised=True),
    "retired": _Limit(states.UPDATE_ALLOWED - {states.AVAILABLE}, raised=True),
}


def for_creation(call: Call, values: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a new node.

    :param values: values of all fields that a client can write.
    :raises Invalid: they do not go together.
    """
    row = {name: value for name, value in values.items() if name not in ("chassis_uuid", *interfaces.FIELDS)}
    _check_name(call, row["name"])
    given = {name: values[name] for name in interfaces.FIELDS}
    row |= composition.settle(call, row["driver"], row["conductor_group"], {}, given)
    if row["maintenance"]:
        row |= maintenance.hold_columns([maintenance.user_hold(call.ctx, None)])
    return row | _references(call, values, values["owner"]) | _derived(values)


def for_update(call: Call, node: models.Node, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The columns to write for what a patch changes.

    :raises Invalid: they do not go together.
    """
    _check_name(call, changes.get("name"))
    row = {name: value for name, value in changes.items() if name != "chassis_uuid"}
    reset = bool(call.query.get("reset_interfaces"))
    if reset and not any(operation["path"] == "/driver" for operation in call.body):
        raise errors.Invalid("The reset_interfaces parameter can only be used when changing the driver: patch /driver.")
    if reset or not _COMPOSED_OF.isdisjoint(changes):
        row |= _composed(call, node, changes, reset)
    for flag in ("protected", "retired"):
        _check_reason(node, changes, flag)
        if changes.get(flag) is False:
            row[f"{flag}_reason"] = None
    if "maintenance" in changes:
        row |= maintenance.set_flag(node, call.ctx, changes["maintenance"])
    references = _references(call, changes, node.owner)
    if references.get("parent_node") == node.uuid:
        raise errors.Invalid(
            field="parent_node", value=changes["parent_node"], allowed="A node cannot be its own parent: name another."
        )
    return row | references | _derived({**vars(node), **changes}, changes)


def _composed(call: Call, node: models.Node, changes: Mapping[str, Any], reset: bool) -> dict[str, str | None]:
    """The interfaces that the whole patch leads to, checked together: single operations of it may be incompatible."""
    named = {operation["path"].split("/")[1] for operation in call.body}
    given = {name: changes.get(name, getattr(node, name)) for name in interfaces.FIELDS if name in named}
    kept = {} if reset else {name: getattr(node, name) for name in interfaces.FIELDS}
    driver, group = changes.get("driver", node.driver), changes.get("conductor_group", node.conductor_group)
    return composition.settle(call, driver, group, kept, given)


def _check_name(call: Call, name: str | None) -> None:
    if name is None:
        return
    if name in RESERVED_NAMES:
        raise errors.Invalid(
            field="name", value=name, allowed=f"These words are reserved: {', '.join(RESERVED_NAMES)}."
        )
    if call.minor < 10 and not _HOSTNAME.fullmatch(name):
        raise errors.Invalid(field="name", value=name, allowed="Before version 1.10 a name is a host name.")


def _references(call: Call, values: Mapping[str, Any], owner: str | None) -> dict[str, Any]:
    """What fields that name other objects are stored as.

    :param owner: that of the node; its parent must have the same.
    """
    row: dict[str, Any] = {}
    if "chassis_uuid" in values:
        row["chassis_id"] = values["chassis_uuid"] and _referred(call, "chassis_uuid", values["chassis_uuid"], owner)
    if "parent_node" in values:
        parent = values["parent_node"]
        row["parent_node"] = (parent and _referred(call, "parent_node", parent, owner)) or None
    return row


def _referred(call: Call, field: str, ident: str, owner: str | None) -> Any:
    try:
        if field == "parent_node":
            return node_links.find_node_of_project(call, ident, owner).uuid
        return listing.get(call.db, node_crud.CHASSIS.source, ident).id
    except errors.NotFound as exc:
        raise errors.Invalid(f"{field}: {exc.message}") from exc


def _derived(values: Mapping[str, Any], changed: Collection[str] | None = None) -> dict[str, Any]:
    row: dict[str, Any] = {}
    if changed is None or "resource_class" in changed:
        row["resource_class"] = values["resource_class"] or None
    display_name = values["instance_info"].get("display_name")
    if isinstance(display_name, str) and 0 < len(display_name) < 256 and not values["instance_name"]:
        row["instance_name"] = display_name
    return row


def _check_reason(node: models.Node, changes: Mapping[str, Any], flag: str) -> None:
    reason = f"{flag}_reason"
    if changes.get(reason) is not None and not changes.get(flag, getattr(node, flag)):
        raise errors.Invalid(f"The {reason} field can only be set when {flag} is True: set {flag} in the same patch.")


def refuse_unpermitted(call: Call, node: models.Node, changes: Mapping[str, Any]) -> None:
    """Asks the rules of policy for changes that are special by their value or by the node's state.

    :raises Forbidden: the request may not switch cleaning off.
    :raises Conflict: the node is in use, and the request may not give it to another owner now.
    """
    about = access.node_target(node)
    if changes.get("automated_clean") is False:
        call.access.require("baremetal:node:disable_cleaning", about)
    moved = "owner" in changes and node.provision_state == states.ACTIVE
    if moved and not call.access.permits("baremetal:node:update_owner_provisioned", about):
        raise errors.Conflict(
            reason=f"Cannot update owner of node {node.uuid} while it is in state {node.provision_state}: undeploy it "
            "first, or have an administrator of the system do it."
        )


def refuse_update(node: models.Node, operations: list[dict[str, Any]], changes: Mapping[str, Any]) -> None:
    """
    :raises NodeBusy: the node's state does not allow this change.
    :raises InstanceAssociated: the node has another instance.
    :raises Conflict: steps of its parent run on it.
    """
    state = node.provision_state
    freed = {(operation["op"], operation["path"]) for operation in operations} == {("remove", "/instance_uuid")}
    if state not in states.UPDATE_ALLOWED and not (node.maintenance and freed):
        raise errors.NodeBusy(node=node.uuid, done="updated", state=state, allowed=_listed(states.UPDATE_ALLOWED))
    if not _WORKED_WITH.isdisjoint(changes):
        refuse_lent(node, f"given another {min(_WORKED_WITH.intersection(changes))}")
    if changes.get("instance_uuid") and node.instance_uuid:
        raise errors.InstanceAssociated(node=node.uuid, instance=node.instance_uuid)
    for name, limit in ((name, _LIMITS[name]) for name in changes if name in _LIMITS):
        if limit.forbids(node, changes[name]):
            raise errors.NodeBusy(
                node=node.uuid, done=f"given another {name}", state=state, allowed=_listed(limit.allowed)
            )


def refuse_delete(node: models.Node) -> None:
    """
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
        allowed = f"{_listed(states.DELETE_ALLOWED)}, or any state in maintenance"
        raise errors.NodeBusy(node=node.uuid, done="deleted", state=node.provision_state, allowed=allowed)
    refuse_lent(node, "deleted")


def refuse_lent(node: models.Node, done: str) -> None:
    """
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
    """
    :raises Forbidden: the node is protected.
    """
    if node.protected:
        raise errors.Forbidden(
            f"Node {node.uuid} is protected ({node.protected_reason or 'no reason given'}) and cannot be {done}: "
            "set protected to false first."
        )


def _listed(allowed: Collection[str]) -> str:
    return ", ".join(sorted(allowed))
