"""The history of a node: what an operator reads when a machine misbehaves."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, operation
from ingot.db import listing, models, node_history

_SHORT = 251


def _links(entry: models.Record, call: Call) -> list[dict[str, str]]:
    node = call.path.split("/")[3]
    return [{"href": f"{call.base}/v1/nodes/{node}/history/{entry.uuid}", "rel": "self"}]


TABLE = tables.Table(
    "history entry",
    (
        Field("uuid", 78, brief=True, sortable=True),
        Field("created_at", 78, brief=True, sortable=True),
        Field("severity", 78, brief=True, sortable=True),
        Field("event", 78, brief=True),
        Field("links", 78, brief=True, compute=_links, needs=("uuid",)),
        Field("event_type", 78, sortable=True),
        Field("conductor", 78, sortable=True),
        Field("user", 78, sortable=True),
        Field("project", 113, sortable=True),
        Field("state", 115, sortable=True),
        Field("target_provision_state", 115, sortable=True),
        Field("duration_seconds", 115, sortable=True),
    ),
)


def _shorten(call: Call, found: list[models.Record], selection: tables.Selection) -> None:
    if "conductor" not in selection.names:
        for entry in found:
            if len(entry.event) > _SHORT:
                entry.event = f"{entry.event[:_SHORT]}..."


HISTORY = collection.Collection("history", TABLE, node_history.ENTRIES, selects=False, complete=_shorten)


index = nodes.list_of(HISTORY)


@operation(answer=Answer(shows=HISTORY.one))
def show(call: Call, node: str, uuid: str) -> Reply:
    entry = listing.get_of_node(call.db, node_history.ENTRIES, nodes.read(call, node, "id").id, uuid)
    return Reply(TABLE.select(call.minor).render(entry, call))
