"""Conductors: those that ever registered, and which of them are alive."""

from ingot.api.web import collection, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import Answer, operation
from ingot.db import conductors

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
