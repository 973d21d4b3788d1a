"""What was read from a node's machine last: its inventory, the settings of its BIOS, the versions of its firmware."""

import itertools
from typing import NamedTuple

from ingot.api.nodes import inventory_changes, nodes
from ingot.api.web import collection, fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.db import facts, inventory, models

BIOS_SINCE = 40
FIRMWARE_SINCE = 86

_BIOS_DETAILS_SINCE = 74
"""Minor version that brought what a vendor's registry says of a setting, and the choice of fields."""

_PARTS = {"inventory": {"type": "object"}, "plugin_data": {"type": "object"}}


@operation(answer=Answer(shows=Plain(fields.complete_schema(_PARTS))))
def show(call: Call, node: str) -> Reply:
    found = inventory.get(call.db, nodes.read(call, node, "id", "uuid"))
    return Reply({"inventory": found.inventory, "plugin_data": found.plugin_data})


_MOST_CHANGES = 1000

_CHANGE = {"path": fields.TEXT_SCHEMA, "before": {}, "after": {}}
_CHANGES = {
    "inspected_at": fields.OPTIONAL_TEXT_SCHEMA,
    "before_at": fields.OPTIONAL_TEXT_SCHEMA,
    "changes": {"type": "array", "items": fields.complete_schema(_CHANGE)},
}


@operation(answer=Answer(shows=Plain(fields.complete_schema(_CHANGES))))
def show_changes(call: Call, node: str) -> Reply:
    """Show how what the last inspection found differs from what the one before had found.

    Of a list, what has left is ``before`` and what has come is ``after``; its order means nothing.
    """
    found = nodes.read(call, node, "id", "uuid")
    last, before = inventory.find(call.db, found.id), inventory.find_before(call.db, found.id)
    changes = itertools.islice(
        inventory_changes.compare(before.inventory, last.inventory) if before and last else (), _MOST_CHANGES
    )
    return Reply(
        {
            "inspected_at": last and clock.iso(last.inspected_at),
            "before_at": before and clock.iso(before.inspected_at),
            "changes": [change._asdict() for change in changes],
        }
    )


class _Setting(models.BiosSetting):
    node_uuid: str


def _setting_links(setting: _Setting, call: Call) -> list[dict[str, str]]:
    return tables.build_links(call, f"nodes/{setting.node_uuid}/bios/{setting.name}")


_DETAILS = (
    *("attribute_type", "allowable_values", "lower_bound", "max_length", "min_length", "read_only", "reset_required"),
    *("unique", "upper_bound"),
)
_BIOS = tables.Table(
    "BIOS setting",
    *(Field(name, BIOS_SINCE, brief=True) for name in ("created_at", "updated_at", "name", "value")),
    Field("links", BIOS_SINCE, brief=True, compute=_setting_links, needs=("name",), schema=tables.LINKS),
    *(Field(name, _BIOS_DETAILS_SINCE) for name in _DETAILS),
)
_BIOS_SETTING = collection.One(_BIOS, facts.BIOS.source.json_schema)


class _ByName(NamedTuple):
    """The shape of one setting under its own name."""

    def schema(self, named: Json) -> Json:
        """See :class:`ingot.api.web.operations.Shape`."""
        return {"type": "object", "additionalProperties": _BIOS_SETTING.schema(named)}


@operation(operations.FIELDS, operations.DETAIL, answer=Answer(shows=collection.Page("bios", _BIOS_SETTING)))
def list_bios(call: Call, node: str) -> Reply:
    if call.query and call.minor < _BIOS_DETAILS_SINCE:
        given = ", ".join(call.query)
        raise errors.Invalid(f"Unexpected arguments: {given}. BIOS settings take them from 1.{_BIOS_DETAILS_SINCE} on.")
    selection = collection.read_selection(call, _BIOS)
    found = nodes.read(call, node, "id", "uuid")
    settings = facts.BIOS.list_of_node(call.db, found.id)
    rendered = [selection.render(_Setting(node_uuid=found.uuid, **vars(setting)), call) for setting in settings]
    return Reply({"bios": rendered})


@operation(answer=Answer(shows=_ByName()))
def show_bios(call: Call, node: str, name: str) -> Reply:
    found = nodes.read(call, node, "id", "uuid")
    setting = _Setting(node_uuid=found.uuid, **vars(facts.BIOS.get(call.db, found, name)))
    return Reply({name: _BIOS.select(call.minor).render(setting, call)})


_VERSIONS = ("created_at", "updated_at", "component", "initial_version", "current_version", "last_version_flashed")
_FIRMWARE = tables.Table(
    "firmware component",
    *(Field(name, FIRMWARE_SINCE) for name in _VERSIONS),
    *(Field(name, 114) for name in ("vendor", "model", "serial_number")),
)
_COMPONENT = collection.One(_FIRMWARE, facts.FIRMWARE.source.json_schema)


@operation(answer=Answer(shows=collection.Page("firmware", _COMPONENT)))
def list_firmware(call: Call, node: str) -> Reply:
    selection = _FIRMWARE.select(call.minor)
    components = facts.FIRMWARE.list_of_node(call.db, nodes.read(call, node, "id").id)
    return Reply({"firmware": [selection.render(component, call) for component in components]})
