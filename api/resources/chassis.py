"""Chassis: enclosures of nodes."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, crud, fields, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import operation
from ingot.db import listing, node_crud

TABLE = tables.Table(
    "chassis",
    (
        Field("uuid", type=fields.UUID, write=POST, brief=True, sortable=True),
        Field("description", type=fields.TEXT, brief=True, sortable=True),
        tables.links("chassis"),
        Field("created_at", sortable=True),
        Field("updated_at", sortable=True),
        Field("extra", type=fields.OBJECT),
        # A list in a list: clients know it like that.
        Field(
            "nodes",
            compute=lambda chassis, call: [tables.link_pair(call, f"chassis/{chassis.uuid}/nodes")],
            needs=("uuid",),
        ),
    ),
)

CRUD = crud.Crud(
    collection.Collection("chassis", TABLE, node_crud.CHASSIS.source), node_crud.CHASSIS, ident=fields.parse_uuid
)


@operation(*nodes.NODES.index_params, answer=nodes.NODES.page)
def nodes_in(call: Call, ident: str) -> Reply:
    return collection.index(call, nodes.NODES, _build_conditions(call, ident))


@operation(*nodes.NODES.detail_params, answer=nodes.NODES.page)
def nodes_in_detail(call: Call, ident: str) -> Reply:
    return collection.index(call, nodes.NODES, _build_conditions(call, ident), detail=True)


def _build_conditions(call: Call, ident: str) -> list[listing.Condition]:
    chassis = CRUD.read(call, ident)
    return [*nodes.build_conditions(call), listing.Condition("chassis_id", "equals", chassis.id)]
