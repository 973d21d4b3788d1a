"""Portgroups: network cards of a node that work together."""

from typing import Any

from ingot.api import collection, crud, fields, kinds, node_links, params
from ingot.api import nodes as api_nodes
from ingot.api.call import Call, Reply, operation
from ingot.api.fields import POST, Field
from ingot.api.params import Param
from ingot.api.policy import access
from ingot.common import errors, states
from ingot.db import listing, nodes, records
from ingot.db import portgroups as rows

DEFAULT_MODE = "active-backup"


def _mode(_name: str, value: str) -> str:
    return value or DEFAULT_MODE


TABLE = fields.Table(
    "portgroup",
    (
        Field("uuid", 23, kinds.UUID, write=POST, brief=True, sortable=True),
        Field("name", 23, kinds.PORTGROUP_NAME, brief=True, sortable=True),
        Field("address", 23, kinds.OPTIONAL_MAC, brief=True, sortable=True),
        fields.links("portgroups"),
        Field("created_at", 23, sortable=True),
        Field("updated_at", 23, sortable=True),
        Field("node_uuid", 23, kinds.UUID),
        Field("extra", 23, kinds.OBJECT),
        Field("internal_info", 23),
        Field("standalone_ports_supported", 23, kinds.FLAG_ON, sortable=True),
        Field("mode", 26, kinds.Kind(kinds.TEXT.schema, _mode, DEFAULT_MODE), sortable=True),
        Field("properties", 26, kinds.OBJECT),
        # Measured: requests take these two as long as there are portgroups.
        Field("physical_network", 102, kinds.text(64), sortable=True, patch_since=23, post_since=23),
        Field("category", 103, kinds.text(80), sortable=True, patch_since=23, post_since=23),
        Field("dynamic_portgroup", 111, sortable=True),
        fields.sub_links("ports", "portgroups", 24),
    ),
)

FILTERS = (
    Param("address", kinds.mac, column="address"),
    Param("node", kinds.ident),
    Param("shard", params.names, 106, "node_shard", "one_of"),
    Param("conductor_groups", params.names, 99, "node_conductor_group", "one_of"),
)

PORTGROUPS = collection.Collection(
    "portgroups", TABLE, rows.SOURCE, FILTERS, ownership=access.through_node("portgroup")
)


def _of_node(node_id: int) -> listing.Condition:
    return listing.Condition("node_id", "equals", node_id)


def _where(call: Call) -> list[listing.Condition]:
    if "node" not in call.query:
        return []
    return [_of_node(node_links.referred(call, call.query["node"]).id)]


def _prepare(call: Call, values: dict[str, Any], portgroup: records.Record | None) -> dict[str, Any]:
    if portgroup is None and values["node_uuid"] is None:
        raise errors.Invalid("Schema error for portgroup: 'node_uuid' is a required property")
    # Taking the node away is accepted and changes nothing: a portgroup always has one.
    row = {name: value for name, value in values.items() if name != "node_uuid"}
    if values.get("node_uuid"):
        try:
            row["node_id"] = node_links.holder(call, values["node_uuid"], portgroup).id
        except errors.NotFound as exc:
            raise errors.Invalid(f"node_uuid: {exc.message}") from exc
    return row


def _refuse_update(call: Call, portgroup: records.Record, _changes: dict[str, Any]) -> None:
    node = nodes.get(call.db, portgroup.node_uuid, ("uuid", "provision_state"))
    if node.provision_state == states.INSPECTING:
        raise errors.Conflict(
            reason=f'Cannot update portgroup "{portgroup.uuid}" on node "{node.uuid}" while it is in state '
            f'"{node.provision_state}". Wait for the inspection to end.'
        )


CRUD = crud.Crud(PORTGROUPS, rows, prepare=_prepare, refuse_update=_refuse_update, where=_where)


@operation(*params.paging(), params.FIELDS, params.DETAIL, answer=PORTGROUPS.page)
def of_node(call: Call, node: str) -> Reply:
    return collection.index(call, PORTGROUPS, [_of_node(api_nodes.read(call, node, "id").id)])
