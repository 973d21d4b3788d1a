"""Firmware components of nodes, with the versions that were read from the machines last."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, operation
from ingot.db import facts

SINCE = 86

TABLE = tables.Table(
    "firmware component",
    (
        Field("created_at", SINCE),
        Field("updated_at", SINCE),
        Field("component", SINCE),
        Field("initial_version", SINCE),
        Field("current_version", SINCE),
        Field("last_version_flashed", SINCE),
        Field("vendor", 114),
        Field("model", 114),
        Field("serial_number", 114),
    ),
)

_ONE = collection.One(TABLE, facts.FIRMWARE.source.json_schema)


@operation(answer=Answer(shows=collection.Page("firmware", _ONE)))
def index(call: Call, node: str) -> Reply:
    selection = TABLE.select(call.minor)
    components = facts.FIRMWARE.list_of_node(call.db, nodes.read(call, node, "id").id)
    return Reply({"firmware": [selection.render(component, call) for component in components]})
