"""What is asked of a node's machine at once: console, boot mode, secure boot, indicators, a non-maskable interrupt."""

from typing import Any

from ingot.api.nodes.management import ask, owned
from ingot.api.web import call as calls
from ingot.api.web import fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import errors


def _set(call: Call, node: str, shown_at: str, method: str, **arguments: Any) -> Reply:
    """Has the node's conductor do something. It is done when the answer is sent; 202 is what clients expect."""
    found = owned(call, node)
    call.client.call(call.ctx, found, method, **arguments)
    return calls.accepted(call, f"/v1/nodes/{found.uuid}/{shown_at}")


# Console


_CONSOLE = fields.complete_schema({"console_enabled": fields.FLAG_SCHEMA, "console_info": {"type": ["object", "null"]}})


@operation(answer=Answer(shows=Plain(_CONSOLE)))
def console(call: Call, node: str) -> Reply:
    """Whether it is on, and where it is."""
    return Reply(ask(call, node, "get_console"))


_CONSOLE_REQUEST = fields.Body("console request", (Field("enabled", type=fields.FLAG, required=True),))


@operation(body=_CONSOLE_REQUEST, answer=operations.EMPTY_202)
def set_console(call: Call, node: str) -> Reply:
    return _set(call, node, "states/console", "set_console", enabled=call.body["enabled"])


# How the machine boots

_BOOT_MODE = fields.FieldType({"enum": ["bios", "uefi"]})
_SECURE_BOOT = fields.FieldType({"type": ["boolean", "string"]}, fields.parse_flag)


@operation(
    body=fields.Body("boot mode request", (Field("target", type=_BOOT_MODE, required=True),)),
    answer=operations.EMPTY_202,
)
def set_boot_mode(call: Call, node: str) -> Reply:
    return _set(call, node, "states", "set_boot_mode", mode=call.body["target"])


@operation(
    body=fields.Body("secure boot request", (Field("target", type=_SECURE_BOOT, required=True),)),
    answer=operations.EMPTY_202,
)
def set_secure_boot(call: Call, node: str) -> Reply:
    return _set(call, node, "states", "set_secure_boot", enabled=call.body["target"])


@operation(body=fields.Body("NMI request", ()), answer=operations.EMPTY_204)
def inject_nmi(call: Call, node: str) -> Reply:
    ask(call, node, "inject_nmi")
    return calls.NO_CONTENT


# Indicators


_INDICATOR = fields.object_schema(
    {
        **{name: {"type": "string"} for name in ("name", "component")},
        "readonly": {"type": "boolean"},
        "states": {"type": "array", "items": {"type": "string"}},
        "links": tables.LINKS,
    }
)
_STATE_SHOWN = Answer(shows=Plain(fields.complete_schema({"state": fields.TEXT_SCHEMA})))


@operation(answer=Answer(shows=Plain(fields.list_schema("indicators", _INDICATOR))))
def indicators(call: Call, node: str) -> Reply:
    found = owned(call, node)
    told = call.client.call(call.ctx, found, "get_indicators")
    return Reply({"indicators": [_shown(call, found.uuid, one) for one in told]})


def _shown(call: Call, uuid: str, indicator: dict[str, Any]) -> dict[str, Any]:
    name = f"{indicator['name']}@{indicator['component']}"
    links = tables.link_pair(call, f"nodes/{uuid}/management/indicators/{name}")
    return {**indicator, "name": name, "links": links}


@operation(answer=_STATE_SHOWN)
def indicator(call: Call, node: str, name: str) -> Reply:
    """The state of the light that is called ``name@component``."""
    return indicator_of.handler(call, node, *_parted(name))


@operation(answer=_STATE_SHOWN)
def indicator_of(call: Call, node: str, component: str, name: str) -> Reply:
    return Reply({"state": ask(call, node, "get_indicator_state", component=component, name=name)})


def _lower(_name: str, value: str) -> str:
    return value.lower()


_STATE = fields.FieldType({"type": "string", "maxLength": 80}, _lower)
_STATE_REQUEST = fields.Body("indicator request", (Field("state", type=_STATE, required=True),))


@operation(body=_STATE_REQUEST, answer=operations.EMPTY_204)
def set_indicator(call: Call, node: str, name: str) -> Reply:
    return set_indicator_of.handler(call, node, *_parted(name))


@operation(body=_STATE_REQUEST, answer=operations.EMPTY_204)
def set_indicator_of(call: Call, node: str, component: str, name: str) -> Reply:
    ask(call, node, "set_indicator_state", component=component, name=name, state=call.body["state"])
    return calls.NO_CONTENT


def _parted(name: str) -> tuple[str, str]:
    """Component and name of an indicator.

    :raises Invalid: it is not both.
    """
    own, at, component = name.partition("@")
    if not (own and at and component):
        raise errors.Invalid(field="indicator", value=name, allowed="An indicator is called name@component.")
    return component, own
