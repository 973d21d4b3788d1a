"""Checks values against JSON schemas, with messages that name the field, the value and what is allowed."""

from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema
from jsonschema import exceptions

from ingot.common import errors, masking

_LONGEST = 300

TEXT: dict[str, Any] = {"type": "string"}
OPTIONAL_TEXT: dict[str, Any] = {"type": ["string", "null"]}
OPTIONAL_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
FLAG: dict[str, Any] = {"type": "boolean"}


class Schema:
    """A compiled JSON schema.

    :param noun: what is checked, for messages: ``node``, ``clean_steps`` ...
    """

    def __init__(self, noun: str, document: dict[str, Any]) -> None:
        self.noun = noun
        self.document = document
        self._validator = jsonschema.Draft202012Validator(document)

    def check(self, value: Any) -> None:
        """
        :raises Invalid: the value does not fit the schema.
        """
        found = exceptions.best_match(self._validator.iter_errors(value))
        if found is not None:
            raise errors.Invalid(f"Schema error for {self.noun}: {_told(found)}")


def _told(error: exceptions.ValidationError) -> str:
    where = ".".join(map(str, error.absolute_path))
    told = error.message.replace(repr(error.instance), masking.shown(where, error.instance), 1)
    if error.validator == "additionalProperties":
        told = told if len(told) <= _LONGEST else f"{told[:_LONGEST]} ..."
        told += f"; allowed are: {', '.join(sorted(error.schema.get('properties', ()))) or 'none'}"
    elif error.validator in _SILENT:
        told += f"; allowed is: {_form(error.schema)}"
    return f"{where}: {told}" if where else told


_SILENT = ("anyOf", "maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")
"""What a schema can demand without that the message of its library tells what."""

_CLAUSES: Mapping[str, str] = {
    "type": "{}",
    "enum": "one of {}",
    "pattern": "like {}",
    "minimum": "from {}",
    "maximum": "to {}",
    "minLength": "of at least {} characters",
    "maxLength": "of at most {} characters",
    "minItems": "of at least {} items",
    "maxItems": "of at most {} items",
    "minProperties": "with at least {} keys",
    "maxProperties": "with at most {} keys",
    "required": "with {}",
}


def _form(schema: Mapping[str, Any]) -> str:
    """What a schema allows, in words."""
    if "anyOf" in schema:
        return ", or ".join(map(_form, schema["anyOf"]))
    return " ".join(told.format(_listed(schema[key])) for key, told in _CLAUSES.items() if schema.get(key) is not None)


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def record(properties: dict[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """The schema of an object that has these keys and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def complete(properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has all of these keys and no others."""
    return record(properties, properties)


def listed(key: str, item: dict[str, Any]) -> dict[str, Any]:
    """The schema of an object that has nothing but a list."""
    return complete({key: {"type": "array", "items": item}})


def deeper_than(value: Any, limit: int) -> bool:
    """Whether lists and objects are nested deeper than ``limit``."""
    level = [value] if isinstance(value, dict | list) else []
    for _depth in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
