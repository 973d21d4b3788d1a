"""The form of steps that users name: in provision requests, deploy templates and runbooks.

Which steps a node has is for its conductor to say. The reserved steps (hold, wait, power_on, power_off, reboot) are
named as any other, on any interface.
"""

from collections.abc import Callable
from typing import Any

from ingot.api.web import fields, tables
from ingot.api.web.call import Call
from ingot.common import errors, interfaces
from ingot.db import models
from ingot.db.step_lists import StepLists

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


def shown_of(lists: StepLists) -> Callable[[Call, list[models.Record], tables.Selection], None]:
    """What completes rows of named lists with their steps, one statement for all."""

    def complete(call: Call, found: list[models.Record], selection: tables.Selection) -> None:
        if "steps" in selection.names and found:
            known = lists.steps_of(call.db, [record.id for record in found])
            for record in found:
                record.steps = known.get(record.id, [])

    return complete
