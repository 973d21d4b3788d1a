"""Nodes: listing, showing, creating, editing, deleting."""

from collections.abc import Collection, Mapping

from oslo_utils import uuidutils

from ingot.api.auth import access
from ingot.api.nodes import node_links, node_rules
from ingot.api.nodes.node_fields import INTERFACE_SINCE, TABLE
from ingot.api.web import call as calls
from ingot.api.web import collection, fields, operations, preconditions, tables, trait_names
from ingot.api.web.call import Call, Reply
from ingot.api.web.operations import Operation, Param, Plain, operation
from ingot.api.web.tables import Selection
from ingot.common import errors, interfaces, states, tracing
from ingot.common.json_types import Requester
from ingot.db import allocations, listing, models, node_crud, node_lists, nodes
from ingot.db.nodes import ShownNode

FAULTS = ("power failure", "clean failure", "rescue abort failure", "service failure")


FILTERS = (
    Param("associated", fields.parse_flag, column="instance_uuid", test="is_set"),
    Param("maintenance", fields.parse_flag, column="maintenance"),
    Param("retired", fields.parse_flag, column="retired"),
    Param("instance_uuid", fields.parse_uuid, column="instance_uuid"),
    Param("chassis_uuid", fields.parse_uuid),
    Param("provision_state", operations.build_choice(states.ALL), 9, "provision_state"),
    Param("driver", fields.parse_text, 16, "driver"),
    Param("resource_class", fields.parse_text, 21, "resource_class"),
    Param("fault", operations.build_choice(FAULTS), 42, "fault"),
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
    *(
        Param(interfaces.FIELD[name], fields.parse_text, since, interfaces.FIELD[name])
        for name, since in INTERFACE_SINCE.items()
    ),
)


def _complete(call: Call, found: list[ShownNode], selection: Selection) -> None:
    if "conductor" in selection.names:
        owners = call.client.owners(found)
        for node in found:
            node.conductor = owners[node.uuid]


NODES = collection.Collection("nodes", TABLE, node_lists.SOURCE, FILTERS, complete=_complete, ownership=access.NODE)

_NODE = operations.Answer(shows=NODES.one)


def read(
    call: Call, node: str, *columns: str, rule: str | None = None, kept: frozenset[str] = frozenset()
) -> ShownNode:
    """Return the node that a URL means: the named columns, owner and lessee.

    :param rule: the rule of policy for what is done with it; the request's by default.
    :param kept: columns that are read as they are kept; see :func:`ingot.db.models.as_kept`.
    :raises NotFound: there is none, or none that the request may see.
    :raises Forbidden: the request may not do this with it.
    :raises PreconditionFailed: the request is about to write to it, and it is not as the client knows it.
    """
    ident = fields.parse_node_ident(call, node)
    more = (*call.notifier.node_columns, *(("uuid", "name") if call.subject else ())) if call.changes else ()
    needed = ("id", *columns, "owner", "lessee", *(preconditions.NODE if call.preconditions else ()), *more)
    found = nodes.get(call.db, ident, dict.fromkeys(needed), kept)
    call.note(found)
    if call.access.limited:
        call.access.require_seen(rule or call.rule, access.build_node_target(found), "Node", ident)
    if call.preconditions:
        call.preconditions.check("Node", found)
    return found


def build_requester(call: Call) -> Requester:
    """Return what accepted work keeps of the request that asks for it."""
    ctx = call.ctx
    asked_by: Requester = {
        "user": ctx.user_id,
        "project": ctx.project_id,
        "roles": ctx.roles,
        "request_id": ctx.request_id,
        "global_request_id": ctx.global_request_id,
    }
    if tracing.THIS.tracer is not None and (parent := tracing.current()):
        asked_by["traceparent"] = parent
    return asked_by


def accept(call: Call, node: models.Node, values: Mapping[str, object], why: str = "", locked: bool = False) -> None:
    """Write what a request asks for: the one statement that accepts it. Then notify the node's conductor.

    A dry run ends before it: what comes first is checks.

    :param node: as read; needs what ``node_states.LOCK`` names, or only uuid and revision where ``why`` is empty.
    :param why: the reason of the wake-up; empty where no conductor has anything to do.
    :param locked: whether it is accepted whichever conductor holds the lock.
    """
    if call.dry_run:
        return
    if locked:
        nodes.set_always(call.db, node.uuid, values, node.revision if call.preconditions else None)
    else:
        nodes.compare_and_set(call.db, node, values)
    call.notifier.tell_transitions(call.ctx, vars(node), values)
    if why:
        call.client.notify(call.ctx, node, why=why)


