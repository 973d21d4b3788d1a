"""Steps that users name, in provision requests, deploy templates and runbooks: their form, and what they refer to.

Which steps a node has is for its conductor to say. The reserved steps (hold, wait, power_on, power_off, reboot) are
named as any other, on any interface.
"""

from collections.abc import Mapping, Sequence

from ingot.api.auth import access
from ingot.api.web import collection, fields, tables
from ingot.api.web.call import Call
from ingot.common import errors, interfaces
from ingot.common.json_types import Json
from ingot.db import listing, models, node_lists, nodes, step_lists
from ingot.db.step_lists import RUNBOOKS, RunbookWithSteps

# A number, or its digits as text.
COUNT: Json = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, {"type": "string", "pattern": "^[0-9]{1,18}$"}]
}

_NAMED: Json = {
    "interface": {"enum": list(interfaces.STEP_KINDS)},
    "step": {"type": "string", "minLength": 1, "maxLength": 255},
    "args": {"type": "object"},
}

_CHOSEN = fields.object_schema(
    {
        **_NAMED,
        "order": COUNT,
        "execute_on_child_nodes": {"type": "boolean"},
        "limit_child_node_execution": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 255}},
    },
    required=("interface", "step"),
)

_RANKED = fields.object_schema({**_NAMED, "priority": COUNT}, required=("interface", "step", "args", "priority"))
_NUMBERED = fields.object_schema({**_NAMED, "order": COUNT}, required=("interface", "step", "order"))


def _parse_numbers(_name: str, steps: list[Json]) -> list[Json]:
    """Return the steps with priority and order as numbers."""
    return [
        {key: int(value) if key in ("priority", "order") else value for key, value in step.items()} for step in steps
    ]


def _parse_requested(name: str, steps: list[Json]) -> list[Json]:
    """Return the steps of a request, which cannot have masks that a template or runbook shows instead of secrets."""
    tables.unmask(name, steps)
    return _parse_numbers(name, steps)


IN_ORDER = fields.FieldType({"type": ["array", "null"], "items": _CHOSEN}, _parse_requested)
"""Steps that run in the order given: manual cleaning."""

_OF_SERVICE = {**_CHOSEN["properties"], "interface": {"enum": [*interfaces.STEP_KINDS, "network"]}}
OF_SERVICE = fields.FieldType(
    {"type": ["array", "null"], "items": {**_CHOSEN, "properties": _OF_SERVICE}}, _parse_requested
)
"""The same for service, in which the network interface has a step, too."""

BY_PRIORITY = fields.FieldType({"type": ["array", "null"], "items": _RANKED}, _parse_requested)
"""Steps that are sorted in among others: deploying."""


def _parse_distinct(name: str, value: list[Json]) -> list[Json]:
    labels = [f"{step['interface']}.{step['step']}" for step in value]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise errors.Invalid(field=name, value=", ".join(twice), allowed="Here each step can be named only once.")
    return _parse_numbers(name, value)


OF_TEMPLATE = fields.FieldType({"type": "array", "items": _RANKED, "minItems": 1}, _parse_distinct)
OF_RUNBOOK = fields.FieldType({"type": "array", "items": _NUMBERED, "minItems": 1}, _parse_distinct)


RUNBOOK_TRAITS_SINCE = 112
"""Minor version from which runbooks have traits, and names that need not be traits."""

RUNBOOK_OWNERSHIP: access.Ownership[models.Runbook] = access.Ownership(
    "runbook",
    lambda runbook: access.build_target("runbook", owner=runbook.owner, public=runbook.public),
    lambda project: listing.Either(
        (listing.Condition("owner", "equals", project), listing.Condition("public", "equals", True))
    ),
)

_WHOLE_RUNBOOK = tables.Selection(frozenset(("steps", "traits")), (), (), ())


def complete_runbooks(call: Call, found: Sequence[RunbookWithSteps], selection: tables.Selection) -> None:
    """Complete runbooks with their steps and traits."""
    collection.complete_lists(call, found, selection, "steps", RUNBOOKS.steps_of)
    collection.complete_lists(call, found, selection, "traits", step_lists.traits_of_runbooks)


def find_runbook(call: Call, ident: str, node: models.Node) -> RunbookWithSteps:
    """Return the whole runbook that a provision request names.

    :param node: needs id and uuid.
    :raises NotFound: there is no such runbook.
    :raises Invalid: the node has none of its traits.
    """
    runbook = listing.get(call.db, RUNBOOKS.source, ident)
    call.access.require_seen("baremetal:runbook:use", RUNBOOK_OWNERSHIP.target(runbook), "Runbook", ident)
    complete_runbooks(call, [runbook], _WHOLE_RUNBOOK)
    traits = runbook.traits if call.minor >= RUNBOOK_TRAITS_SINCE else [runbook.name]
    if not traits:
        hint = f"It has no traits, so it is for no node. Add one: PUT /v1/runbooks/{runbook.name}/traits/<trait>."
        raise errors.Invalid(field="runbook", value=runbook.name, allowed=hint)
    if set(traits).isdisjoint(nodes.traits_by_node(call.db, [node.id]).get(node.id, ())):
        hint = f"It is for nodes with one of the traits {', '.join(traits)}; node {node.uuid} has none of them."
        raise errors.Invalid(field="runbook", value=runbook.name, allowed=hint)
    return runbook


_ON_CHILDREN = "execute_on_child_nodes"
_LIMIT = "limit_child_node_execution"


def resolve_children(call: Call, node: models.Node, name: str, steps: list[Json]) -> list[Json]:
    """Return the steps with the UUIDs of the children that each is limited to; one statement if any step is limited.

    A step without a limit, or with an empty one, is for all children: all must be such that the request may ask this of
    them. A child of which it may not is unknown as a limit.

    :param node: the parent; needs uuid.
    :param name: the list in messages: clean_steps, service_steps.
    :raises Invalid: a step is limited to something that is not a child of the node, or is not for children at all.
    :raises Forbidden: a step is for all children, and the request may not ask this of one of them.
    """
    for_all = call.access.limited and any(step.get(_ON_CHILDREN) and not step.get(_LIMIT) for step in steps)
    if not for_all and not any(_LIMIT in step for step in steps):
        return steps
    uuids: dict[str | None, str] = {}
    for child in node_lists.list_children(call.db, node.uuid):
        if for_all:
            call.access.require(call.rule, access.build_node_target(child))
        if call.access.permits(call.rule, access.build_node_target(child)):
            uuids |= {child.uuid: child.uuid, child.name: child.uuid}
    return [_resolve_limit(node, f"{name}.{index}.{_LIMIT}", step, uuids) for index, step in enumerate(steps)]


def _resolve_limit(node: models.Node, field: str, step: Json, uuids: Mapping[str | None, str]) -> Json:
    limit = step.get(_LIMIT)
    rest = {key: value for key, value in step.items() if key != _LIMIT}
    if not limit:
        return rest
    if not step.get(_ON_CHILDREN):
        raise errors.Invalid(field=field, value=limit, allowed=f"It needs {_ON_CHILDREN} true in the same step.")
    unknown = [ident for ident in limit if ident not in uuids]
    if unknown:
        known = ", ".join(sorted(ident for ident in uuids if ident)) or "none"
        raise errors.Invalid(
            field=field, value=", ".join(unknown), allowed=f"Node {node.uuid} is the parent of: {known}."
        )
    return {**rest, _LIMIT: list(dict.fromkeys(uuids[ident] for ident in limit))}
