"""The inventory of a node: what the last inspection found in the machine."""

from ingot.api import nodes
from ingot.api.call import Call, Reply, operation
from ingot.db import inventory


@operation()
def show(call: Call, node: str) -> Reply:
    found = inventory.get(call.db, nodes.read(call, node, "id", "uuid"))
    return Reply({"inventory": found.inventory, "plugin_data": found.plugin_data})
