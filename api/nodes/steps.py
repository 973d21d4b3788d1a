"""The form of steps that users name: in provision requests, deploy templates and runbooks.

Which steps a node has is for its conductor to say. The reserved steps (hold, wait, power_on, power_off, reboot) are
named as any other, on any interface.
"""

from collections.abc import Callable
from typing import Any

from ingot.api.auth import access
from ingot.api.web import fields, tables
from ingot.api.web.call import Call
from ingot.common import errors, interfaces
from ingot.db import listing, models, nodes, step_lists
from ingot.db.step_lists import RUNBOOKS, AnyWithSteps, RunbookWithSteps

# A number, or its digits as text.
COUNT: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, {"type": "string", "pattern": "^[0-9]{1,18}$"}]
}

_NAMED: dict[str, Any] = {
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

IN_ORDER: dict[str, Any] = {"type": ["array", "null"], "items": _CHOSEN}
"""Steps that run in the order given: manual cleaning, service."""

_RANKED = fields.object_schema({**_NAMED, "priority": COUNT}, required=("interface", "step", "args", "priority"))

BY_PRIORITY: dict[str, Any] = {"type": ["array", "null"], "items": _RANKED}
"""Steps that are sorted in among others: deploying."""

_NUMBERED = fields.object_schema({**_NAMED, "order": COUNT}, required=("interface", "step", "order"))


def with_numbers(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps with priority and order as numbers."""
    return [
        {key: int(value) if key in ("priority", "order") else value for key, value in step.items()} for step in steps
    ]


def _each_once(name: str, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    named = [f"{step['interface']}.{step['step']}" for step in value]
    twice = sorted({label for label in named if named.count(label) > 1})
    if twice:
        raise errors.Invalid(field=name, value=", ".join(twice), allowed="Here each step can be named only once.")
    return with_numbers(value)


OF_TEMPLATE = fields.FieldType({"type": "array", "items": _RANKED, "minItems": 1}, _each_once)
OF_RUNBOOK = fields.FieldType({"type": "array", "items": _NUMBERED, "minItems": 1}, _each_once)


def complete_steps(
    lists: step_lists.StepLists[AnyWithSteps],
) -> Callable[[Call, list[AnyWithSteps], tables.Selection], None]:
    """Return what completes rows of named lists with their steps, one statement for all."""

    def complete(call: Call, found: list[AnyWithSteps], selection: tables.Selection) -> None:
        if "steps" in selection.names and found:
            known = lists.steps_of(call.db, [record.id for record in found])
            for record in found:
                record.steps = known.get(record.id, [])

    return complete


RUNBOOK_TRAITS_SINCE = 112
"""Minor version from which runbooks have traits, and names that need not be traits."""

RUNBOOK_OWNERSHIP: access.Ownership[models.Runbook] = access.Ownership(
    "runbook",
    lambda runbook: access.build_target("runbook", owner=runbook.owner, public=runbook.public),
    lambda project: listing.Either(
        (listing.Condition("owner", "equals", project), listing.Condition("public", "equals", True))
    ),
)

_complete_runbook_steps = complete_steps(RUNBOOKS)


def complete_runbooks(call: Call, found: list[RunbookWithSteps], selection: tables.Selection) -> None:
    """Complete runbooks with their steps and traits."""
    _complete_runbook_steps(call, found, selection)
    if "traits" in selection.names and found:
        known = step_lists.traits_of_runbooks(call.db, [runbook.id for runbook in found])
        for runbook in found:
            runbook.traits = known.get(runbook.id, [])


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


_WHOLE_RUNBOOK = tables.Selection(frozenset(("steps", "traits")), (), (), ())
