"""Events: a stream of those of nodes (server-sent events, no part of the OpenStack API), and reports of networks."""

from oslo_log import log
from oslo_utils import uuidutils

from ingot.api.resources import event_views
from ingot.api.web import fields, operations, versions
from ingot.api.web.call import NO_CONTENT, Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import errors
from ingot.db import events, models, node_lists, ports

LOG = log.getLogger(__name__)

REPORTS_SINCE = 54
"""Minor version from which network services report events."""

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}  # the second is for nginx
_SEEN = "Last-Event-ID"
_LONGEST = 18  # digits of an id


def _parse_kinds(name: str, given: str) -> frozenset[str]:
    kinds = operations.parse_names(name, given)
    unknown = [kind for kind in kinds if kind not in events.KINDS]
    if unknown or not kinds:
        raise errors.Invalid(field=name, value=", ".join(unknown), allowed=f"Kinds are: {', '.join(events.KINDS)}.")
    return frozenset(kinds)


def _parse_id(name: str, given: str) -> int:
    if not (given.isascii() and given.isdecimal() and len(given) <= _LONGEST):
        raise errors.Invalid(field=name, value=given, allowed="Send the id of the last event that you have seen.")
    return int(given)


@operation(
    Param("kind", _parse_kinds, repeats=True),
    Param("node", operations.parse_names, repeats=True),
    Param("after", _parse_id),
    answer=Answer(shows=Plain({"type": "string"}), media="text/event-stream"),
)
def follow(call: Call) -> Reply:
    """Send events as they happen.

    The header Last-Event-ID, which clients send when they come back, goes before the parameter ``after``.
    """
    project = call.access.limit_to_project("ingot:events")
    seen = call.headers.get(_SEEN)
    after = _parse_id(_SEEN, seen) if seen else call.query.get("after")
    kinds = call.query.get("kind", events.KINDS)
    uuids = _read_uuids(call, call.query["node"], project) if "node" in call.query else None
    access = call.access

    def show(event: models.Event) -> models.Event | None:
        if event.kind not in kinds or (uuids is not None and event.node_uuid not in uuids):
            return None
        return event_views.show_all(access, event) if project is None else event_views.show_own(access, project, event)

    return Reply(call.feed.open(after, show, project), 200, _HEADERS)


def _read_uuids(call: Call, given: tuple[str, ...], project: str | None) -> frozenset[str]:
    """Return the UUIDs of the given nodes.

    :param project: whose nodes the request is limited to: others have no names for it.
    :raises NotFound: no node has such a name. A UUID may be that of a node that is gone: its events are kept.
    """
    idents = [fields.parse_node_ident(call, one) for one in given]
    named = node_lists.find_named(call.db, idents)
    known = {node.name: node.uuid for node in named if project in (None, node.owner, node.lessee)}
    for one in idents:
        if one not in known and not uuidutils.is_uuid_like(one):
            raise errors.NotFound(noun="Node", ident=one)
    return frozenset(known.get(one, one) for one in idents)


_NETWORK_EVENTS = {"enum": ["network.bind_port", "network.unbind_port", "network.delete_port"]}

_NETWORK_EVENT = fields.Body(
    "event",
    Field("event", type=fields.FieldType(_NETWORK_EVENTS), required=True),
    Field("port_id", type=fields.FieldType({"type": "string"}, fields.parse_uuid), required=True),
    Field("mac_address", type=fields.MAC, required=True),
    Field("status", type=fields.REQUIRED_TEXT, required=True),
    Field("device_id", type=fields.TEXT),
    Field("binding:host_id", type=fields.TEXT),
    Field("binding:vnic_type", type=fields.TEXT),
)

_SEVERAL = fields.FieldType(
    {"type": "array", "minItems": 1, "items": {"type": "object"}},
    lambda _name, value: [_NETWORK_EVENT.check(given, versions.MAX) for given in value],
)
_REPORT = fields.Body("events", Field("events", type=_SEVERAL, required=True))


@operation(body=_REPORT, answer=operations.EMPTY_204)
def report(call: Call) -> Reply:
    """Take what a network service tells of ports: the conductors of nodes that wait for one of them look at it now."""
    for event in call.body["events"]:
        LOG.info("%s: port %s with %s is %s", *(event[name] for name in ("event", "port_id", "mac_address", "status")))
        node = ports.request_check(call.db, event["mac_address"], event["port_id"])
        if node is not None:
            call.client.notify(call.ctx, node, event["event"])
    return NO_CONTENT
