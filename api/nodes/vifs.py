"""VIFs of nodes: the virtual interfaces of a network service that a machine's ports are put on."""

from typing import Any

from ingot.api.nodes.management import ask
from ingot.api.web import call as calls
from ingot.api.web import fields, operations
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Answer, Plain, operation
from ingot.common import errors

_PLACES = ("port_uuid", "portgroup_uuid")
_PLACES_SINCE = 67


class _Vif:
    """The request body: ``id``, where to put it, and whatever else the network service understands."""

    schema = fields.Schema(
        "vif",
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("id", *_PLACES)},
            "required": ["id"],
        },
    )

    def check(self, value: Any, minor: int) -> dict[str, Any]:
        body = {} if value is None else value
        self.schema.check(body)
        given = [name for name in _PLACES if name in body]
        if given and minor < _PLACES_SINCE:
            raise errors.VersionRefused(minor=_PLACES_SINCE)
        if len(given) > 1:
            raise errors.Invalid(f"Cannot specify both {' and '.join(_PLACES)}: leave one out.")
        return {
            **body,
            "id": fields.parse_ident("id", body["id"]),
            **{name: fields.parse_uuid(name, body[name]) for name in given},
        }


@operation(answer=Answer(shows=Plain(fields.list_schema("vifs", {"type": "object", "required": ["id"]}))))
def index(call: Call, node: str) -> Reply:
    return Reply({"vifs": ask(call, node, "list_vifs")})


@operation(body=_Vif(), answer=operations.EMPTY_204)
def attach(call: Call, node: str) -> Reply:
    ask(call, node, "attach_vif", vif=call.body)
    return calls.NO_CONTENT


@operation(answer=operations.EMPTY_204)
def detach(call: Call, node: str, vif: str) -> Reply:
    ask(call, node, "detach_vif", vif_id=fields.parse_ident("VIF", vif))
    return calls.NO_CONTENT
