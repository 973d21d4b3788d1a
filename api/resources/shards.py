"""Shards: parts of the fleet that clients divide among themselves, and how many nodes each has."""

from ingot.api.web import schemas
from ingot.api.web.call import Answer, Call, Plain, Reply, operation
from ingot.db import node_lists

_SHARD = schemas.complete({"name": schemas.TEXT, "count": {"type": "integer"}})


@operation(answer=Answer(shows=Plain(schemas.listed("shards", _SHARD))))
def index(call: Call) -> Reply:
    # Nodes without a shard are counted under this name (measured contract).
    counted = [{"name": name or "None", "count": count} for name, count in node_lists.count_shards(call.db)]
    return Reply({"shards": counted})
