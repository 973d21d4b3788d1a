"""Nodes: listing, showing, creating, editing, deleting."""

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_utils import uuidutils

from ingot.api.auth import access
from ingot.api.nodes import node_links, node_rules
from ingot.api.nodes.node_fields import INTERFACE_SINCE, TABLE
from ingot.api.web import call as calls
from ingot.api.web import collection, fields, operations, preconditions, tables
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Operation, Param, operation
from ingot.api.web.tables import Selection
from ingot.common import errors, interfaces, states
from ingot.db import allocations, listing, models, node_crud, node_lists, nodes

FAULTS = ("power failure", "clean failure", "rescue abort failure", "service failure")


def _known(values: Iterable[str]) -> Any:
    allowed = sorted(values)

    def parse(name: str, given: str) -> str:
        if given not in allowed:
            raise errors.Invalid(field=name, value=given, allowed=f"Allowed are: {', '.join(allowed)}.")
        return given

    return parse


_BY_INTERFACE = INTERFACE_SINCE.items()

FILTERS = (
    Param("associated", fields.parse_flag, column="instance_uuid", test="is_set"),
    Param("maintenance", fields.parse_flag, column="maintenance"),
    Param("retired", fields.parse_flag, column="retired"),
    Param("instance_uuid", fields.parse_uuid, column="instance_uuid"),
    Param("chassis_uuid", fields.parse_uuid, column="chassis_uuid"),
    Param("provision_state", _known(states.ALL), 9, "provision_state"),
    Param("driver", fields.parse_text, 16, "driver"),
    Param("resource_class", fields.parse_text, 21, "resource_class"),
    Param("fault", _known(FAULTS), 42, "fault"),
    Param("conductor_group", operations.parse_lower_case, 46, "conductor_group"),
    Param("conductor", fields.parse_text, 49),
    Param("owner", fields.parse_text, 50, "owner"),
    Param("lessee", fields.parse_text, 65, "lessee"),
    Param("project", fields.parse_text, column=("owner", "lessee")),
    Param("description_contains", fields.parse_text, column="description", test="contains"),
    Param("shard", operations.parse_names, 82, "shard", "one_of"),
    Param("sharded", fields.parse_flag, 82, "shard", "is_set"),
    Param("include_children", fields.parse_flag, 83),
    Param("parent_node", fields.parse_text, 83),
    Param("instance_name", fields.parse_text, 104, "instance_name"),
    # Specification 004; each from the version on that shows the field.
    *(Param(interfaces.FIELD[kind], fields.parse_text, since, interfaces.FIELD[kind]) for kind, since in _BY_INTERFACE),
)


def _complete(call: Call, found: list[models.Record], selection: Selection) -> None:
    if "traits" in selection.names:
        known = nodes.traits_by_node(call.db, [node.id for node in found]) if found else {}
        for node in found:
            node.traits = known.get(node.id, [])
    if "conductor" in selection.names:
        _find_owners(call, found)


def _find_owners(call: Call, found: Iterable[models.Record]) -> None:
    """Sets ``conductor`` of each node to the hostname that owns it now, or None."""
    unserved = set()
    for node in found:
        node.conductor = None
        served_by = (node.driver, node.conductor_group)
        if served_by not in unserved:  # the ring looks for newcomers each time it is asked in vain
            node.conductor = call.client.owner(node)
            if node.conductor is None:
                unserved.add(served_by)


NODES = collection.Collection("nodes", TABLE, node_lists.SOURCE, FILTERS, complete=_complete, ownership=access.NODE)

_NODE = operations.Answer(shows=NODES.one)


def read(call: Call, given: str, *columns: str, rule: str | None = None) -> models.Node:
    """The named columns of the node that a URL means, and its owner and lessee.

    :param rule: the rule of policy for what is done with it; the request's by default.
    :raises NotFound: there is none, or none that the request may see.
    :raises Forbidden: the request may not do this with it.
    :raises PreconditionFailed: the request is about to write to it, and it is not as the client knows it.
    """
    known_as = fields.parse_node_ident(call, given)
    needed = (*columns, "owner", "lessee", *(preconditions.NODE if call.preconditions else ()))
    found = listing.get(call.db, node_lists.SOURCE, known_as, needed)
    if call.access.limited:
        call.access.require_seen(rule or call.rule, access.node_target(found), "Node", known_as)
    if call.preconditions:
        call.preconditions.check("Node", found)
    return found


def accept(call: Call, node: models.Node, values: Mapping[str, Any], why: str = "", locked: bool = False) -> None:
    """Writes what a request asks for: the one statement that accepts it. Then rings the node's conductor.

    A dry run ends before it: what comes first is checks.

    :param node: as read; needs what ``node_states.LOCK`` names, or only uuid and revision where no bell is rung.
    :param why: what the bell says; empty where no conductor has anything to do.
    :param locked: whether it is accepted whoever holds the lock.
    """
    if call.dry_run:
        return
    if locked:
        nodes.set_always(call.db, node.uuid, values, node.revision if call.preconditions else None)
    else:
        nodes.compare_and_set(call.db, node, values)
    if why:
        call.client.notify(call.ctx, node, why=why)


@operation(*NODES.index_params, answer=NODES.page)
def index(call: Call) -> Reply:
    if call.query.get("detail") and call.minor < 43:
        raise errors.Invalid(
            field="detail", value="True", allowed="Lists take it from version 1.43; use /v1/nodes/detail."
        )
    return collection.index(call, NODES, beside_filters(call))


