"""The states of a node: which it is in, power changes, RAID configuration."""

from ingot.api.nodes import node_rules, raid
from ingot.api.nodes import nodes as api_nodes
from ingot.api.nodes.node_fields import STATES_TABLE
from ingot.api.web import call as calls
from ingot.api.web import collection, fields, operations, preconditions
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import operation
from ingot.common import clock, errors, states
from ingot.db import models, node_lists, nodes

# What a power request leaves the machine in, and the minor version that brought the request.
_POWER_TARGETS: dict[str, tuple[str, int]] = {
    states.POWER_ON: (states.POWER_ON, 1),
    states.POWER_OFF: (states.POWER_OFF, 1),
    states.REBOOT: (states.POWER_ON, 1),
    states.SOFT_REBOOT: (states.POWER_ON, 27),
    states.SOFT_POWER_OFF: (states.POWER_OFF, 27),
}

LOCK = ("uuid", "driver", "conductor_group", "revision", "reservation", "lock_purpose", "locked_at")
"""What accepting any request for a conductor needs to know of a node."""


@operation(answer=operations.Answer(shows=collection.One(STATES_TABLE, node_lists.SOURCE.json_schema)))
def show(call: Call, node: str) -> Reply:
    selection = STATES_TABLE.select(call.minor)
    found = api_nodes.read(call, node, *selection.columns, *preconditions.NODE)
    return Reply(selection.render(found, call), version=found.version)


@operation(
    body=fields.Body(
        "power request",
        (
            Field("target", type=fields.FieldType({"type": ["string", "null"], "maxLength": 80}), required=True),
            Field("timeout", 27, fields.whole(1)),
        ),
    ),
    answer=operations.EMPTY_202,
)
def set_power(call: Call, node: str) -> Reply:
    return calls.retry_if_changed(lambda: _set_power(call, node))


def _set_power(call: Call, given: str) -> Reply:
    node = api_nodes.read(call, given, *LOCK, "provision_state", "disable_power_off", "flow", "parent_node")
    asked = call.body["target"]
    _refuse_power(call, node, asked)
    if node.flow is not None:
        node_rules.refuse_lent(node, f"asked to {asked}")
    if node.reservation is not None:
        raise nodes.locked_error(node)
    values = {
        "target_power_state": _POWER_TARGETS[asked][0],
        "power_request": {"target": asked, "timeout": call.body.get("timeout")},
        "due_at": clock.now(),
        "last_error": None,
    }
    api_nodes.accept(call, node, values, why=asked)
    return calls.accepted(call, f"/v1/nodes/{node.uuid}/states")


def _refuse_power(call: Call, node: models.Node, asked: str | None) -> None:
    if asked not in _POWER_TARGETS:
        allowed = ", ".join(name for name, (_target, since) in _POWER_TARGETS.items() if since <= call.minor)
        raise errors.Invalid(field="target", value=asked, allowed=f"A power request asks for one of: {allowed}.")
    _target, since = _POWER_TARGETS[asked]
    if call.minor < since:
        raise errors.VersionRefused(minor=since)
    if node.provision_state in states.POWER_CHANGE_REFUSED:
        raise errors.StateTransitionRefused(
            action=asked, node=node.uuid, state=node.provision_state, possible="waiting for the cleaning to end"
        )
    if node.disable_power_off and asked in (states.POWER_OFF, states.SOFT_POWER_OFF):
        raise errors.Invalid(field="target", value=asked, allowed=f"Node {node.uuid} has disable_power_off set.")


@operation(body=raid.TARGET, answer=operations.EMPTY_204)
def set_raid(call: Call, node: str) -> Reply:
    return calls.retry_if_changed(lambda: _set_raid(call, node))


def _set_raid(call: Call, given: str) -> Reply:
    found = api_nodes.read(call, given, *LOCK, "raid_interface")
    if found.raid_interface == "no-raid":
        raise errors.UnsupportedInterface(driver=found.driver, what="RAID with the interface no-raid")
    if found.reservation is not None:
        raise nodes.locked_error(found)
    nodes.compare_and_set(call.db, found, {"target_raid_config": call.body})
    return calls.NO_CONTENT
