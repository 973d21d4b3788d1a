"""Ports, the network cards of nodes, and portgroups: those that work together."""

import re
from collections.abc import Iterable

from ingot.api.auth import access
from ingot.api.nodes import management, node_links
from ingot.api.nodes import nodes as api_nodes
from ingot.api.web import collection, crud, fields, operations, tables
from ingot.api.web.call import Call
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Param
from ingot.common import errors, networks, states
from ingot.common.json_types import Json
from ingot.db import listing, models, nodes
from ingot.db import ports as rows
from ingot.db.ports import PortgroupOfNode, PortOfNode

_LINK_KEYS = {
    **{name: {"type": "string"} for name in ("port_id", "switch_info", "hostname", "switch_id", "fabric_name")},
    **{name: {"type": "string"} for name in ("rep_port_name", "vtep-logical-switch", "vtep-physical-switch")},
    "network_type": {"enum": ["managed", "unmanaged"]},
}

_LINK_SCHEMA = fields.Schema(
    "local_link_connection",
    {
        **fields.object_schema(_LINK_KEYS),
        # Either nothing, or enough to find the other end of the cable.
        "anyOf": [
            {"maxProperties": 0},
            {"required": ["switch_id", "port_id"]},
            {"required": ["port_id", "hostname"]},
            {"required": ["port_id", "vtep-logical-switch", "vtep-physical-switch"]},
            {"required": ["network_type"]},
        ],
    },
)
_SWITCH = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}|[0-9a-f]{16}", re.ASCII)


def _parse_link(name: str, value: Json) -> Json:
    """Return the other end of a cable, its switch in lower case.

    :raises Invalid: it does not fit the schema, or its switch has no address.
    """
    _LINK_SCHEMA.check(value)
    if "switch_id" not in value:
        return value
    switch = value["switch_id"].lower()
    if not _SWITCH.fullmatch(switch):
        allowed = (
            "Expected a MAC address, six pairs of hex digits with colons, or an OpenFlow datapath ID, 16 hex digits."
        )
        raise errors.Invalid(field=f"{name}.switch_id", value=value["switch_id"], allowed=allowed)
    return {**value, "switch_id": switch}


_LINK = fields.FieldType(fields.OBJECT.schema, _parse_link, {})

# A real boolean only: other fields take words as well.
_AVAILABLE = fields.FieldType({"type": "boolean"}, empty=True)

TABLE = tables.Table(
    "port",
    Field("uuid", type=fields.UUID, write=POST, brief=True, sortable=True),
    Field("address", type=fields.MAC, brief=True, sortable=True, required=True),
    *tables.record_fields("ports"),
    Field("node_uuid", type=fields.UUID),
    Field("node_ident", 94, fields.IDENT, write=POST, hidden=True),
    Field("extra", type=fields.OBJECT),
    Field("internal_info", 18),
    Field("local_link_connection", 19, _LINK),
    Field("pxe_enabled", 19, fields.FLAG_ON, sortable=True),
    Field("portgroup_uuid", 24, fields.UUID),
    Field("physical_network", 34, fields.text(64, shortest=1), sortable=True),
    Field("is_smartnic", 53, fields.FLAG, sortable=True),
    Field("name", 88, fields.TEXT, sortable=True, patch_since=1),
    Field("description", 97, fields.TEXT, sortable=True, patch_since=1),
    Field("vendor", 100, fields.text(32), sortable=True, patch_since=1),
    Field("category", 101, fields.text(80), sortable=True, patch_since=1),
    Field("available_for_dynamic_portgroup", 111, _AVAILABLE, sortable=True, patch_since=1),
)

_DEFAULT_MODE = "active-backup"
_MODE = fields.FieldType(fields.TEXT.schema, lambda _name, value: value or _DEFAULT_MODE, _DEFAULT_MODE)

PORTGROUP_TABLE = tables.Table(
    "portgroup",
    Field("uuid", 23, fields.UUID, write=POST, brief=True, sortable=True),
    Field("name", 23, fields.PORTGROUP_NAME, brief=True, sortable=True),
    Field("address", 23, fields.OPTIONAL_MAC, brief=True, sortable=True),
    *tables.record_fields("portgroups", 23),
    Field("node_uuid", 23, fields.UUID),
    Field("extra", 23, fields.OBJECT),
    Field("internal_info", 23),
    Field("standalone_ports_supported", 23, fields.FLAG_ON, sortable=True),
    Field("mode", 26, _MODE, sortable=True),
    Field("properties", 26, fields.OBJECT),
    # Measured: requests take these two as long as there are portgroups.
    Field("physical_network", 102, fields.text(64), sortable=True, patch_since=23, post_since=23),
    Field("category", 103, fields.text(80), sortable=True, patch_since=23, post_since=23),
    Field("dynamic_portgroup", 111, sortable=True),
    tables.links_field("portgroups", below="ports", since=24),
)

