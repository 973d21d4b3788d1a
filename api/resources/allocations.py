"""Allocations: a user describes a machine, a conductor finds it. The row in state allocating is the work."""

from collections.abc import Callable

from oslo_utils import uuidutils

from ingot.api.auth import access
from ingot.api.nodes import node_links
from ingot.api.web import call as calls
from ingot.api.web import collection, crud, fields, operations, tables, trait_names
from ingot.api.web.call import Call, Reply
from ingot.api.web.fields import POST, Field
from ingot.api.web.operations import Param, operation
from ingot.common import errors, states
from ingot.common.json_types import Json
from ingot.common.trait_names import parse_trait
from ingot.db import allocations as rows
from ingot.db import listing, models, node_crud, nodes
from ingot.db.allocations import AllocationOfNode

SINCE = 52
"""Minor version that brought allocations."""


def _list_type(parse: Callable[[str, str], str], most: int) -> fields.FieldType:
    """Return the type of a list in which each item counts once.

    :param parse: of an item; see :class:`ingot.api.web.fields.FieldType`.
    """
    schema = {"type": ["array", "null"], "items": trait_names.TYPE.schema, "maxItems": most}
    return fields.FieldType(schema, lambda name, value: list(dict.fromkeys(parse(name, item) for item in value)), [])


def _parse_candidate(name: str, value: str) -> str:
    """Return what names a node; what can name none is searched all the same, and not found."""
    return (fields.parse_ident if uuidutils.is_uuid_like(value) else fields.parse_text)(name, value)


_TRAITS = _list_type(parse_trait, node_crud.MOST_TRAITS)
_NODES = _list_type(_parse_candidate, 1000)
_OWNER = fields.FieldType(fields.TEXT.schema, lambda name, value: fields.parse_text(name, value) or None)

TABLE = tables.Table(
    "allocation",
    Field("uuid", SINCE, fields.UUID_OR_EMPTY, write=POST, brief=True, sortable=True),
    Field("name", SINCE, fields.PORTGROUP_NAME, brief=True, sortable=True),
    tables.links_field("allocations"),
    Field("created_at", SINCE, brief=True, sortable=True),
    Field("updated_at", SINCE, brief=True, sortable=True),
    Field("candidate_nodes", SINCE, _NODES, write=POST, brief=True),
    Field("extra", SINCE, fields.OBJECT, brief=True),
    Field("last_error", SINCE, brief=True, sortable=True),
    Field("node_uuid", SINCE, brief=True),
    Field("resource_class", SINCE, fields.text(80), write=POST, brief=True, sortable=True),
    Field("state", SINCE, brief=True, sortable=True),
    Field("traits", SINCE, _TRAITS, write=POST, brief=True),
    Field("owner", 60, _OWNER, write=POST, brief=True, sortable=True),
    Field("node", 58, fields.IDENT, write=POST, hidden=True),
)

_FILTERS = (
    Param("node", fields.parse_ident),
    Param("resource_class", fields.parse_text, column="resource_class"),
    Param("state", fields.parse_text, column="state"),
    Param("owner", fields.parse_text, 60, "owner"),
)

_OWNERSHIP: access.Ownership[models.Allocation] = access.Ownership(
    "allocation",
    lambda allocation: access.build_target("allocation", owner=allocation.owner),
    lambda project: listing.Condition("owner", "equals", project),
)

ALLOCATIONS = collection.Collection("allocations", TABLE, rows.SOURCE, _FILTERS, details=False, ownership=_OWNERSHIP)


def _build_conditions(call: Call) -> list[listing.Condition]:
    return [node_links.node_condition(_find_node(call, call.query["node"]).id)] if "node" in call.query else []


def _find_node(call: Call, given: str, *columns: str) -> models.Node:
    """Return the node whose allocation is requested.

    :raises Invalid: there is none, or none that the request may see. Measured: 400, also where the URL names it.
    """
    try:
        return node_links.find_node(call, given, *columns)
    except errors.NotFound as exc:
        raise errors.Invalid(f"node: {exc.message}") from exc


CRUD: crud.Crud[AllocationOfNode] = crud.Crud(ALLOCATIONS, rows, where=_build_conditions)
CRUD.update = CRUD.update._replace(since=57)

_SHOWN = operations.Answer(shows=ALLOCATIONS.one)


