"""Events of a network service: that a port was bound, unbound or deleted there.

Nothing of what Ingot does waits for the network, so they are checked, logged and answered.
"""

from oslo_log import log

from ingot.api.web import call as calls
from ingot.api.web import fields, operations, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import operation
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

SINCE = 54
"""Minor version that brought events."""

_KNOWN = ("network.bind_port", "network.unbind_port", "network.delete_port")

_EVENT = fields.Body(
    "event",
    (
        Field("event", type=fields.FieldType({"enum": list(_KNOWN)}), required=True),
        Field("port_id", type=fields.FieldType({"type": "string"}, fields.parse_uuid), required=True),
        Field("mac_address", type=fields.MAC, required=True),
        Field("status", type=fields.REQUIRED_TEXT, required=True),
        Field("device_id", type=fields.TEXT),
        Field("binding:host_id", type=fields.TEXT),
        Field("binding:vnic_type", type=fields.TEXT),
    ),
)


def _parse_events(_name: str, value: list[object]) -> list[Json]:
    return [_EVENT.check(given, versions.MAX) for given in value]


_BODY = fields.Body(
    "events",
    (
        Field(
            "events",
            type=fields.FieldType({"type": "array", "minItems": 1, "items": {"type": "object"}}, _parse_events),
            required=True,
        ),
    ),
)


@operation(body=_BODY, answer=operations.EMPTY_204)
def create(call: Call) -> Reply:
    for event in call.body["events"]:
        LOG.info("%s: port %s with %s is %s", *(event[name] for name in ("event", "port_id", "mac_address", "status")))
    return calls.NO_CONTENT
