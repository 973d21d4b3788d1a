"""Volume connectors and volume targets: the volumes of nodes that boot from storage outside of the machine."""

from ingot.api.auth import access
from ingot.api.nodes import node_links, nodes
from ingot.api.web import collection, crud, fields, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import masking
from ingot.common.json_types import Json
from ingot.db import volumes as rows
from ingot.db.volumes import AnyVolume

SINCE = 32
"""Minor version that brought volumes."""

_NODE = fields.FieldType({"type": "string"}, fields.parse_uuid)
_INDEX = fields.FieldType(
    {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}, lambda _name, value: int(value)
)

_SEE_PROPERTIES = "baremetal:volume:view_target_properties"


def _show_properties(target: rows.TargetOfNode, call: Call) -> object:
    if not call.access.permits(_SEE_PROPERTIES):
        return {"redacted_contents": f"** Redacted - requires {_SEE_PROPERTIES} permission. **"}
    return masking.mask(vars(target)["properties"])


def _text_field(name: str, longest: int) -> Field:
    return Field(name, SINCE, fields.text(longest, nullable=False), brief=True, sortable=True, required=True)


def _describe(noun: str, store: rows.Volumes[AnyVolume], *own: Field) -> collection.Collection[AnyVolume]:
    table = tables.Table(
        noun,
        Field("uuid", SINCE, fields.UUID, write=POST, brief=True, sortable=True),
        *own,
        *tables.record_fields(f"volume/{noun}s", SINCE),
        Field("node_uuid", SINCE, _NODE, brief=True),
        Field("extra", SINCE, fields.OBJECT),
    )
    filters = (Param("node", fields.parse_ident),)
    return collection.Collection(f"{noun}s", table, store.source, filters, ownership=access.build_ownership("volume"))


_CONNECTORS = _describe("connector", rows.CONNECTORS, _text_field("connector_id", 255), _text_field("type", 32))
_TARGETS = _describe(
    "target",
    rows.TARGETS,
    Field("boot_index", SINCE, _INDEX, brief=True, sortable=True, required=True),
    _text_field("volume_id", 36),
    _text_field("volume_type", 64),
    Field("properties", SINCE, fields.OBJECT, compute=_show_properties, needs=("properties",), masked=True),
)


def _build_crud(described: collection.Collection[AnyVolume], store: rows.Volumes[AnyVolume]) -> crud.Crud[AnyVolume]:
    return crud.Crud(
        described,
        store,
        ident=fields.parse_uuid,
        prepare=node_links.replace_node_uuid,
        refuse_update=lambda call, volume, _changes: store.refuse_running(call.db, volume, "update"),
        where=node_links.build_node_filter,
    )


CONNECTORS = _build_crud(_CONNECTORS, rows.CONNECTORS)
TARGETS = _build_crud(_TARGETS, rows.TARGETS)

_NAMES = ("connectors", "targets")


def _describe_links(call: Call, path: str) -> Json:
    """Return the links of the two collections."""
    return {
        "links": tables.build_links(call, f"{path}/"),
        **{name: tables.build_links(call, f"{path}/{name}") for name in _NAMES},
    }


_DOCUMENT = Answer(shows=Plain(fields.complete_schema(dict.fromkeys(("links", *_NAMES), tables.LINKS))))


@operation(answer=_DOCUMENT)
def root(call: Call) -> Reply:
    call.access.require(call.rule)
    return Reply(_describe_links(call, "volume"))


@operation(answer=_DOCUMENT)
def root_of_node(call: Call, node: str) -> Reply:
    return Reply(_describe_links(call, f"nodes/{nodes.read(call, node, 'uuid').uuid}/volume"))


connectors_of_node = nodes.build_list_of_node(_CONNECTORS)
targets_of_node = nodes.build_list_of_node(_TARGETS)