# Without an item the two lists filter nothing (measured contract).
_FILTERS = (
    Param("address", fields.parse_mac, column="address"),
    Param("node", fields.parse_ident, 6),
    Param("node_uuid", fields.parse_uuid, column="node_uuid"),
    Param("portgroup", fields.parse_ident, 24),
    Param("shard", operations.parse_names, 82, "node_shard", "one_of_given"),
    Param("description_contains", fields.parse_text, 97, "description", "contains"),
    Param("conductor_groups", operations.parse_names, 99, "node_conductor_group", "one_of_given"),
)

_PORTGROUP_FILTERS = (
    Param("address", fields.parse_mac, column="address"),
    Param("node", fields.parse_ident),
    Param("shard", operations.parse_names, 106, "node_shard", "one_of_given"),
    Param("conductor_groups", operations.parse_names, 99, "node_conductor_group", "one_of_given"),
)

_PORTS = collection.Collection("ports", TABLE, rows.PORTS.source, _FILTERS, ownership=access.build_ownership("port"))
_PORTGROUPS = collection.Collection(
    "portgroups",
    PORTGROUP_TABLE,
    rows.PORTGROUPS.source,
    _PORTGROUP_FILTERS,
    ownership=access.build_ownership("portgroup"),
)

_OF_ONE_NODE = ("address", "node", "node_uuid", "portgroup")


def _build_portgroup_conditions(call: Call, ident: str) -> list[listing.Condition]:
    portgroup = listing.get(call.db, rows.PORTGROUPS.source, fields.parse_ident("portgroup", ident))
    call.access.require_seen("baremetal:node:get", access.build_owned_target(portgroup), "Portgroup", ident)
    return [listing.Condition("portgroup_id", "equals", portgroup.id)]


def _build_conditions(call: Call) -> list[listing.Condition]:
    query = call.query
    if query.get("conductor_groups") and any(name in query for name in _OF_ONE_NODE):
        raise errors.Invalid(
            f"Filtering by conductor_groups cannot be combined with {', '.join(_OF_ONE_NODE)}: leave one out."
        )
    node = query.get("node") or query.get("node_uuid")
    where = [] if node is None else [node_links.node_condition(node_links.find_node(call, node).id)]
    return where + (_build_portgroup_conditions(call, query["portgroup"]) if "portgroup" in query else [])


_NODE = ("node_uuid", "node_ident")


def _prepare(call: Call, values: Json, port: PortOfNode | None) -> Json:
    """Replace what names node and portgroup by their ids."""
    row = {name: value for name, value in values.items() if name not in (*_NODE, "portgroup_uuid")}
    named = next((name for name in _NODE if values.get(name) is not None), None)
    node_id = port.node_id if port else None
    # Taking the node away from a port is accepted and changes nothing: a port always has one.
    if named is not None:
        row["node_id"] = node_id = node_links.read_node_id(call, named, values[named], port)
    elif node_id is None:
        raise errors.Invalid("Schema error for port: 'node_uuid' (or from version 1.94 'node_ident') is required.")
    if "portgroup_uuid" in values or "node_id" in row:
        portgroup = values.get("portgroup_uuid", port and port.portgroup_uuid)
        row["portgroup_id"] = portgroup and _read_portgroup_id(call, portgroup, node_id)
    return row


def _read_portgroup_id(call: Call, uuid: str, node_id: int | None) -> int:
    try:
        portgroup = listing.get(call.db, rows.PORTGROUPS.source, uuid)
    except errors.NotFound as exc:
        raise errors.Invalid(f"portgroup_uuid: {exc.message}") from exc
    if portgroup.node_id != node_id:
        raise errors.Invalid(field="portgroup_uuid", value=uuid, allowed="The portgroup belongs to another node.")
    return portgroup.id


_CONNECTIVITY = frozenset(("local_link_connection", "physical_network", "portgroup_uuid", "pxe_enabled"))
_JOINS = frozenset(("pxe_enabled", "portgroup_uuid"))
_TENANT_NOTE = networks.name_note(networks.TENANT)
_CONNECTIVITY_STATES = frozenset((states.ENROLL, states.MANAGEABLE, states.INSPECTWAIT))


def _refuse_port_update(call: Call, port: PortOfNode, changes: Json) -> None:
    """Refuse an update that the state of the node does not allow.

    :raises Conflict: the node's state does not allow this change.
    """
    node = nodes.get(call.db, port.node_uuid, ("uuid", "provision_state", "maintenance", "network_interface"))
    state = node.provision_state
    allowed = states.ALL - {states.INSPECTING}
    if not node.maintenance and not _CONNECTIVITY.isdisjoint(changes):
        allowed = _CONNECTIVITY_STATES
    elif not node.maintenance and "address" in changes:
        allowed -= {states.ACTIVE}
    if state not in allowed:
        hint = "" if state == states.INSPECTING else "; or in maintenance"
        what = f'Cannot update port "{port.uuid}"'
        if allowed is _CONNECTIVITY_STATES:
            connectivity = ", ".join(sorted(_CONNECTIVITY.intersection(changes)))
            what = f"Port {port.uuid} can not have any connectivity attributes ({connectivity}) updated"
        raise errors.Conflict(
            reason=f'{what} on node "{node.uuid}" while it is in state "{state}". What changes '
            f"({', '.join(sorted(changes)) or 'nothing'}) can change in: {', '.join(sorted(allowed))}{hint}."
        )
    group = changes.get("portgroup_uuid", port.portgroup_uuid)
    if node.network_interface in networks.ASK_NEUTRON and group and not _JOINS.isdisjoint(changes):
        after = PortOfNode(**{**vars(port), **changes})
        portgroup = listing.find(call.db, rows.PORTGROUPS.source, listing.Condition("uuid", "equals", group))
        if portgroup is not None:  # one that is not there is refused later, as a value
            _refuse_standalone(portgroup, [after])


