"""Shards: parts of the fleet that clients divide among themselves, and how many nodes each has."""

from ingot.api.web import fields
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.db import node_lists

_SHARD = fields.complete_schema({"name": fields.TEXT_SCHEMA, "count": {"type": "integer"}})


@operation(answer=Answer(shows=Plain(fields.list_schema("shards", _SHARD))))
def index(call: Call) -> Reply:
    # Nodes without a shard are counted under this name (measured contract).
    counted = [{"name": name or "None", "count": count} for name, count in node_lists.count_shards(call.db)]
    return Reply({"shards": counted})