@operation(*NODES.params(), answer=NODES.page)
def index(call: Call) -> Reply:
    if call.query.get("detail") and call.minor < 43:
        allowed = "Lists take it from version 1.43; use /v1/nodes/detail."
        raise errors.Invalid(field="detail", value="True", allowed=allowed)
    return collection.index(call, NODES, build_conditions(call))


def build_conditions(call: Call) -> list[listing.Condition]:
    """Return the conditions of a list of nodes that are not those of single columns."""
    where = []
    if "parent_node" in call.query:
        parent = call.query["parent_node"]
        try:
            parent = nodes.get(call.db, parent, ("uuid",)).uuid
        except errors.NotFound:
            pass  # as a uuid that no node has: the list is empty
        where.append(listing.Condition("parent_node", "equals", parent))
    elif not call.query.get("include_children"):
        where.append(listing.Condition("parent_node", "is_empty", True))
    if "conductor" in call.query:
        groups = call.client.groups_of(call.query["conductor"])
        owners = call.client.owners(node_lists.list_ring_keys(call.db, groups=groups))
        owned = [uuid for uuid, owner in owners.items() if owner == call.query["conductor"]]
        where.append(listing.Condition("uuid", "one_of", owned))
    if "chassis_uuid" in call.query:
        chassis = listing.get(call.db, node_crud.CHASSIS.source, call.query["chassis_uuid"], ("id",))
        where.append(listing.Condition("chassis_id", "equals", chassis.id))
    return where


detail = collection.build_list(NODES, build_conditions, detail=True)


_CHILDREN = fields.complete_schema(
    {
        "children": {"type": "array", "items": {"type": "string", "format": "uuid"}},
        "links": fields.complete_schema({"href": fields.TEXT_SCHEMA, "rel": fields.TEXT_SCHEMA}),
    }
)


@operation(answer=operations.Answer(shows=Plain(_CHILDREN)))
def list_children(call: Call, node: str) -> Reply:
    """List the UUIDs of a node's children, with the link to the list that shows more of them."""
    parent = read(call, node, "uuid").uuid
    where = [listing.Condition("parent_node", "equals", parent), *collection.build_ownership_conditions(call, NODES)]
    found = listing.page(call.db, node_lists.SOURCE, ("uuid",), listing.Page(where=where))
    link = {"href": f"{call.base}/v1/nodes?parent_node={parent}", "rel": "children"}
    return Reply({"children": [child.uuid for child in found], "links": link})


def build_list_of_node(described: collection.Collection[listing.AnyModel], detail: bool = False) -> Operation:
    """Return the list of what belongs to one node, at a URL with that node.

    :param detail: show everything, at .../detail.
    """

    def build_conditions(call: Call, node: str) -> list[listing.Condition]:
        return [node_links.node_condition(read(call, node, "id").id)]

    return collection.build_list(described._replace(filters=()), build_conditions, detail)


@operation(operations.FIELDS, answer=_NODE)
def show(call: Call, node: str) -> Reply:
    selection = TABLE.select(call.minor, call.query.get("fields"))
    found = read(call, node, *selection.columns, *preconditions.NODE, kept=selection.kept)
    return Reply(collection.show(call, NODES, found), version=found.version)


@operation(body=TABLE.creation, answer=_NODE._replace(status=201))
def create(call: Call) -> Reply:
    values = collection.build_row(TABLE, call.body)
    values["owner"] = choose_owner(call, values["owner"])
    values["uuid"] = values["uuid"] or uuidutils.generate_uuid()
    values["provision_state"] = states.ENROLL if call.minor >= 11 else states.AVAILABLE
    row = node_rules.build_row(call, values)
    with call.notifier.change(call.ctx, "node", "create", {**values, **row}) as tell:
        made = node_crud.create(call.db, row, values["chassis_uuid"])
        tell(made)
    call.note(made)
    return calls.created_reply(call, collection.show(call, NODES, made), f"/v1/nodes/{made.uuid}", made.version)


