"""BIOS settings of nodes, as they were read from the machines last."""

from typing import Any, NamedTuple

from ingot.api.nodes import nodes
from ingot.api.web import collection, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, operation
from ingot.common import errors
from ingot.db import facts, models

SINCE = 40

_DETAILS = 74
"""Minor version that brought what a vendor's registry says of a setting, and the choice of fields."""


def _links(setting: models.Record, call: Call) -> list[dict[str, str]]:
    return tables.link_pair(call, f"nodes/{setting.node_uuid}/bios/{setting.name}")


TABLE = tables.Table(
    "BIOS setting",
    (
        *(Field(name, SINCE, brief=True) for name in ("created_at", "updated_at", "name", "value")),
        Field("links", SINCE, brief=True, compute=_links, needs=("name",), schema=tables.LINKS),
        Field("attribute_type", _DETAILS),
        Field("allowable_values", _DETAILS),
        Field("lower_bound", _DETAILS),
        Field("max_length", _DETAILS),
        Field("min_length", _DETAILS),
        Field("read_only", _DETAILS),
        Field("reset_required", _DETAILS),
        Field("unique", _DETAILS),
        Field("upper_bound", _DETAILS),
    ),
)

_ONE = collection.One(TABLE, facts.BIOS.source.json_schema)


class _Named(NamedTuple):
    """The shape of one setting under its own name."""

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        """See :class:`ingot.api.web.operations.Shape`."""
        return {"type": "object", "additionalProperties": _ONE.schema(named)}


@operation(operations.FIELDS, operations.DETAIL, answer=Answer(shows=collection.Page("bios", _ONE)))
def index(call: Call, node: str) -> Reply:
    query = call.query
    if query and call.minor < _DETAILS:
        raise errors.Invalid(f"Unexpected arguments: {', '.join(query)}. BIOS settings take them from 1.{_DETAILS} on.")
    selection = collection.read_selection(call, TABLE)
    found = nodes.read(call, node, "id", "uuid")
    settings = facts.BIOS.list_of_node(call.db, found.id)
    for setting in settings:
        setting.node_uuid = found.uuid
    return Reply({"bios": [selection.render(setting, call) for setting in settings]})


@operation(answer=Answer(shows=_Named()))
def show(call: Call, node: str, name: str) -> Reply:
    found = nodes.read(call, node, "id", "uuid")
    setting = facts.BIOS.get(call.db, found, name)
    setting.node_uuid = found.uuid
    return Reply({name: TABLE.select(call.minor).render(setting, call)})