@operation(*NODES.detail_params, answer=NODES.page)
def detail(call: Call) -> Reply:
    return collection.index(call, NODES, beside_filters(call), detail=True)


def beside_filters(call: Call) -> list[listing.Condition]:
    """The conditions of a list of nodes that are not those of single columns."""
    where = []
    if "parent_node" in call.query:
        parent = call.query["parent_node"]
        where.append(listing.Condition("parent_node", "equals", _uuid_of(call, parent) or parent))
    elif not call.query.get("include_children"):
        where.append(listing.Condition("parent_node", "is_set", False))
    if "conductor" in call.query:
        where.append(listing.Condition("uuid", "one_of", _owned_by(call, call.query["conductor"])))
    if "chassis_uuid" in call.query:
        listing.get(call.db, node_crud.CHASSIS.source, call.query["chassis_uuid"])
    return where


def may(call: Call, node: str) -> None:
    """Refuses a request that may not do with the node what it asks for; see :func:`read`."""
    read(call, node, "uuid")


def list_of(described: collection.Collection, detail: bool = False) -> Operation:
    """The list of what belongs to one node, at a URL with that node.

    :param detail: show everything, at .../detail.
    """
    unfiltered = described._replace(filters=())

    @operation(*(unfiltered.detail_params if detail else unfiltered.index_params), answer=described.page)
    def of_node(call: Call, node: str) -> Reply:
        return collection.index(call, described, [node_links.node_condition(read(call, node, "id").id)], detail)

    return of_node


def _uuid_of(call: Call, given: str) -> str | None:
    try:
        return node_crud.resolve(call.db, given)[1]
    except errors.NotFound:
        return None


def _owned_by(call: Call, hostname: str) -> list[str]:
    every = node_lists.list_ring_keys(call.db)
    _find_owners(call, every)
    return [node.uuid for node in every if node.conductor == hostname]


@operation(operations.FIELDS, answer=_NODE)
def show(call: Call, node: str) -> Reply:
    selection = TABLE.select(call.minor, call.query.get("fields"))
    found = read(call, node, *selection.columns_of(NODES.source), *preconditions.NODE)
    return Reply(collection.show(call, NODES, found), version=found.version)


@operation(body=TABLE.creation, answer=_NODE._replace(status=201))
def create(call: Call) -> Reply:
    values = collection.build_row(TABLE, call.body)
    values["owner"] = _owner_of_new(call, values["owner"])
    values["uuid"] = values["uuid"] or uuidutils.generate_uuid()
    values["provision_state"] = states.ENROLL if call.minor >= 11 else states.AVAILABLE
    node_crud.create(call.db, node_rules.for_creation(call, values))
    body, version = _whole(call, values["uuid"])
    return calls.created(call, body, f"/v1/nodes/{values['uuid']}", version)


def _owner_of_new(call: Call, asked: str | None) -> str | None:
    """The project that owns a new node: the one that creates it, unless the request is the system's.

    :raises Forbidden: the request may not create nodes.
    :raises Invalid: it may not create them for others.
    """
    own_rule = "baremetal:node:create:self_owned_node"
    if not (call.conf.api.project_admin_can_manage_own_nodes and call.access.permits(own_rule)):
        call.access.require(call.rule)
        return asked
    call.access.require(own_rule)
    own: str | None = call.ctx.project_id
    if call.ctx.system_scope == "all":
        return asked
    if asked not in (None, "", own):
        told = "A new node belongs to the project of the request; only a system-scoped request may name another."
        raise errors.Invalid(field="owner", value=asked, allowed=told)
    return own


@operation(Param("reset_interfaces", fields.parse_flag, 45), body=tables.PATCH_BODY, answer=_NODE)
def update(call: Call, node: str) -> Reply:
    body, version = _whole(call, calls.retry_if_changed(lambda: _update(call, node)))
    return Reply(body, version=version)


def _update(call: Call, given: str) -> str:
    node = read(call, given, *node_rules.EDITED, rule="baremetal:node:get")
    changes = collection.read_changes(call, NODES, node)
    node_rules.refuse_unpermitted(call, node, changes)
    node_rules.refuse_update(node, call.body, changes)
    values = node_rules.for_update(call, node, changes)
    if "instance_uuid" in changes and changes["instance_uuid"] is None:
        allocations.detach(call.db, node, values)
    else:
        nodes.compare_and_set(call.db, node, values)
    uuid: str = node.uuid
    return uuid


@operation(answer=operations.EMPTY_204)
def delete(call: Call, node: str) -> Reply:
    return calls.retry_if_changed(lambda: _delete(call, node))


def _delete(call: Call, given: str) -> Reply:
    found = read(call, given, *node_rules.DELETED, rule="baremetal:node:get")
    own_rule, about = "baremetal:node:delete:self_owned_node", access.node_target(found)
    own = call.conf.api.project_admin_can_manage_own_nodes and call.access.permits(own_rule, about)
    call.access.require(own_rule if own else call.rule, about)
    node_rules.refuse_delete(found)
    node_crud.delete(call.db, found)
    return calls.NO_CONTENT


def _whole(call: Call, uuid: str) -> tuple[dict[str, Any], str]:
    """A node that was just written, and its version."""
    columns = (*TABLE.select(call.minor).columns_of(NODES.source), *preconditions.NODE)
    found = listing.get(call.db, node_lists.SOURCE, uuid, columns)
    return collection.show(call, NODES, found), found.version
