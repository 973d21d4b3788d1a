"""The states of a node: which it is in, power changes, RAID configuration."""

from typing import cast

from ingot.api.nodes import node_rules
from ingot.api.nodes import nodes as api_nodes
from ingot.api.nodes.node_fields import STATES_TABLE
from ingot.api.web import call as calls
from ingot.api.web import collection, fields, operations, preconditions
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import operation
from ingot.common import clock, errors, interfaces, states
from ingot.common.json_types import Json
from ingot.db import models, node_lists, node_refusals, nodes

# What a power request leaves the machine in, and the minor version that brought the request.
_POWER_TARGETS: dict[str, tuple[str, int]] = {
    states.POWER_ON: (states.POWER_ON, 1),
    states.POWER_OFF: (states.POWER_OFF, 1),
    states.REBOOT: (states.POWER_ON, 1),
    states.SOFT_REBOOT: (states.POWER_ON, 27),
    states.SOFT_POWER_OFF: (states.POWER_OFF, 27),
}

TARGET = Field("target", type=fields.FieldType({"type": ["string", "null"], "maxLength": 80}), required=True)
"""What a power or provision request asks for."""

LOCK = ("uuid", "driver", "conductor_group", "revision", "reservation", "lock_purpose", "locked_at")
"""What accepting any request for a conductor needs to know of a node."""


@operation(answer=operations.Answer(shows=collection.One(STATES_TABLE, node_lists.SOURCE.json_schema)))
def show(call: Call, node: str) -> Reply:
    selection = STATES_TABLE.select(call.minor)
    found = api_nodes.read(call, node, *selection.columns, *preconditions.NODE, kept=selection.kept)
    return Reply(selection.render(found, call), version=found.version)


@operation(
    body=fields.Body("power request", TARGET, Field("timeout", 27, fields.whole_number(1))),
    answer=operations.EMPTY_202,
)
@calls.repeat_if_changed
def set_power(call: Call, node: str) -> Reply:
    asked = ("provision_state", "disable_power_off", "flow", "parent_node", "power_interface")
    found = api_nodes.read(call, node, *LOCK, *asked)
    requested = call.body["target"]
    _refuse_power(call, found, requested)
    node_rules.refuse_in_parent_flow(found, f"asked to {requested}")
    if found.reservation is not None:
        raise node_refusals.locked_error(found)
    values = {
        "target_power_state": _POWER_TARGETS[requested][0],
        "power_request": {
            "asked_by": api_nodes.build_requester(call),
            "target": requested,
            "timeout": call.body.get("timeout"),
        },
        "due_at": clock.now(),
        "last_error": None,
    }
    api_nodes.accept(call, found, values, why=requested)
    return calls.accepted_reply(call, f"/v1/nodes/{found.uuid}/states")


def _refuse_power(call: Call, node: models.Node, requested: str | None) -> None:
    if requested not in _POWER_TARGETS:
        allowed = ", ".join(name for name, (_target, since) in _POWER_TARGETS.items() if since <= call.minor)
        raise errors.Invalid(field="target", value=requested, allowed=f"A power request asks for one of: {allowed}.")
    _target, since = _POWER_TARGETS[requested]
    if call.minor < since:
        raise errors.VersionRefused(minor=since)
    if node.provision_state in states.POWER_CHANGE_REFUSED:
        raise errors.StateTransitionRefused(
            action=requested, node=node.uuid, state=node.provision_state, possible="waiting for the cleaning to end"
        )
    if node.disable_power_off and requested in (states.POWER_OFF, states.SOFT_POWER_OFF):
        raise errors.Invalid(field="target", value=requested, allowed=f"Node {node.uuid} has disable_power_off set.")
    if node.power_interface in interfaces.RESTART_ONLY and requested not in (states.REBOOT, states.SOFT_REBOOT):
        allowed = f"Power interface {node.power_interface} has rebooting and soft rebooting; do the rest by hand."
        raise errors.Invalid(field="target", value=requested, allowed=allowed)


# RAID

_LOGICAL_DISK = fields.object_schema(
    {
        "controller": {"type": "string"},
        "disk_type": {"enum": ["hdd", "ssd"]},
        "interface_type": {"enum": ["sata", "scsi", "sas"]},
        "is_root_volume": {"type": "boolean"},
        "number_of_physical_disks": {"type": "integer", "minimum": 1},
        "physical_disks": {"type": "array", "items": {"type": ["string", "object"]}, "minItems": 1},
        "raid_level": {"enum": ["JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"]},
        "share_physical_disks": {"type": "boolean"},
        "size_gb": {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["MAX"]}]},
        "volume_name": {"type": "string", "maxLength": 64},
    },
    required=("raid_level", "size_gb"),
)

_RAID_CONFIG = fields.Schema(
    "target_raid_config",
    fields.complete_schema({"logical_disks": {"type": "array", "items": _LOGICAL_DISK, "minItems": 1}}),
)


class _RaidTarget:
    """The request body; an empty object takes the configuration back."""

    schema = fields.Schema("RAID request", {"anyOf": [{"type": "object", "maxProperties": 0}, _RAID_CONFIG.document]})

    def check(self, value: object, minor: int) -> Json:
        if value is None or value == {}:
            return {}
        _RAID_CONFIG.check(value)
        config = cast(Json, value)
        roots = sum(disk.get("is_root_volume", False) for disk in config["logical_disks"])
        if roots > 1:
            found = f"{roots} root volumes"
            raise errors.Invalid(field="logical_disks", value=found, allowed="At most one is_root_volume.")
        return config


@operation(body=_RaidTarget(), answer=operations.EMPTY_204)
@calls.repeat_if_changed
def set_raid(call: Call, node: str) -> Reply:
    found = api_nodes.read(call, node, "uuid", "revision", "driver", "raid_interface")
    if found.raid_interface == "no-raid":
        raise errors.UnsupportedInterface(driver=found.driver, what="RAID with the interface no-raid")
    nodes.compare_and_set(call.db, found, {"target_raid_config": call.body})
    return calls.NO_CONTENT
