"""Portgroups: network cards of a node that work together."""

from ingot.api.auth import access
from ingot.api.nodes import node_links
from ingot.api.nodes import nodes as api_nodes
from ingot.api.web import collection, crud, fields, operations, tables
from ingot.api.web.call import Call
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Param
from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.db import nodes, ports

DEFAULT_MODE = "active-backup"


def _parse_mode(_name: str, value: str) -> str:
    return value or DEFAULT_MODE


TABLE = tables.Table(
    "portgroup",
    (
        Field("uuid", 23, fields.UUID, write=POST, brief=True, sortable=True),
        Field("name", 23, fields.PORTGROUP_NAME, brief=True, sortable=True),
        Field("address", 23, fields.OPTIONAL_MAC, brief=True, sortable=True),
        tables.links_field("portgroups"),
        Field("created_at", 23, sortable=True),
        Field("updated_at", 23, sortable=True),
        Field("node_uuid", 23, fields.UUID),
        Field("extra", 23, fields.OBJECT),
        Field("internal_info", 23),
        Field("standalone_ports_supported", 23, fields.FLAG_ON, sortable=True),
        Field("mode", 26, fields.FieldType(fields.TEXT.schema, _parse_mode, DEFAULT_MODE), sortable=True),
        Field("properties", 26, fields.OBJECT),
        # Measured: requests take these two as long as there are portgroups.
        Field("physical_network", 102, fields.text(64), sortable=True, patch_since=23, post_since=23),
        Field("category", 103, fields.text(80), sortable=True, patch_since=23, post_since=23),
        Field("dynamic_portgroup", 111, sortable=True),
        tables.sub_links_field("ports", "portgroups", 24),
    ),
)

FILTERS = (
    Param("address", fields.parse_mac, column="address"),
    Param("node", fields.parse_ident),
    Param("shard", operations.parse_names, 106, "node_shard", "one_of"),
    Param("conductor_groups", operations.parse_names, 99, "node_conductor_group", "one_of"),
)

PORTGROUPS = collection.Collection(
    "portgroups", TABLE, ports.PORTGROUPS.source, FILTERS, ownership=access.build_ownership("portgroup")
)


def _refuse_update(call: Call, portgroup: ports.PortgroupOfNode, _changes: Json) -> None:
    node = nodes.get(call.db, portgroup.node_uuid, ("uuid", "provision_state"))
    if node.provision_state == states.INSPECTING:
        raise errors.Conflict(
            reason=f'Cannot update portgroup "{portgroup.uuid}" on node "{node.uuid}" while it is in state '
            f'"{node.provision_state}". Wait for the inspection to end.'
        )


CRUD = crud.Crud(
    PORTGROUPS,
    ports.PORTGROUPS,
    prepare=node_links.replace_node_uuid,
    refuse_update=_refuse_update,
    where=node_links.build_node_filter,
)

of_node = api_nodes.build_list_of_node(PORTGROUPS)
of_node_in_detail = api_nodes.build_list_of_node(PORTGROUPS, detail=True)
