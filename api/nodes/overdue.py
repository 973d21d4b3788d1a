"""Nodes that are in a provision state for longer than ``[metrics] state_time_limits`` expects."""

from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import clock
from ingot.common.json_types import Json
from ingot.db import census, models

_NODE = {
    "uuid": fields.TEXT_SCHEMA,
    "name": fields.OPTIONAL_TEXT_SCHEMA,
    "provision_state": fields.TEXT_SCHEMA,
    "provision_updated_at": fields.TEXT_SCHEMA,
    "expected_seconds": {"type": "integer"},
    "seconds": {"type": "integer"},
}


@operation(
    Param("limit", operations.parse_limit),
    answer=Answer(shows=Plain(fields.list_schema("nodes", fields.complete_schema(_NODE)))),
)
def index(call: Call) -> Reply:
    """List the nodes that are overdue, those first that have been in their state for longest."""
    limit = min(call.query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    limits = call.conf.metrics.state_time_limits
    found = census.list_overdue(call.db, limits, limit)
    return Reply({"nodes": [_render(node, limits[node.provision_state]) for node in found]})


def _render(node: models.Node, limit: int) -> Json:
    since = node.provision_updated_at
    return {
        **{name: getattr(node, name) for name in census.SHOWN},
        "expected_seconds": limit,
        "seconds": int((clock.now() - since).total_seconds()) if since else 0,
    }
