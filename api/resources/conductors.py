"""Conductors: those that ever registered, and which of them are alive.

Ingot's own URLs show what each has to do as well, and drain it.
"""

from collections import Counter

from ingot.api.web import collection, fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, Param, Plain, operation
from ingot.common import clock, errors
from ingot.common.json_types import Json
from ingot.db import conductors, node_lists
from ingot.rpcapi import drains

TABLE = tables.Table(
    "conductor",
    Field("hostname", 49, brief=True, sortable=True),
    Field("conductor_group", 49, brief=True, sortable=True),
    tables.links_field("conductors", "hostname"),
    Field("alive", 49, brief=True),
    Field("created_at", 49, sortable=True),
    Field("updated_at", 49, sortable=True),
    Field("drivers", 49),
)


def _complete(call: Call, found: list[conductors.Conductor], selection: tables.Selection) -> None:
    timeout = call.conf.conductor.heartbeat_timeout
    if "alive" in selection.names:
        online = conductors.online_hosts(call.db, timeout)
        for conductor in found:
            conductor.alive = conductor.hostname in online
    if "drivers" in selection.names:
        known = conductors.drivers_by_host(call.db)
        for conductor in found:
            conductor.drivers = known.get(conductor.hostname, [])


CONDUCTORS = collection.Collection(
    "conductors", TABLE, conductors.SOURCE, marker=operations.parse_filled, complete=_complete
)


index = collection.build_list(CONDUCTORS)


@operation(operations.FIELDS, answer=Answer(shows=CONDUCTORS.one))
def show(call: Call, hostname: str) -> Reply:
    found = conductors.get(call.db, hostname, call.conf.conductor.heartbeat_timeout)
    return Reply(collection.show(call, CONDUCTORS, found))


# Ingot's own

_LOAD_WITHIN_S = 2.0
"""Seconds within which conductors say how much they have to do, all together."""

_NUMBER: Json = {"type": "integer"}
_BREAKER = dict.fromkeys(("address", "since", "reason"), fields.TEXT_SCHEMA)
_POOL = {"name": fields.TEXT_SCHEMA, "busy": _NUMBER, "most": _NUMBER}
_LOAD = {
    **dict.fromkeys(("threads_busy", "threads_most", "working", "queue"), _NUMBER),
    "pools": {"type": "array", "items": fields.complete_schema(_POOL)},
    "breakers": {"type": "array", "items": fields.complete_schema(_BREAKER)},
}
_STANDING = {
    **dict.fromkeys(("hostname", "state", "release", "rpc_version", "conductor_group"), fields.TEXT_SCHEMA),
    **dict.fromkeys(("alive", "draining"), fields.FLAG_SCHEMA),
    "heartbeat_age": {"type": "number"},
    "drivers": {"type": "array", "items": fields.TEXT_SCHEMA},
    **dict.fromkeys(("nodes", "locked"), _NUMBER),
    "load": {"anyOf": [fields.complete_schema(_LOAD), {"type": "null"}]},
    "load_error": fields.OPTIONAL_TEXT_SCHEMA,
}


@operation(answer=Answer(shows=Plain(fields.list_schema("conductors", fields.complete_schema(_STANDING)))))
def list_standings(call: Call) -> Reply:
    """List all conductors with what each owns, has locked and has to do.

    How much they have to do they say themselves; of one that does not in time, the reason is shown instead.
    """
    found = drains.list_all(call.db, call.conf.conductor.heartbeat_timeout)
    drivers = conductors.drivers_by_host(call.db)
    owned = Counter(call.client.owners(node_lists.list_ring_keys(call.db)).values())
    alive = {one.conductor.hostname: one.conductor.rpc_version for one in found if one.conductor.alive}
    loads = call.client.ask_all(call.ctx, alive, "get_load", _LOAD_WITHIN_S)

    def render(one: drains.Standing) -> Json:
        conductor, host = one.conductor, one.conductor.hostname
        load = loads.get(host, errors.ConductorAway(what=f"Conductor {host}", reason=one.state))
        failed = isinstance(load, errors.IngotError)
        return {
            **{name: getattr(conductor, name) for name in ("hostname", "release", "rpc_version", "conductor_group")},
            "alive": bool(conductor.alive),
            "draining": conductor.drain is not None,
            "state": one.state,
            "heartbeat_age": max((clock.now() - conductor.heartbeat_at).total_seconds(), 0.0),
            "drivers": drivers.get(host, []),
            "nodes": owned[host],
            "locked": one.locked,
            "load": None if failed else load,
            "load_error": load.message if failed else None,
        }

    return Reply({"conductors": [render(one) for one in found]})


_MOVE = fields.complete_schema({"to": fields.TEXT_SCHEMA, "nodes": _NUMBER})
_LEAVING = {
    **dict.fromkeys(("nodes", "orphans", "busy"), _NUMBER),
    "moves": {"type": "array", "items": _MOVE},
}


@operation(answer=Answer(shows=Plain(fields.complete_schema(_LEAVING))))
def preview_leaving(call: Call, hostname: str) -> Reply:
    """Show which conductors would get the nodes of one that left, and how many would be without any."""
    found = drains.preview(call.db, call.conf, hostname)
    moves = [{"to": heir, "nodes": count} for heir, count in found.moves.items()]
    return Reply({**found._asdict(), "moves": moves})


@operation(Param("force", fields.parse_flag), answer=operations.EMPTY_202)
def drain(call: Call, hostname: str) -> Reply:
    """Take a conductor off the hash ring: it finishes what runs, and stays online.

    With ``force``, also if some nodes are then served by no conductor.
    """
    timeout = call.conf.conductor.heartbeat_timeout
    conductors.get(call.db, hostname, timeout)
    drains.refuse_old(call.db, timeout, [hostname])
    if not call.query.get("force"):
        drains.refuse_orphans(call.db, timeout, [hostname], "send force=true")
    conductors.drain(call.db, hostname)
    return Reply(None, 202)


@operation(answer=operations.EMPTY_202)
def undrain(call: Call, hostname: str) -> Reply:
    """Let a conductor come back to the hash ring; it does so at its next heartbeat, if it runs."""
    conductors.undrain(call.db, hostname)
    return Reply(None, 202)
