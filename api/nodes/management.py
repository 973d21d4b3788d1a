"""What only the node's conductor can tell or do at once: boot device, validation, the steps of its cleaning."""

from typing import Any

from ingot.api.nodes import nodes
from ingot.api.web import call as calls
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.db import models


def owned(call: Call, node: str) -> models.Node:
    """The node that a URL means, with what finding its conductor needs."""
    return nodes.read(call, node, "uuid", "driver", "conductor_group")


def ask(call: Call, node: str, method: str, **arguments: Any) -> Any:
    """Asks the conductor that owns a node; see :meth:`ingot.rpcapi.client.ConductorClient.call`."""
    return call.client.call(call.ctx, owned(call, node), method, **arguments)


_BOOTS = {"boot_device": fields.OPTIONAL_TEXT_SCHEMA, "persistent": {"type": ["boolean", "null"]}}


@operation(answer=Answer(shows=Plain(fields.complete_schema(_BOOTS))))
def boot_device(call: Call, node: str) -> Reply:
    return Reply(ask(call, node, "get_boot_device"))


@operation(answer=Answer(shows=Plain(fields.list_schema("supported_boot_devices", fields.TEXT_SCHEMA))))
def supported_boot_devices(call: Call, node: str) -> Reply:
    return Reply({"supported_boot_devices": ask(call, node, "get_supported_boot_devices")})


_BOOT_DEVICE = fields.Body(
    "boot device request",
    (
        Field("boot_device", type=fields.text(80, shortest=1, nullable=False), required=True),
        Field("persistent", type=fields.FLAG),
    ),
)


@operation(body=_BOOT_DEVICE, answer=operations.EMPTY_204)
def set_boot_device(call: Call, node: str) -> Reply:
    given = call.body
    ask(call, node, "set_boot_device", device=given["boot_device"], persistent=given.get("persistent", False))
    return calls.NO_CONTENT


_RESULT = fields.object_schema({"result": {"type": ["boolean", "null"]}, "reason": fields.TEXT_SCHEMA}, ("result",))
_VALIDATION = Answer(shows=Plain({"type": "object", "additionalProperties": _RESULT}))


@operation(answer=_VALIDATION)
def validate(call: Call, node: str) -> Reply:
    return _validation(call, node)


@operation(Param("node", fields.parse_ident), Param("node_uuid", fields.parse_uuid), answer=_VALIDATION)
def validate_named(call: Call) -> Reply:
    named = call.query.get("node") or call.query.get("node_uuid")
    if named is None:
        raise errors.Invalid("Say which node: send node= (a UUID or name) or node_uuid=.")
    return _validation(call, named)


def _validation(call: Call, node: str) -> Reply:
    """The result of each interface; a reason only where there is one."""
    results: dict[str, dict[str, Any]] = ask(call, node, "validate_node")
    return Reply({kind: _without_no_reason(result) for kind, result in results.items()})


def _without_no_reason(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "reason" or value is not None}


_STEP = fields.complete_schema(
    {"interface": fields.TEXT_SCHEMA, "step": fields.TEXT_SCHEMA, "priority": {"type": "number"}}
)


@operation(answer=Answer(shows=Plain({"type": "array", "items": _STEP})))
def cleaning_steps(call: Call, node: str) -> Reply:
    """The enabled clean steps in the order in which they would run (specification 002)."""
    return Reply(ask(call, node, "get_steps", kind="clean"))
