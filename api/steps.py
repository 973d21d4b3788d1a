"""The form of steps that users name: in provision requests and in deploy templates."""

from typing import Any

from ingot.api import schemas
from ingot.common import interfaces

# A number, or its digits as text.
COUNT: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, {"type": "string", "pattern": "^[0-9]{1,18}$"}]
}

_NAMED: dict[str, Any] = {
    "interface": {"enum": list(interfaces.STEP_KINDS)},
    "step": {"type": "string", "minLength": 1, "maxLength": 255},
    "args": {"type": "object"},
}

_CHOSEN = schemas.record(
    {
        **_NAMED,
        "order": COUNT,
        "execute_on_child_nodes": {"type": "boolean"},
        "limit_child_node_execution": {"type": "array", "items": {"type": "string"}},
    },
    required=("interface", "step"),
)

IN_ORDER: dict[str, Any] = {"type": ["array", "null"], "items": _CHOSEN}
"""Steps that run in the order given: manual cleaning, service."""

_RANKED = schemas.record({**_NAMED, "priority": COUNT}, required=("interface", "step", "args", "priority"))

BY_PRIORITY: dict[str, Any] = {"type": ["array", "null"], "items": _RANKED}
"""Steps that are sorted in among others: deploying."""

OF_TEMPLATE: dict[str, Any] = {"type": "array", "items": _RANKED, "minItems": 1}


def with_numbers(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps with priority and order as numbers."""
    return [
        {key: int(value) if key in ("priority", "order") else value for key, value in step.items()} for step in steps
    ]


def twice(steps: list[dict[str, Any]]) -> list[str]:
    """The steps, as interface.step, that are named more than once."""
    names = [f"{step['interface']}.{step['step']}" for step in steps]
    return sorted({name for name in names if names.count(name) > 1})
