"""Deploy templates: steps that a deployment gets for a trait of the same name (specification 003)."""

import functools
import re
from typing import Any

import os_traits

from ingot.api import collection, crud, fields, kinds, params, steps
from ingot.api.call import Call
from ingot.api.fields import POST, Field
from ingot.common import errors
from ingot.db import deploy_templates as rows
from ingot.db import records

_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+", re.ASCII)


@functools.cache
def _standard() -> frozenset[str]:
    return frozenset(os_traits.get_traits())


def trait(name: str, value: str) -> str:
    """A trait's name: of one's own, or one of the standard ones."""
    if not _CUSTOM.fullmatch(value) and value not in _standard():
        raise errors.Invalid(
            field=name,
            value=value,
            allowed="A trait is CUSTOM_ and then A-Z, 0-9 and _, or one of the standard traits of os-traits.",
        )
    return value


TRAIT = kinds.Kind({"type": "string", "minLength": 1, "maxLength": 255}, trait)


def _steps(name: str, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
    twice = steps.twice(value)
    if twice:
        raise errors.Invalid(field=name, value=", ".join(twice), allowed="A template can name each step only once.")
    return steps.with_numbers(value)


TABLE = fields.Table(
    "template",
    (
        Field("uuid", 55, kinds.UUID, write=POST, brief=True, sortable=True),
        Field("name", 55, TRAIT, brief=True, sortable=True, required=True),
        fields.links("deploy_templates"),
        Field("created_at", 55, sortable=True),
        Field("updated_at", 55, sortable=True),
        Field("steps", 55, kinds.Kind(steps.OF_TEMPLATE, _steps), required=True),
        Field("extra", 55, kinds.OBJECT),
        # Accepted and forgotten: clients send it to templates as they do to runbooks.
        Field("description", 55, kinds.TEXT, write=POST, hidden=True),
    ),
)


def _complete(call: Call, found: list[records.Record], selection: fields.Selection) -> None:
    if "steps" in selection.names and found:
        known = rows.steps_of(call.db, [template.id for template in found])
        for template in found:
            template.steps = known.get(template.id, [])


def _prepare(_call: Call, values: dict[str, Any], _row: records.Record | None) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "description"}


_TEMPLATES = collection.Collection("deploy_templates", TABLE, rows.SOURCE, marker=params.filled, complete=_complete)

CRUD = crud.Crud(_TEMPLATES, rows, prepare=_prepare)

HYPHENATED = crud.Crud(_TEMPLATES._replace(name="deploy-templates"), rows, prepare=_prepare)
"""The same under the URL, and with the list's key, of specification 003."""
