"""Checks values against JSON schemas, with messages that name the field, the value and what is allowed."""

from collections.abc import Iterable
from typing import Any

import jsonschema
from jsonschema import exceptions

from ingot.common import errors

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
    message = error.message
    if len(message) > _LONGEST:
        message = f"{message[: _LONGEST // 2]} ... {message[-_LONGEST // 2 :]}"
    if error.validator == "additionalProperties":
        message += f"; allowed are: {', '.join(sorted(error.schema.get('properties', ()))) or 'none'}"
    return f"{where}: {message}" if where else message


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
