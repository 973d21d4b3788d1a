"""Events of a network service: that a port was bound, unbound or deleted there.

Nothing of what Ingot does waits for the network, so they are checked, logged and answered.
"""

from typing import Any

from oslo_log import log

from ingot.api import call as calls
from ingot.api import fields, kinds, versions
from ingot.api.call import Call, Reply, operation
from ingot.api.fields import Field

LOG = log.getLogger(__name__)

SINCE = 54
"""Minor version that brought events."""

_KNOWN = ("network.bind_port", "network.unbind_port", "network.delete_port")

_EVENT = fields.Body(
    "event",
    (
        Field("event", kind=kinds.Kind({"enum": list(_KNOWN)}), required=True),
        Field("port_id", kind=kinds.Kind({"type": "string"}, kinds.uuid), required=True),
        Field("mac_address", kind=kinds.MAC, required=True),
        Field("status", kind=kinds.REQUIRED_TEXT, required=True),
        Field("device_id", kind=kinds.TEXT),
        Field("binding:host_id", kind=kinds.TEXT),
        Field("binding:vnic_type", kind=kinds.TEXT),
    ),
)


def _each(_name: str, value: list[Any]) -> list[dict[str, Any]]:
    return [_EVENT.check(given, versions.MAX) for given in value]


_BODY = fields.Body(
    "events",
    (
        Field(
            "events",
            kind=kinds.Kind({"type": "array", "minItems": 1, "items": {"type": "object"}}, _each),
            required=True,
        ),
    ),
)


@operation(body=_BODY, answer=calls.EMPTY_204)
def create(call: Call) -> Reply:
    for event in call.body["events"]:
        LOG.info("%s: port %s with %s is %s", *(event[name] for name in ("event", "port_id", "mac_address", "status")))
    return calls.NO_CONTENT
