"""What only the node's conductor can tell or do at once: validation, steps, boot, console, indicators, VIFs, media."""

from typing import Any, cast

from ingot.api.nodes import nodes
from ingot.api.web import call as calls
from ingot.api.web import fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.common.json_types import Json

SERVED = ("uuid", "driver", "conductor_group")
"""What finding a node's conductor needs."""


def ask(call: Call, node: str, method: str, **arguments: object) -> Any:
    """Ask the conductor that owns a node; see :meth:`ingot.rpcapi.client.ConductorClient.call`."""
    return call.client.call(call.ctx, nodes.read(call, node, *SERVED), method, **arguments)


def _order(call: Call, node: str, method: str, shown_at: str = "", **arguments: object) -> Reply:
    """Have the node's conductor do something. It is done when the answer is sent.

    :param shown_at: where its effect can be seen, for the answer 202 that clients expect of some.
    """
    found = nodes.read(call, node, *SERVED)
    call.client.call(call.ctx, found, method, **arguments)
    return calls.accepted_reply(call, f"/v1/nodes/{found.uuid}/{shown_at}") if shown_at else calls.NO_CONTENT


# Validation and steps

_RESULT = fields.object_schema({"result": fields.FLAG_SCHEMA, "reason": fields.TEXT_SCHEMA}, ("result",))
_VALIDATION = Answer(shows=Plain({"type": "object", "additionalProperties": _RESULT}))


@operation(answer=_VALIDATION)
def validate(call: Call, node: str) -> Reply:
    """Show the result of each interface; a reason only where there is one."""
    results: dict[str, Json] = ask(call, node, "validate_node")
    plain = {name: {"result": result["result"]} for name, result in results.items() if result.get("reason") is None}
    return Reply(results | plain)


@operation(Param("node", fields.parse_ident), Param("node_uuid", fields.parse_uuid), answer=_VALIDATION)
def validate_by_query(call: Call) -> Reply:
    ident = call.query.get("node") or call.query.get("node_uuid")
    if ident is None:
        raise errors.Invalid("Say which node: send node= (a UUID or name) or node_uuid=.")
    return validate.handler(call, ident)


_STEP = fields.complete_schema(
    {
        **dict.fromkeys(("interface", "step"), fields.TEXT_SCHEMA),
        "priority": {"type": "number"},
        "offered_at": fields.OPTIONAL_TEXT_SCHEMA,
    }
)


@operation(answer=Answer(shows=Plain({"type": "array", "items": _STEP})))
def list_cleaning_steps(call: Call, node: str) -> Reply:
    """List the enabled clean steps in the order in which they would run (specification 002).

    ``offered_at`` is when the node's last agent has offered a step; conductors of release 0.2 do not tell.
    """
    return Reply([{"offered_at": None, **step} for step in ask(call, node, "get_steps", kind="clean")])


_OFFER = {
    "interface": fields.OPTIONAL_TEXT_SCHEMA,
    **dict.fromkeys(("step", "runner"), fields.TEXT_SCHEMA),
    "priority": {"type": "number"},
    "offered_at": fields.OPTIONAL_TEXT_SCHEMA,
    "argsinfo": {"type": ["object", "null"], "additionalProperties": {"type": "object"}},
    **dict.fromkeys(("abortable", "requires_ramdisk"), fields.FLAG_SCHEMA),
}


@operation(
    Param("flow", operations.build_choice(("clean", "deploy", "service"))),
    answer=Answer(shows=Plain(fields.list_schema("steps", fields.complete_schema(_OFFER)))),
)
def list_offered_steps(call: Call, node: str) -> Reply:
    """List the steps that the machine's driver and its last agent offer for a flow, with their arguments.

    Those of priority 0 run only when they are asked for; those without an interface can be named on any.
    """
    return Reply({"steps": ask(call, node, "get_offered_steps", kind=call.query.get("flow", "deploy"))})


# Sensors

_SENSOR = {
    **dict.fromkeys(("id", "name", "kind"), fields.TEXT_SCHEMA),
    "reading": fields.OPTIONAL_NUMBER_SCHEMA,
    **dict.fromkeys(("unit", "health", "place"), fields.OPTIONAL_TEXT_SCHEMA),
    "thresholds": {"type": "object", "additionalProperties": {"type": "number"}},
    "states": {"type": "array", "items": fields.TEXT_SCHEMA},
}


@operation(answer=Answer(shows=Plain(fields.list_schema("sensors", fields.complete_schema(_SENSOR)))))
def list_sensors(call: Call, node: str) -> Reply:
    """List the machine's sensors with what they read now: the conductor asks the BMC."""
    return Reply({"sensors": ask(call, node, "get_sensors")})


# How the machine boots

