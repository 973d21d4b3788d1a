"""Chassis, enclosures of nodes, and shards: parts of the fleet that clients divide among themselves."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, crud, fields, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Answer, Plain, operation
from ingot.db import listing, node_crud, node_lists

TABLE = tables.Table(
    "chassis",
    Field("uuid", type=fields.UUID, write=POST, brief=True, sortable=True),
    Field("description", type=fields.TEXT, brief=True, sortable=True),
    *tables.record_fields("chassis"),
    Field("extra", type=fields.OBJECT),
    # A list in a list: clients know it like that.
    Field(
        "nodes",
        compute=lambda chassis, call: [tables.build_links(call, f"chassis/{chassis.uuid}/nodes")],
        needs=("uuid",),
    ),
)

CRUD = crud.Crud(
    collection.Collection("chassis", TABLE, node_crud.CHASSIS.source), node_crud.CHASSIS, ident=fields.parse_uuid
)


def _build_conditions(call: Call, ident: str) -> list[listing.Condition]:
    chassis = CRUD.read(call, ident)
    return [*nodes.build_conditions(call), listing.Condition("chassis_id", "equals", chassis.id)]


nodes_in, nodes_in_detail = (collection.build_list(nodes.NODES, _build_conditions, detail) for detail in (False, True))

_SHARD = fields.complete_schema({"name": fields.TEXT_SCHEMA, "count": {"type": "integer"}})


@operation(answer=Answer(shows=Plain(fields.list_schema("shards", _SHARD))))
def index(call: Call) -> Reply:
    # Nodes without a shard are counted under this name (measured contract).
    counted = [{"name": name or "None", "count": count} for name, count in node_lists.count_shards(call.db)]
    return Reply({"shards": counted})
