"""The logs of agents: the ramdisk's logs of a run, kept when it failed. Under /ingot/v1, as the timeline."""

from ingot.api.nodes import nodes
from ingot.api.web import collection, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import clock
from ingot.db import listing, models, node_history


def _build_links(log: models.AgentLog, call: Call) -> list[dict[str, str]]:
    return [{"href": f"{call.base}{call.path.rstrip('/')}/{log.uuid}", "rel": "self"}]


TABLE = tables.Table(
    "log",
    (
        Field("uuid", brief=True, sortable=True),
        Field("run", brief=True, compute=lambda log, _call: log.run_id, needs=("run_id",)),
        Field("flow", brief=True, sortable=True),
        Field("created_at", brief=True, sortable=True),
        Field("size", brief=True, sortable=True),
        Field("links", brief=True, compute=_build_links, needs=("uuid",)),
    ),
)

LOGS = collection.Collection("logs", TABLE, node_history.LOGS, selects=False)


index = nodes.build_list_of_node(LOGS)


@operation(answer=Answer(shows=Plain({"type": "string", "format": "binary"}), media="application/gzip"))
def show(call: Call, node: str, uuid: str) -> Reply:
    """The archive itself."""
    found = nodes.read(call, node, "id", "uuid")
    log = listing.get_of_node(call.db, node_history.LOGS, found.id, uuid)
    name = f"{found.uuid}-{log.flow}-{clock.iso(log.created_at)}.tar.gz".replace(":", "")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Reply(log.content, headers=headers)
