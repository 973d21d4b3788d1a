"""The fields of a node: the one table behind its representation, selection, sorting, creation and patching.

To add a field: a column in ``db/models/node.py``, a migration, and a row here.
"""

from collections.abc import Mapping
from typing import cast

from ingot.api.web import fields, operations, tables
from ingot.api.web.call import Call
from ingot.api.web.fields import PATCH, POST, Field
from ingot.common import interfaces, masking, states
from ingot.common.json_types import Json
from ingot.common.steps import STEP_INDEX, STEPS
from ingot.db import explanations, models

_NETWORK_SCHEMA = fields.Schema(
    "network_data",
    {
        "type": "object",
        "properties": {
            "links": {"type": "array", "items": {"type": "object", "required": ["id", "type"]}},
            "networks": {"type": "array", "items": {"type": "object", "required": ["id", "type", "link"]}},
            "services": {"type": "array", "items": {"type": "object", "required": ["type"]}},
        },
        "required": ["links", "networks"],
        "additionalProperties": False,
    },
)


def _parse_network_data(name: str, value: Json) -> Json:
    """Return it as it is: checked, or empty, which is none."""
    return _NETWORK_SCHEMA.parse(name, value) if value else value


_NETWORK_DATA = fields.FieldType(fields.OBJECT.schema, _parse_network_data, {})
_GROUP = fields.FieldType(fields.TEXT.schema, operations.parse_lower_case, "")


def _show_provision_state(node: models.Node, call: Call) -> str | None:
    """Return the state, or what stood for it in versions that do not know it."""
    if call.minor < 2 and node.provision_state == states.AVAILABLE:
        return None
    if call.minor < 39 and node.provision_state == states.INSPECTWAIT:
        return states.INSPECTING
    return node.provision_state


_AGENT_NAMES = {
    "agent_url": "agent_url",
    "agent_version": "agent_version",
    "agent_last_heartbeat": "agent_last_heartbeat",
    "agent_token": "agent_secret_token",
    "boot_script_at": "boot_script_at",
}
"""By the agent's columns, the names that clients know."""


def _show_internal_info(node: models.Node, call: Call) -> object:
    """Return what the conductor keeps and, while there is work, what is waited for."""
    has_work = node.flow is not None or node.power_request
    explained = {"explanation": explanations.explain(call.conf, node)} if has_work else {}
    return _show_facts(node, call) | explained


def _show_facts(node: models.Node, _call: Call) -> Json:
    """Return what the conductor keeps, with the agent's columns under the names that clients know."""
    row = vars(node)
    agent = {shown: row[name] for name, shown in _AGENT_NAMES.items() if row[name] is not None}
    return cast(Json, masking.mask(_show_plan(row["driver_internal_info"]) | agent))


def _show_plan(info: Json) -> Json:
    """Return the info with the plan of specifications 000 and 001: without what the flow itself does around the steps.

    The index is that of the current step, null while there is none.
    """
    shown = dict(info)
    for index_key in (key for key in info if key.endswith(STEP_INDEX)):
        key = index_key.removesuffix(STEP_INDEX) + STEPS
        plan, index = shown.pop(key, None) or [], shown.pop(index_key)
        places = [place for place, step in enumerate(plan) if step["origin"] != "flow"]
        if places:
            shown[key] = [plan[place] for place in places]
            shown[index_key] = places.index(index) if index in places else None
    return shown


INTERFACE_SINCE: Mapping[str, int] = {
    **dict.fromkeys(interfaces.TYPES, 31),
    "network": 20,
    "storage": 33,
    "rescue": 38,
    "bios": 40,
    "firmware": 86,
}
"""By interface type, the minor version that brought its field of nodes."""

_EDIT_INTERFACES = "baremetal:node:update:driver_interfaces"