def _refuse_standalone(portgroup: PortgroupOfNode, members: Iterable[models.Port]) -> None:
    """Refuse ports that are used on their own in a portgroup that does not support that.

    :raises Conflict: one boots from the network, or has a VIF.
    """
    used = [port.uuid for port in members if port.pxe_enabled or _TENANT_NOTE in port.internal_info]
    if used and not portgroup.standalone_ports_supported:
        raise errors.Conflict(
            reason=f"Portgroup {portgroup.uuid} does not support standalone ports, so those "
            f"in it may have neither pxe_enabled nor a VIF. This concerns: {', '.join(used)}."
        )


def _refuse_portgroup_update(call: Call, portgroup: PortgroupOfNode, changes: Json) -> None:
    node = nodes.get(call.db, portgroup.node_uuid, ("uuid", "provision_state", "network_interface"))
    if "standalone_ports_supported" in changes and node.network_interface in networks.ASK_NEUTRON:
        after = PortgroupOfNode(**{**vars(portgroup), **changes})
        of_node = rows.PORTS.list_of_node(call.db, portgroup.node_id)
        _refuse_standalone(after, [port for port in of_node if port.portgroup_id == portgroup.id])
    if node.provision_state == states.INSPECTING:
        raise errors.Conflict(
            reason=f'Cannot update portgroup "{portgroup.uuid}" on node "{node.uuid}" while it is in state '
            f'"{node.provision_state}". Wait for the inspection to end.'
        )


def _refuse_delete(call: Call, owned: PortOfNode | PortgroupOfNode) -> None:
    """Refuse to delete what is connected in Neutron: the port there would be left behind.

    :raises Conflict: it is, and the node is not in maintenance.
    """
    vif = next((owned.internal_info[note] for note in networks.VIF_NOTES if note in owned.internal_info), None)
    if vif is not None and not nodes.get(call.db, owned.node_uuid, ("uuid", "maintenance")).maintenance:
        noun = type(owned).__name__.removesuffix("OfNode").lower()
        raise errors.Conflict(
            reason=f"Cannot delete {noun} {owned.uuid}: port {vif} of Neutron is attached to it. Detach that first; if "
            "it is one of the conductor's, end what the node is doing; or put the node into maintenance."
        )


_CLIENT_ID = "client-id"


class _Connected(crud.Crud[rows.AnyConnected]):
    """Ports or portgroups: the conductor carries a change of one to the VIF that is attached to it."""

    def carry(self, call: Call, record: rows.AnyConnected, changes: Json) -> None:
        """
        :raises IngotError: Neutron refuses it, or does not answer.
        """
        address, before = changes.get("address"), record.extra.get(_CLIENT_ID)
        after = (changes.get("extra") or {}).get(_CLIENT_ID) if "extra" in changes else before
        client_id = None if after == before else after or ""
        if _TENANT_NOTE not in record.internal_info or (address is None and client_id is None):
            return
        node = nodes.get(call.db, record.node_uuid, (*management.SERVED, "network_interface"))
        if node.network_interface not in networks.ASK_NEUTRON:
            return
        if address is not None:
            rows.refuse_taken(call.db, record, address)
        call.client.call(call.ctx, node, "change_port", uuid=record.uuid, address=address, client_id=client_id)


PORTS = _Connected(
    _PORTS,
    rows.PORTS,
    prepare=_prepare,
    refuse_update=_refuse_port_update,
    refuse_delete=_refuse_delete,
    where=_build_conditions,
)
PORTGROUPS = _Connected(
    _PORTGROUPS,
    rows.PORTGROUPS,
    prepare=node_links.replace_node_uuid,
    refuse_update=_refuse_portgroup_update,
    refuse_delete=_refuse_delete,
    where=node_links.build_node_filter,
)

of_node, of_node_in_detail = (api_nodes.build_list_of_node(_PORTS, detail) for detail in (False, True))
portgroups_of_node, portgroups_of_node_in_detail = (
    api_nodes.build_list_of_node(_PORTGROUPS, detail) for detail in (False, True)
)
of_portgroup, of_portgroup_in_detail = (
    collection.build_list(_PORTS._replace(filters=()), _build_portgroup_conditions, detail) for detail in (False, True)
)
