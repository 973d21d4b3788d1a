"""The inventory of a node: what the last inspection found in the machine."""

from ingot.api.nodes import nodes
from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.db import inventory

_PARTS = {"inventory": {"type": "object"}, "plugin_data": {"type": "object"}}


@operation(answer=Answer(shows=Plain(fields.complete_schema(_PARTS))))
def show(call: Call, node: str) -> Reply:
    found = inventory.get(call.db, nodes.read(call, node, "id", "uuid"))
    return Reply({"inventory": found.inventory, "plugin_data": found.plugin_data})
