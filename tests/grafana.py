"""Grafana's own description of a dashboard, as its SDK has it, and what of a dashboard does not fit it."""

import enum
import json
import types
import typing
from collections.abc import Iterator
from typing import Any

from grafana_foundation_sdk.cog import encoder, plugins
from grafana_foundation_sdk.models import dashboard

plugins.register_default_plugins()


def list_objections(document: dict[str, Any]) -> list[str]:
    """Return the keys that Grafana does not know, and the values that are not of the type that it expects."""
    try:
        model = dashboard.Dashboard.from_json(document)
    except (KeyError, TypeError, ValueError) as exc:
        return [f"it cannot be read: {exc!r}"]
    return [*_compare(document, _encode(model), "dashboard"), *_check_types(model, "dashboard")]


def _encode(model: object) -> object:
    return json.loads(encoder.JSONEncoder(sort_keys=True).encode(model))


def _compare(given: object, understood: object, place: str) -> Iterator[str]:
    """Yield what is lost when a dashboard is read and written again."""
    if isinstance(given, dict) and isinstance(understood, dict):
        for key, value in given.items():
            if key in understood:
                yield from _compare(value, understood[key], f"{place}.{key}")
            elif value is not None:
                yield f"{place} has no {key}"
    elif isinstance(given, list) and isinstance(understood, list) and len(given) == len(understood):
        for number, (one, other) in enumerate(zip(given, understood, strict=True)):
            yield from _compare(one, other, f"{place}[{number}]")
    elif given != understood:
        yield f"{place} is {given!r}, and is taken for {understood!r}"


def _check_types(value: object, place: str) -> Iterator[str]:
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _check_types(one, f"{place}[{number}]")
    elif hasattr(value, "to_json"):
        hints = typing.get_type_hints(type(value))
        for name, inner in vars(value).items():
            if name in hints and not _fits(inner, hints[name]):
                yield f"{place}.{name} is {inner!r}, and not {hints[name]}"
            yield from _check_types(inner, f"{place}.{name}")


def _fits(value: object, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(_fits(one, inner[0]) for one in value)
    return isinstance(value, dict) if origin is dict else _is_one(value, hint)


def _is_one(value: object, hint: Any) -> bool:
    """Return whether a value is of a class, or stands for an object of it."""
    if isinstance(value, bool):
        return hint in (bool, object)
    if hint is float:
        return isinstance(value, int | float)
    if issubclass(hint, enum.Enum):
        return value in [*hint, *(one.value for one in hint)]
    if isinstance(value, dict) and hasattr(hint, "from_json"):
        return not [*_compare(value, _encode(hint.from_json(value)), "")]
    return isinstance(value, hint)