_BOOT_SHOWN = {"boot_device": fields.OPTIONAL_TEXT_SCHEMA, "persistent": {"type": ["boolean", "null"]}}
_BOOT_DEVICE = fields.Body(
    "boot device request",
    Field("boot_device", type=fields.text(80, shortest=1, nullable=False), required=True),
    Field("persistent", type=fields.FLAG),
)
_BOOT_MODE = fields.FieldType({"enum": ["bios", "uefi"]})
_BOOT_MODE_REQUEST = fields.Body("boot mode request", Field("target", type=_BOOT_MODE, required=True))
_SECURE_BOOT = fields.FieldType({"type": ["boolean", "string"]}, fields.parse_flag)
_SECURE_BOOT_REQUEST = fields.Body("secure boot request", Field("target", type=_SECURE_BOOT, required=True))


@operation(answer=Answer(shows=Plain(fields.complete_schema(_BOOT_SHOWN))))
def show_boot_device(call: Call, node: str) -> Reply:
    return Reply(ask(call, node, "get_boot_device"))


@operation(answer=Answer(shows=Plain(fields.list_schema("supported_boot_devices", fields.TEXT_SCHEMA))))
def list_boot_devices(call: Call, node: str) -> Reply:
    return Reply({"supported_boot_devices": ask(call, node, "get_supported_boot_devices")})


@operation(body=_BOOT_DEVICE, answer=operations.EMPTY_204)
def set_boot_device(call: Call, node: str) -> Reply:
    persistent = call.body.get("persistent", False)
    return _order(call, node, "set_boot_device", device=call.body["boot_device"], persistent=persistent)


@operation(body=_BOOT_MODE_REQUEST, answer=operations.EMPTY_202)
def set_boot_mode(call: Call, node: str) -> Reply:
    return _order(call, node, "set_boot_mode", "states", mode=call.body["target"])


@operation(body=_SECURE_BOOT_REQUEST, answer=operations.EMPTY_202)
def set_secure_boot(call: Call, node: str) -> Reply:
    return _order(call, node, "set_secure_boot", "states", enabled=call.body["target"])


@operation(body=fields.Body("NMI request"), answer=operations.EMPTY_204)
def inject_nmi(call: Call, node: str) -> Reply:
    return _order(call, node, "inject_nmi")


# Console

_CONSOLE = fields.complete_schema({"console_enabled": fields.FLAG_SCHEMA, "console_info": {"type": ["object", "null"]}})
_CONSOLE_REQUEST = fields.Body("console request", Field("enabled", type=fields.FLAG, required=True))


@operation(answer=Answer(shows=Plain(_CONSOLE)))
def show_console(call: Call, node: str) -> Reply:
    """Show whether it is on, and where it is."""
    shown: Json = ask(call, node, "get_console")
    info = shown["console_info"]
    if info and info["type"] == "websocket":
        scheme, _, place = call.base.partition("://")
        info["url"] = f"{'wss' if scheme == 'https' else 'ws'}://{place}{info['url']}"
    return Reply(shown)


@operation(body=_CONSOLE_REQUEST, answer=operations.EMPTY_202)
def set_console(call: Call, node: str) -> Reply:
    return _order(call, node, "set_console", "states/console", enabled=call.body["enabled"])


# Indicators

_INDICATOR = fields.object_schema(
    {
        **dict.fromkeys(("name", "component"), fields.TEXT_SCHEMA),
        "readonly": fields.FLAG_SCHEMA,
        "states": {"type": "array", "items": fields.TEXT_SCHEMA},
        "links": tables.LINKS,
    }
)
_STATE_SHOWN = Answer(shows=Plain(fields.complete_schema({"state": fields.TEXT_SCHEMA})))
_STATE = fields.FieldType({"type": "string", "maxLength": 80}, operations.parse_lower_case)
_STATE_REQUEST = fields.Body("indicator request", Field("state", type=_STATE, required=True))


@operation(answer=Answer(shows=Plain(fields.list_schema("indicators", _INDICATOR))))
def list_indicators(call: Call, node: str) -> Reply:
    found = nodes.read(call, node, *SERVED)
    indicators: list[Json] = call.client.call(call.ctx, found, "get_indicators")
    for indicator in indicators:
        indicator["name"] = name = f"{indicator['name']}@{indicator['component']}"
        indicator["links"] = tables.build_links(call, f"nodes/{found.uuid}/management/indicators/{name}")
    return Reply({"indicators": indicators})


@operation(answer=_STATE_SHOWN)
def show_indicator(call: Call, node: str, name: str, component: str = "") -> Reply:
    """Show the state of the light that is called ``name@component``."""
    return Reply({"state": ask(call, node, "get_indicator_state", **_parse_indicator(name, component))})


@operation(body=_STATE_REQUEST, answer=operations.EMPTY_204)
def set_indicator(call: Call, node: str, name: str, component: str = "") -> Reply:
    named = _parse_indicator(name, component)
    return _order(call, node, "set_indicator_state", **named, state=call.body["state"])


