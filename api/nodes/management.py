"""What only the node's conductor can tell or do at once: boot device, validation, the steps of its cleaning."""

from typing import Any

from ingot.api.nodes import nodes
from ingot.api.web import call as calls
from ingot.api.web import field_types, fields, schemas
from ingot.api.web.call import Answer, Call, Plain, Reply, operation
from ingot.api.web.fields import Field
from ingot.api.web.params import Param
from ingot.common import errors
from ingot.db import models


def owned(call: Call, node: str) -> models.Node:
    """The node that a URL means, with what finding its conductor needs."""
    return nodes.read(call, node, "uuid", "driver", "conductor_group")


def ask(call: Call, node: str, method: str, **arguments: Any) -> Any:
    """Asks the conductor that owns a node; see :meth:`ingot.rpcapi.client.ConductorClient.call`."""
    return call.client.call(call.ctx, owned(call, node), method, **arguments)


_BOOTS = {"boot_device": schemas.OPTIONAL_TEXT, "persistent": {"type": ["boolean", "null"]}}


@operation(answer=Answer(shows=Plain(schemas.complete(_BOOTS))))
def boot_device(call: Call, node: str) -> Reply:
    return Reply(ask(call, node, "get_boot_device"))


@operation(answer=Answer(shows=Plain(schemas.listed("supported_boot_devices", schemas.TEXT))))
def supported_boot_devices(call: Call, node: str) -> Reply:
    return Reply({"supported_boot_devices": ask(call, node, "get_supported_boot_devices")})


_BOOT_DEVICE = fields.Body(
    "boot device request",
    (
        Field("boot_device", type=field_types.text(80, shortest=1, nullable=False), required=True),
        Field("persistent", type=field_types.FLAG),
    ),
)


@operation(body=_BOOT_DEVICE, answer=calls.EMPTY_204)
def set_boot_device(call: Call, node: str) -> Reply:
    given = call.body
    ask(call, node, "set_boot_device", device=given["boot_device"], persistent=given.get("persistent", False))
    return calls.NO_CONTENT


_RESULT = schemas.record({"result": {"type": ["boolean", "null"]}, "reason": schemas.TEXT}, ("result",))
_VALIDATION = Answer(shows=Plain({"type": "object", "additionalProperties": _RESULT}))


@operation(answer=_VALIDATION)
def validate(call: Call, node: str) -> Reply:
    return _validation(call, node)


@operation(Param("node", field_types.ident), Param("node_uuid", field_types.uuid), answer=_VALIDATION)
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


_STEP = schemas.complete({"interface": schemas.TEXT, "step": schemas.TEXT, "priority": {"type": "number"}})


@operation(answer=Answer(shows=Plain({"type": "array", "items": _STEP})))
def cleaning_steps(call: Call, node: str) -> Reply:
    """The enabled clean steps in the order in which they would run (specification 002)."""
    return Reply(ask(call, node, "get_steps", kind="clean"))
