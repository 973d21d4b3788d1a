"""The inbox: machines that were discovered, which an operator accepts as nodes or deletes.

Not part of the OpenStack API: it lives under /ingot/v1. Whatever an entry shows, a machine without credentials has said
of itself; so its BMC address is never taken for the node's, or a machine could have another's password sent to itself.
"""

import dataclasses

from ingot.api.nodes import nodes
from ingot.api.nodes.node_fields import TABLE as NODE_TABLE
from ingot.api.nodes.node_rules import build_row
from ingot.api.web import call as calls
from ingot.api.web import collection, crud, fields, operations, tables, versions
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import Field
from ingot.api.web.operations import operation
from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.db import inbox, models, ports
from ingot.db import nodes as node_rows

_FACTS = ("boot_address", "boot_mode", "bmc_address", "cpu_arch", "cpus", "memory_mb", "disk_sizes")
_VENDOR = ("manufacturer", "product_name", "serial_number")
_ANY: Json = {}


def _build_fact(name: str) -> Field:
    return Field(name, compute=lambda entry, _call: entry.facts.get(name), needs=("facts",), brief=True, schema=_ANY)


TABLE = tables.Table(
    "inbox entry",
    Field("uuid", brief=True, sortable=True),
    *(_build_fact(name) for name in ("addresses", *_FACTS, *_VENDOR)),
    Field("client_address", brief=True, sortable=True),
    Field("seen_at", brief=True, sortable=True),
    Field("seen_count", brief=True, sortable=True),
    *(Field(name, sortable=True) for name in ("created_at", "updated_at")),
    Field("inventory"),
    Field("plugin_data"),
)

_ENTRIES = collection.Collection("inbox", TABLE, inbox.ENTRIES.source, details=False)

_CRUD = crud.Crud(_ENTRIES, inbox.ENTRIES, ident=fields.parse_uuid)

index, show, delete = _CRUD.index, _CRUD.show, _CRUD.delete


class _NodeBody:
    """The body of accept: fields of a new node; none is required, as an option may name the driver."""

    schema = fields.Schema("node", {**NODE_TABLE.creation.schema.document, "required": []})

    def check(self, value: object, minor: int) -> object:
        given = {} if value is None else value
        self.schema.check(given)
        return given


@operation(body=_NodeBody(), answer=operations.Answer(201, nodes.NODES.one))
def accept(call: Call, ident: str) -> Reply:
    """Make a node of an entry, in state enroll: with the body's fields, ports for its cards, and the inventory.

    The body is that of ``POST /v1/nodes``; without a driver it is that of [auto_discovery] driver.
    """
    entry = _CRUD.read_to_write(call, ident)
    body = _complete(call, entry)
    own = dataclasses.replace(call, rule="baremetal:node:create", body=NODE_TABLE.creation.check(body, versions.MAX))
    values = collection.build_row(NODE_TABLE, own.body)
    values["owner"] = nodes.choose_owner(own, values["owner"])
    values |= {"uuid": entry.uuid, "provision_state": states.ENROLL}
    row = build_row(own, values)
    with call.notifier.change(call.ctx, "node", "create", {**values, **row}) as tell:
        made = inbox.accept(call.db, entry, row, _list_ports(entry), values["chassis_uuid"])
        tell(made)
    call.note(made, anew=True)
    _tell_of_ports(call, made)
    return calls.created_reply(call, collection.show(own, nodes.NODES, made), f"/v1/nodes/{made.uuid}", made.version)


def _tell_of_ports(call: Call, made: node_rows.ShownNode) -> None:
    """Notify of the ports that were made with a node."""
    if call.notifier.is_on:
        node = node_rows.get(call.db, made.uuid, ("id", "uuid"))
        for port in ports.PORTS.list_of_node(call.db, node.id):
            with call.notifier.change(call.ctx, "port", "create", {**vars(port), "node_uuid": node.uuid}):
                pass  # it is there already


def _complete(call: Call, entry: models.InboxEntry) -> Json:
    """Return the body, with what the machine says of its processors and memory where the body says nothing."""
    facts = entry.facts
    found = {name: facts[name] for name in ("cpu_arch", "cpus", "memory_mb") if facts.get(name) is not None}
    if facts.get("boot_mode") in ("uefi", "bios"):
        found["capabilities"] = f"boot_mode:{facts['boot_mode']}"
    body: Json = {"driver": call.conf.auto_discovery.driver, **call.body}
    if not body["driver"]:
        raise errors.MissingParameter(where="the body", names="driver (or the option [auto_discovery] driver)")
    if body.get("uuid") not in (None, entry.uuid):
        allowed = f"The entry's own, {entry.uuid}, by which the machine's agent knows its node; or none."
        raise errors.Invalid(field="uuid", value=body["uuid"], allowed=allowed)
    given = body.get("properties")
    return {**body, "properties": {**found, **given} if isinstance(given, dict) else found}


def _list_ports(entry: models.InboxEntry) -> list[Json]:
    """Return the ports of the node: of the card that the machine has booted from, or of all if it does not say."""
    booted = entry.facts.get("boot_address")
    return [{"address": booted}] if booted else [{"address": address} for address in entry.facts["addresses"]]
