"""Volume connectors and volume targets: the volumes of nodes that boot from storage outside of the machine."""

from collections.abc import Mapping
from typing import Any

from ingot.api import collection, crud, fields, kinds, node_links, params
from ingot.api import nodes as api_nodes
from ingot.api.call import Call, Operation, Reply, operation
from ingot.api.fields import POST, Field
from ingot.api.params import Param
from ingot.api.policy import access
from ingot.common import errors, masking
from ingot.db import listing, records
from ingot.db import volumes as rows

SINCE = 32
"""Minor version that brought volumes."""

_NODE = kinds.Kind({"type": "string"}, kinds.uuid)
_INDEX = kinds.Kind({"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, lambda _name, value: int(value))


_SEE_PROPERTIES = "baremetal:volume:view_target_properties"


def _shown_properties(target: records.Record, call: Call) -> Any:
    if not call.access.permits(_SEE_PROPERTIES):
        return {"redacted_contents": f"** Redacted - requires {_SEE_PROPERTIES} permission. **"}
    return masking.mask(target.properties)


def _table(noun: str, name: str, *own: Field) -> fields.Table:
    return fields.Table(
        noun,
        (
            Field("uuid", SINCE, kinds.UUID, write=POST, brief=True, sortable=True),
            *own,
            fields.links(f"volume/{name}"),
            Field("created_at", SINCE, sortable=True),
            Field("updated_at", SINCE, sortable=True),
            Field("node_uuid", SINCE, _NODE, brief=True),
            Field("extra", SINCE, kinds.OBJECT),
        ),
    )


def _text(name: str, longest: int) -> Field:
    return Field(name, SINCE, kinds.text(longest, nullable=False), brief=True, sortable=True, required=True)


_CONNECTOR = _table("connector", "connectors", _text("connector_id", 255), _text("type", 32))
_TARGET = _table(
    "target",
    "targets",
    Field("boot_index", SINCE, _INDEX, brief=True, sortable=True, required=True),
    _text("volume_id", 36),
    _text("volume_type", 64),
    Field("properties", SINCE, kinds.OBJECT, compute=_shown_properties, needs=("properties",)),
)

_FILTERS = (Param("node", kinds.ident),)
_OWNERSHIP = access.through_node("volume")

COLLECTIONS: Mapping[str, collection.Collection] = {
    "connectors": collection.Collection(
        "connectors", _CONNECTOR, rows.CONNECTORS.source, _FILTERS, ownership=_OWNERSHIP
    ),
    "targets": collection.Collection("targets", _TARGET, rows.TARGETS.source, _FILTERS, ownership=_OWNERSHIP),
}


def _of_node(node_id: int) -> listing.Condition:
    return listing.Condition("node_id", "equals", node_id)


def _where(call: Call) -> list[listing.Condition]:
    if "node" not in call.query:
        return []
    return [_of_node(node_links.referred(call, call.query["node"]).id)]


def _prepare(call: Call, values: dict[str, Any], volume: records.Record | None) -> dict[str, Any]:
    """The node's uuid becomes its id. Taking the node away is accepted and changes nothing."""
    row = {name: value for name, value in values.items() if name != "node_uuid"}
    if values.get("node_uuid"):
        try:
            row["node_id"] = node_links.holder(call, values["node_uuid"], volume).id
        except errors.NotFound as exc:
            raise errors.Invalid(f"node_uuid: {exc.message}") from exc
    elif volume is None:
        raise errors.Invalid("Schema error: 'node_uuid' is a required property")
    return row


def _refuse_update(call: Call, volume: records.Record, _changes: dict[str, Any]) -> None:
    rows.refuse_running(call.db, volume)


def _crud(name: str, store: rows.Volumes) -> crud.Crud:
    return crud.Crud(
        COLLECTIONS[name],
        store,
        ident=kinds.uuid,
        prepare=_prepare,
        refuse_update=_refuse_update,
        where=_where,
    )


CONNECTORS = _crud("connectors", rows.CONNECTORS)
TARGETS = _crud("targets", rows.TARGETS)


def _document(call: Call, path: str) -> dict[str, Any]:
    """Where the two collections are."""
    return {
        "links": fields.link_pair(call, f"{path}/"),
        **{name: fields.link_pair(call, f"{path}/{name}") for name in COLLECTIONS},
    }


@operation()
def root(call: Call) -> Reply:
    call.access.require(call.rule)
    return Reply(_document(call, "volume"))


@operation()
def root_of_node(call: Call, node: str) -> Reply:
    return Reply(_document(call, f"nodes/{api_nodes.read(call, node, 'uuid').uuid}/volume"))


def _list_of_node(name: str) -> Operation:
    def of_node(call: Call, node: str) -> Reply:
        return collection.index(call, COLLECTIONS[name], [_of_node(api_nodes.read(call, node, "id").id)])

    return operation(*params.paging(), params.FIELDS, params.DETAIL, answer=COLLECTIONS[name].page)(of_node)


connectors_of_node = _list_of_node("connectors")
targets_of_node = _list_of_node("targets")