def choose_owner(call: Call, requested: str | None) -> str | None:
    """Return the project that owns a new node: that of the request, unless the request is the system's.

    :raises Forbidden: the request may not create nodes.
    :raises Invalid: it may not create them for others.
    """
    own_rule = "baremetal:node:create:self_owned_node"
    own = call.conf.api.project_admin_can_manage_own_nodes and call.access.permits(own_rule)
    call.access.require(own_rule if own else call.rule)
    if not own or call.ctx.system_scope == "all":
        return requested
    project: str | None = call.ctx.project_id
    if requested not in (None, "", project):
        allowed = "A new node belongs to the project of the request; only a system-scoped request may name another."
        raise errors.Invalid(field="owner", value=requested, allowed=allowed)
    return project


@operation(Param("reset_interfaces", fields.parse_flag, 45), body=tables.PATCH_BODY, answer=_NODE)
@calls.repeat_if_changed
def update(call: Call, node: str) -> Reply:
    found = read(call, node, *node_rules.NEEDED_TO_UPDATE, rule="baremetal:node:get")
    changes = collection.read_changes(call, NODES, found)
    node_rules.refuse_unpermitted(call, found, changes)
    node_rules.refuse_update(found, call.body, changes)
    values = node_rules.build_changes(call, found, changes)
    with call.notifier.change(call.ctx, "node", "update", {**vars(found), **values}) as tell:
        if "instance_uuid" in changes and changes["instance_uuid"] is None:
            allocations.detach(call.db, found, values)
        else:
            nodes.compare_and_set(call.db, found, values)
        written = _read_written(call, found.uuid)
        tell(written)
    return Reply(collection.show(call, NODES, written), version=written.version)


@operation(answer=operations.EMPTY_204)
@calls.repeat_if_changed
def delete(call: Call, node: str) -> Reply:
    found = read(call, node, *node_rules.NEEDED_TO_DELETE, rule="baremetal:node:get")
    own_rule, target = "baremetal:node:delete:self_owned_node", access.build_node_target(found)
    own = call.conf.api.project_admin_can_manage_own_nodes and call.access.permits(own_rule, target)
    call.access.require(own_rule if own else call.rule, target)
    node_rules.refuse_delete(found)
    with call.notifier.change(call.ctx, "node", "delete", found):
        node_crud.delete(call.db, found)
    return calls.NO_CONTENT


def _read_written(call: Call, uuid: str) -> ShownNode:
    """Return a node that was just written."""
    selection = TABLE.select(call.minor)
    columns = dict.fromkeys(("id", *selection.columns, *preconditions.NODE, *call.notifier.node_columns))
    # Notifications need values, not the texts that are kept.
    return nodes.get(call.db, uuid, columns, frozenset() if call.notifier.is_on else selection.kept)


def _show_traits(call: Call, node: str) -> Reply:
    """List the traits."""
    found = read(call, node, "id", *preconditions.NODE)
    return Reply({"traits": nodes.traits_by_node(call.db, [found.id]).get(found.id, [])}, version=found.version)


@calls.repeat_if_changed
def _change_traits(call: Call, node: str, added: Collection[str], removed: Collection[str] | None) -> str:
    """Change the traits as :func:`ingot.db.node_crud.change_traits` does, and return the node's uuid.

    :raises NotFound: it has no such trait that could be removed.
    """
    found = read(call, node, "id", "uuid", "revision")
    for name in removed or ():
        if name not in nodes.traits_by_node(call.db, [found.id]).get(found.id, []):
            raise errors.NotFound(f"Node {found.uuid} doesn't have a trait '{name[:255]}'")
    with call.notifier.change(call.ctx, "node", "update", found) as tell:
        # Requests that add and that remove do not undo each other's work: only conditions compare the revision.
        node_crud.change_traits(call.db, found, added, removed, found.revision if call.preconditions else None)
        if call.notifier.is_on:
            tell(nodes.get(call.db, found.uuid, call.notifier.node_columns))
    return found.uuid


TRAITS = trait_names.build_operations("nodes", _show_traits, _change_traits)
"""What schedulers choose by, and what names deploy templates."""
