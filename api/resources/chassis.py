"""Chassis: what nodes are mounted in."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, crud, field_types, fields
from ingot.api.web.call import Call, Reply, operation
from ingot.api.web.fields import POST, Field
from ingot.db import listing, node_crud

TABLE = fields.Table(
    "chassis",
    (
        Field("uuid", type=field_types.UUID, write=POST, brief=True, sortable=True),
        Field("description", type=field_types.TEXT, brief=True, sortable=True),
        fields.links("chassis"),
        Field("created_at", sortable=True),
        Field("updated_at", sortable=True),
        Field("extra", type=field_types.OBJECT),
        # A list in a list: clients know it like that.
        Field(
            "nodes",
            compute=lambda chassis, call: [fields.link_pair(call, f"chassis/{chassis.uuid}/nodes")],
            needs=("uuid",),
        ),
    ),
)

CRUD = crud.Crud(
    collection.Collection("chassis", TABLE, node_crud.CHASSIS.source), node_crud.CHASSIS, ident=field_types.uuid
)


@operation(*nodes.NODES.index_params, answer=nodes.NODES.page)
def nodes_in(call: Call, ident: str) -> Reply:
    return collection.index(call, nodes.NODES, _inside(call, ident))


@operation(*nodes.NODES.detail_params, answer=nodes.NODES.page)
def nodes_in_detail(call: Call, ident: str) -> Reply:
    return collection.index(call, nodes.NODES, _inside(call, ident), detail=True)


def _inside(call: Call, ident: str) -> list[listing.Condition]:
    chassis = CRUD.read(call, ident)
    return [*nodes.beside_filters(call), listing.Condition("chassis_id", "equals", chassis.id)]