TABLE = tables.Table(
    "node",
    Field("uuid", type=fields.UUID, write=POST, brief=True, sortable=True),
    Field("name", 5, fields.NAME, brief=True, sortable=True, edit="baremetal:node:update:name"),
    Field("instance_uuid", type=fields.UUID, brief=True, sortable=True, edit="baremetal:node:update:instance_uuid"),
    Field("maintenance", type=fields.FLAG, brief=True, sortable=True),
    Field("power_state", brief=True, sortable=True),
    Field(
        "provision_state",
        brief=True,
        sortable=True,
        compute=_show_provision_state,
        needs=("provision_state",),
        schema=fields.OPTIONAL_TEXT_SCHEMA,
    ),
    tables.links_field("nodes"),
    Field("created_at", sortable=True),
    Field("updated_at", sortable=True),
    Field("driver", type=fields.REQUIRED_TEXT, sortable=True, required=True, edit=_EDIT_INTERFACES),
    tables.masked_field(
        "driver_info",
        type=fields.OBJECT,
        edit="baremetal:node:update:driver_info",
        see="baremetal:node:get:driver_info",
    ),
    Field(
        "driver_internal_info",
        3,
        compute=_show_internal_info,
        needs=tuple(dict.fromkeys((*_AGENT_NAMES, *explanations.COLUMNS))),
        see="baremetal:node:get:driver_internal_info",
    ),
    Field("properties", type=fields.OBJECT, edit="baremetal:node:update:properties"),
    Field("extra", type=fields.OBJECT, edit="baremetal:node:update_extra"),
    tables.masked_field("instance_info", type=fields.OBJECT, edit="baremetal:node:update_instance_info"),
    Field("instance_name", 104, fields.text(shortest=1), sortable=True, edit="baremetal:node:update_instance_info"),
    Field("chassis_uuid", type=fields.UUID, edit="baremetal:node:update:chassis_uuid"),
    Field("console_enabled", type=fields.FLAG, write=POST, sortable=True),
    Field("last_error", sortable=True, see="baremetal:node:get:last_error"),
    Field("maintenance_reason", sortable=True),
    Field("provision_updated_at", sortable=True),
    Field("reservation", sortable=True, see="baremetal:node:get:reservation"),
    Field("target_power_state", sortable=True),
    Field("target_provision_state", sortable=True),
    Field("inspection_started_at", 6, sortable=True),
    Field("inspection_finished_at", 6, sortable=True),
    tables.masked_field("clean_step", 7),
    Field("raid_config", 12),
    Field("target_raid_config", 12),
    Field("resource_class", 21, fields.text(80), sortable=True),
    Field("traits", 37, schema={"type": "array", "items": fields.TEXT_SCHEMA}),
    Field("fault", 42, sortable=True),
    tables.masked_field("deploy_step", 44),
    Field("conductor_group", 46, _GROUP, sortable=True, edit="baremetal:node:update:conductor_group"),
    Field("automated_clean", 47, fields.TRISTATE, sortable=True),
    Field("protected", 48, fields.FLAG, write=PATCH, sortable=True),
    Field("protected_reason", 48, fields.LONG_TEXT, write=PATCH, sortable=True),
    Field("conductor", 49, needs=("uuid", "driver", "conductor_group")),
    Field("owner", 50, fields.TEXT, sortable=True, edit="baremetal:node:update:owner"),
    Field("description", 51, fields.text(4096), sortable=True),
    Field("allocation_uuid", 52),
    Field("retired", 61, fields.FLAG, sortable=True, edit="baremetal:node:update:retired"),
    Field("retired_reason", 61, fields.LONG_TEXT, sortable=True, edit="baremetal:node:update:retired"),
    Field("lessee", 65, fields.TEXT, sortable=True, edit="baremetal:node:update:lessee"),
    Field("network_data", 66, _NETWORK_DATA, edit="baremetal:node:update:network_data"),
    Field("boot_mode", 75, fields.text(16), write=POST, sortable=True),
    Field("secure_boot", 75, fields.TRISTATE, write=POST, sortable=True),
    Field("shard", 82, fields.TEXT, sortable=True, edit="baremetal:node:update:shard"),
    Field("parent_node", 83, fields.TEXT, sortable=True, edit="baremetal:node:update:parent_node"),
    tables.masked_field("service_step", 87),
    Field("disable_power_off", 95, fields.FLAG, sortable=True, edit="baremetal:node:update:disable_power_off"),
    Field("health", 109, sortable=True),
    *(
        Field(interfaces.FIELD[name], INTERFACE_SINCE[name], fields.TEXT, sortable=True, edit=_EDIT_INTERFACES)
        for name in interfaces.TYPES
    ),
    tables.links_field("nodes", below="ports"),
    tables.links_field("nodes", below="states", since=14),
    tables.links_field("nodes", below="portgroups", since=24),
    tables.links_field("nodes", below="volume", since=32),
    always=("owner", "lessee"),
)

_OF_STATES = (
    *("power_state", "target_power_state", "provision_state", "target_provision_state", "provision_updated_at"),
    *("last_error", "console_enabled", "raid_config", "target_raid_config", "boot_mode", "secure_boot"),
)
STATES_TABLE = tables.Table("node's state", *(TABLE.fields[name] for name in _OF_STATES))
"""GET /v1/nodes/<id>/states."""

_LOOKED_UP = ("uuid", "properties", "instance_info", "driver_internal_info", "target_raid_config", "links")
_INTERNAL = {"driver_internal_info": TABLE.fields["driver_internal_info"]._replace(compute=_show_facts)}
LOOKUP_TABLE = tables.Table(
    "looked up node", *({**TABLE.fields, **_INTERNAL}[name]._replace(since=1, see=None) for name in _LOOKED_UP)
)
"""What an agent learns about the machine that it runs on, in every version."""
