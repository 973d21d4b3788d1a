"""Hides secrets in what is shown or logged (used by api, conductor, drivers)."""

from collections.abc import Mapping
from typing import Any

MASK = "******"

_LONGEST = 160  # characters of a value in a message

_SECRET_PARTS = ("password", "token", "secret", "credential", "private_key")
_SECRET_NAMES = frozenset(("image_url", "configdrive", "ipmi_hex_kg_key", "agent_secret_token"))

_HOLDERS = frozenset(("driver_info", "instance_info"))
"""Fields that hold secrets among other things: a message about them as a whole could show those."""


def is_secret(key: str) -> bool:
    """Return whether a key of driver_info, instance_info or driver_internal_info holds a secret."""
    lowered = key.lower()
    return lowered in _SECRET_NAMES or any(part in lowered for part in _SECRET_PARTS)


def mask(value: Any) -> Any:
    """Return a copy of nested dictionaries and lists with every secret's value replaced by ``******``."""
    if isinstance(value, Mapping):
        hides = {key for key, inner in value.items() if is_secret(str(key)) and inner not in (None, "")}
        return {key: MASK if key in hides else mask(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [mask(inner) for inner in value]
    return value


def describe_value(field: str, value: object) -> str:
    """Return a value as a message about it shows it: nothing of secrets, little of what is long.

    :param field: where the value was found; dots between the names of nested fields.
    """
    names = field.split(".")
    if names[-1] in _HOLDERS or any(map(is_secret, names)):
        return MASK
    text = repr(mask(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
