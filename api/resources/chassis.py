"""Chassis: enclosures of nodes."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, crud, fields, tables
from ingot.api.web.call import Call
from ingot.api.web.fields import POST, Field
from ingot.db import listing, node_crud

TABLE = tables.Table(
    "chassis",
    (
        Field("uuid", type=fields.UUID, write=POST, brief=True, sortable=True),
        Field("description", type=fields.TEXT, brief=True, sortable=True),
        tables.links_field("chassis"),
        Field("created_at", sortable=True),
        Field("updated_at", sortable=True),
        Field("extra", type=fields.OBJECT),
        # A list in a list: clients know it like that.
        Field(
            "nodes",
            compute=lambda chassis, call: [tables.build_links(call, f"chassis/{chassis.uuid}/nodes")],
            needs=("uuid",),
        ),
    ),
)

CRUD = crud.Crud(
    collection.Collection("chassis", TABLE, node_crud.CHASSIS.source), node_crud.CHASSIS, ident=fields.parse_uuid
)


def _build_conditions(call: Call, ident: str) -> list[listing.Condition]:
    chassis = CRUD.read(call, ident)
    return [*nodes.build_conditions(call), listing.Condition("chassis_id", "equals", chassis.id)]


nodes_in = collection.build_list(nodes.NODES, _build_conditions)
nodes_in_detail = collection.build_list(nodes.NODES, _build_conditions, detail=True)