@operation(body=TABLE.creation, answer=_SHOWN._replace(status=201))
def create(call: Call) -> Reply:
    call.access.require(call.rule)
    values = collection.build_row(TABLE, call.body)
    values["owner"] = _check_owner(call, values["owner"])
    node = values.pop("node")
    values["candidate_nodes"] = _read_candidates(call, values["candidate_nodes"])
    with call.notifier.change(call.ctx, "allocation", "create", {**values, "state": rows.ALLOCATING}) as tell:
        if node is None:
            _create_to_search(call, values)
        else:
            values["uuid"] = _backfill(call, values, node)
        record = CRUD.read(call, values["uuid"])
        call.note(record, anew=True)
        tell(record)
    shown = collection.show(call, ALLOCATIONS, record)
    if node is None:
        call.client.notify_of_allocation(call.ctx, record.uuid)
    return calls.created_reply(call, shown, f"/v1/allocations/{record.uuid}", record.version)


CRUD.create = create


_FOR_OTHERS = "baremetal:allocation:create_restricted"


def _check_owner(call: Call, requested: str | None) -> str | None:
    """Return the project that owns a new allocation: the user's, unless the request is the system's.

    :raises Forbidden: the request may not create it for another project.
    """
    if call.ctx.system_scope == "all":
        return requested
    own: str | None = call.ctx.project_id
    if requested not in (None, own):
        call.access.require(_FOR_OTHERS)
    return requested or own


def _read_candidates(call: Call, idents: list[str]) -> list[str]:
    """Return the UUIDs of the nodes that a request names, as far as its project owns or leases them."""
    if not idents:
        return []
    known = rows.resolve_candidates(call.db, idents, None if call.access.permits(_FOR_OTHERS) else call.ctx.project_id)
    unknown = [ident for ident in idents if ident not in known]
    if unknown:
        raise errors.Invalid(f"candidate_nodes: Nodes cannot be found: {', '.join(unknown)[:300]}.")
    return list(dict.fromkeys(known[ident] for ident in idents))


def _create_to_search(call: Call, values: Json) -> None:
    if not values["resource_class"]:
        raise errors.Invalid(
            "The resource_class field is mandatory when not backfilling: send the class of nodes that will do, or from "
            "version 1.58 on with node the one that is in use already."
        )
    values["uuid"] = values["uuid"] or uuidutils.generate_uuid()
    rows.create(call.db, {**values, "state": rows.ALLOCATING})


@calls.repeat_if_changed
def _backfill(call: Call, values: Json, ident: str) -> str:
    """Write an allocation for a node that is in use already.

    :returns: its uuid; that of the instance where there is one.
    """
    node = _find_node(call, ident, "revision", "provision_state", "resource_class", "instance_uuid")
    uuid = values["uuid"] or node.instance_uuid or uuidutils.generate_uuid()
    own = set(nodes.traits_by_node(call.db, [node.id]).get(node.id, ())) if values["traits"] else set()
    checks = {
        f'it must be in state "active", it is in "{node.provision_state}"': node.provision_state == states.ACTIVE,
        f"its resource class is {node.resource_class}, not {values['resource_class']}": values["resource_class"]
        in (None, "", node.resource_class),
        f"it lacks the traits {', '.join(sorted(set(values['traits']) - own))}": own.issuperset(values["traits"]),
        "it is not among the candidate nodes": not values["candidate_nodes"] or node.uuid in values["candidate_nodes"],
        f"its instance is {node.instance_uuid}, and an allocation has the uuid of its instance": node.instance_uuid
        in (None, uuid),
    }
    wrong = [problem for problem, holds in checks.items() if not holds]
    if wrong:
        raise errors.Conflict(reason=f"Cannot backfill an allocation for node {node.uuid}: {'; '.join(wrong)}.")
    rows.backfill(call.db, {**values, "uuid": uuid, "resource_class": node.resource_class}, node)
    return uuid


@operation(operations.FIELDS, answer=_SHOWN)
def of_node(call: Call, node: str) -> Reply:
    record = _read_of_node(call, node, _find_node(call, fields.parse_node_ident(call, node)))
    return Reply(collection.show(call, ALLOCATIONS, record), version=record.version)


@operation(answer=operations.EMPTY_204)
@calls.repeat_if_changed
def delete_of_node(call: Call, node: str) -> Reply:
    found = _read_of_node(call, node, node_links.find_node(call, fields.parse_node_ident(call, node)))
    if call.preconditions:
        call.preconditions.check("Allocation", found)
    with call.notifier.change(call.ctx, "allocation", "delete", found):
        rows.delete(call.db, found)
    return calls.NO_CONTENT


def _read_of_node(call: Call, given: str, node: models.Node) -> AllocationOfNode:
    found = listing.find(call.db, rows.SOURCE, listing.Condition("node_id", "equals", node.id))
    if found is None:
        raise errors.NotFound(f"Allocation for node {given} was not found.")
    call.note(found, anew=True)
    call.access.require_seen(call.rule, _OWNERSHIP.target(found), "Allocation", found.uuid)
    return found