def _parse_indicator(name: str, component: str) -> dict[str, str]:
    """Return component and name of an indicator.

    :param component: empty where the name holds it.
    :raises Invalid: the name should hold it, and does not.
    """
    if component:
        return {"component": component, "name": name}
    own, _at, component = name.partition("@")
    if not (own and component):
        raise errors.Invalid(field="indicator", value=name, allowed="An indicator is called name@component.")
    return {"component": component, "name": own}


# VIFs: the virtual interfaces of a network service that the machine's ports are put on

_PLACES = ("port_uuid", "portgroup_uuid")
_PLACES_SINCE = 67


class _Vif:
    """The request body: ``id``, where to put it, and whatever else the network service understands."""

    schema = fields.Schema(
        "vif",
        {"type": "object", "properties": dict.fromkeys(("id", *_PLACES), fields.TEXT_SCHEMA), "required": ["id"]},
    )

    def check(self, value: object, minor: int) -> Json:
        body = cast(Json, {} if value is None else value)
        self.schema.check(body)
        given = [name for name in _PLACES if name in body]
        if given and minor < _PLACES_SINCE:
            raise errors.VersionRefused(minor=_PLACES_SINCE)
        if len(given) > 1:
            raise errors.Invalid(f"Cannot specify both {' and '.join(_PLACES)}: leave one out.")
        places = {name: fields.parse_uuid(name, body[name]) for name in given}
        return {**body, "id": fields.parse_ident("id", body["id"]), **places}


@operation(answer=Answer(shows=Plain(fields.list_schema("vifs", {"type": "object", "required": ["id"]}))))
def list_vifs(call: Call, node: str) -> Reply:
    return Reply({"vifs": ask(call, node, "list_vifs")})


@operation(body=_Vif(), answer=operations.EMPTY_204)
def attach_vif(call: Call, node: str) -> Reply:
    return _order(call, node, "attach_vif", vif=call.body)


@operation(answer=operations.EMPTY_204)
def detach_vif(call: Call, node: str, vif: str) -> Reply:
    return _order(call, node, "detach_vif", vif_id=fields.parse_ident("VIF", vif))


@operation(answer=operations.EMPTY_204)
def detach_unnamed_vif(call: Call, node: str) -> Reply:
    """Refuse a request without the VIF in its path, as Ironic does: with 400, which tempest expects."""
    found = nodes.read(call, node, *SERVED)
    path = f"/v1/nodes/{found.uuid}/vifs/<VIF>"
    raise errors.Invalid(f"Say which VIF of node {found.uuid} is to be detached: DELETE {path}.")


# Virtual media: images that the machine sees as if they were in drives of its own

_DEVICE_TYPES = ("disk", "cdrom", "floppy")
_SCHEMES = ("http", "https", "file", "glance", "oci")


def _parse_image_url(name: str, value: str) -> str:
    scheme, colon, _rest = value.partition("://")
    if not colon or scheme not in _SCHEMES:
        allowed = f"Expected a URL that begins with one of: {', '.join(_SCHEMES)}."
        raise errors.Invalid(field=name, value=value, allowed=allowed)
    return fields.parse_text(name, value)


_IMAGE_URL = fields.FieldType({"type": "string", "maxLength": 2**16}, _parse_image_url)
_MEDIUM = fields.Body(
    "vmedia",
    Field("device_type", type=fields.FieldType({"enum": list(_DEVICE_TYPES)}), required=True),
    Field("image_url", type=_IMAGE_URL, required=True),
    Field("image_download_source", type=fields.FieldType({"enum": ["http", "local", "swift"]})),
)


@operation(since=93, answer=Answer(shows=Plain({"type": "array", "items": {"type": "object"}})))
def show_vmedia(call: Call, node: str) -> Reply:
    return Reply(ask(call, node, "get_virtual_media"))


@operation(body=_MEDIUM, answer=operations.EMPTY_204)
def attach_vmedia(call: Call, node: str) -> Reply:
    medium = {"device_type": call.body["device_type"], "image_url": call.body["image_url"]}
    return _order(call, node, "attach_virtual_media", **medium, source=call.body.get("image_download_source"))


def _parse_device_types(name: str, given: str) -> list[str]:
    types = operations.parse_names(name, given)
    unknown = [one for one in types if one not in _DEVICE_TYPES]
    if unknown:
        allowed = f"Allowed are some of {', '.join(_DEVICE_TYPES)}."
        raise errors.Invalid(field=name, value=", ".join(unknown), allowed=allowed)
    return list(types or _DEVICE_TYPES)


@operation(Param("device_types", _parse_device_types, repeats=True), answer=operations.EMPTY_204)
def detach_vmedia(call: Call, node: str) -> Reply:
    types = call.query.get("device_types", list(_DEVICE_TYPES))
    return _order(call, node, "detach_virtual_media", device_types=types)
