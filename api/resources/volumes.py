"""Volume connectors and volume targets: the volumes of nodes that boot from storage outside of the machine."""

from collections.abc import Mapping
from typing import Any

from ingot.api.auth import access
from ingot.api.nodes import node_links, nodes
from ingot.api.web import collection, crud, fields, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import masking
from ingot.db import models
from ingot.db import volumes as rows

SINCE = 32
"""Minor version that brought volumes."""

_NODE = fields.FieldType({"type": "string"}, fields.parse_uuid)
_INDEX = fields.FieldType(
    {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, lambda _name, value: int(value)
)


_SEE_PROPERTIES = "baremetal:volume:view_target_properties"


def _shown_properties(target: models.Record, call: Call) -> Any:
    if not call.access.permits(_SEE_PROPERTIES):
        return {"redacted_contents": f"** Redacted - requires {_SEE_PROPERTIES} permission. **"}
    return masking.mask(target.properties)


def _table(noun: str, name: str, *own: Field) -> tables.Table:
    return tables.Table(
        noun,
        (
            Field("uuid", SINCE, fields.UUID, write=POST, brief=True, sortable=True),
            *own,
            tables.links(f"volume/{name}"),
            Field("created_at", SINCE, sortable=True),
            Field("updated_at", SINCE, sortable=True),
            Field("node_uuid", SINCE, _NODE, brief=True),
            Field("extra", SINCE, fields.OBJECT),
        ),
    )


def _text(name: str, longest: int) -> Field:
    return Field(name, SINCE, fields.text(longest, nullable=False), brief=True, sortable=True, required=True)


_CONNECTOR = _table("connector", "connectors", _text("connector_id", 255), _text("type", 32))
_TARGET = _table(
    "target",
    "targets",
    Field("boot_index", SINCE, _INDEX, brief=True, sortable=True, required=True),
    _text("volume_id", 36),
    _text("volume_type", 64),
    Field("properties", SINCE, fields.OBJECT, compute=_shown_properties, needs=("properties",)),
)

_FILTERS = (Param("node", fields.parse_ident),)
_OWNERSHIP = access.through_node("volume")

COLLECTIONS: Mapping[str, collection.Collection] = {
    "connectors": collection.Collection(
        "connectors", _CONNECTOR, rows.CONNECTORS.source, _FILTERS, ownership=_OWNERSHIP
    ),
    "targets": collection.Collection("targets", _TARGET, rows.TARGETS.source, _FILTERS, ownership=_OWNERSHIP),
}


def _crud(name: str, store: rows.Volumes) -> crud.Crud:
    def refuse_update(call: Call, volume: models.Record, _changes: dict[str, Any]) -> None:
        store.refuse_running(call.db, volume, "update")

    return crud.Crud(
        COLLECTIONS[name],
        store,
        ident=fields.parse_uuid,
        prepare=node_links.prepared,
        refuse_update=refuse_update,
        where=node_links.named,
    )


CONNECTORS = _crud("connectors", rows.CONNECTORS)
TARGETS = _crud("targets", rows.TARGETS)


def _document(call: Call, path: str) -> dict[str, Any]:
    """Where the two collections are."""
    return {
        "links": tables.link_pair(call, f"{path}/"),
        **{name: tables.link_pair(call, f"{path}/{name}") for name in COLLECTIONS},
    }


_DOCUMENT = Answer(shows=Plain(fields.complete_schema(dict.fromkeys(("links", *COLLECTIONS), tables.LINKS))))


@operation(answer=_DOCUMENT)
def root(call: Call) -> Reply:
    call.access.require(call.rule)
    return Reply(_document(call, "volume"))


@operation(answer=_DOCUMENT)
def root_of_node(call: Call, node: str) -> Reply:
    return Reply(_document(call, f"nodes/{nodes.read(call, node, 'uuid').uuid}/volume"))


connectors_of_node, targets_of_node = (nodes.list_of(described) for described in COLLECTIONS.values())
