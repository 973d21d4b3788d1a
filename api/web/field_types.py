"""Kinds of values that clients may write: the JSON schema of each, and how it is normalised."""

import re
import uuid as stdlib_uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from oslo_utils import strutils, uuidutils

from ingot.common import errors

_BOOLEANS = (
    "Send true or false; as text '1', 't', 'true', 'on', 'y', 'yes' or '0', 'f', 'false', 'off', 'n', 'no' are fine."
)
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}", re.ASCII)


class FieldType(NamedTuple):
    """A kind of value.

    :param schema: JSON schema of what may be sent.
    :param parse: gets the field's name and the value (never None), gives what is stored; raises Invalid. None: the
        value is stored as it is.
    :param empty: what is stored for null, and what remains when the field is removed.
    """

    schema: dict[str, Any]
    parse: Callable[[str, Any], Any] | None = None
    empty: Any = None


def text(longest: int = 255, shortest: int = 0, nullable: bool = True) -> FieldType:
    """Free text.

    :param longest: most characters.
    :param shortest: fewest characters.
    """
    schema: dict[str, Any] = {"type": ["string", "null"] if nullable else "string", "maxLength": longest}
    if shortest:
        schema["minLength"] = shortest
    return FieldType(schema, storable)


def storable(name: str, value: str) -> str:
    """The text, unless it holds what no database keeps."""
    if "\x00" in value:
        raise errors.Invalid(field=name, value=value, allowed="Characters NUL are not accepted.")
    return value


def flag(name: str, value: Any) -> bool:
    """True or False from a boolean or the usual words."""
    try:
        return strutils.bool_from_string(value, strict=True)
    except ValueError as exc:
        raise errors.Invalid(field=name, value=value, allowed=_BOOLEANS) from exc


def uuid(name: str, value: str) -> str:
    """A uuid in its usual form."""
    if not uuidutils.is_uuid_like(value):
        raise errors.Invalid(field=name, value=value, allowed="Expected a UUID.")
    return canonical(value)


def canonical(value: str) -> str:
    """A uuid, in whichever of its spellings, as it is stored."""
    return str(stdlib_uuid.UUID(value))


def mac(name: str, value: str) -> str:
    """A MAC address in lower case."""
    if not _MAC.fullmatch(value):
        raise errors.Invalid(
            field=name, value=value, allowed="Expected a MAC address: six pairs of hex digits with colons."
        )
    return value.lower()


def logical_name(name: str, value: str) -> str:
    """A name that can stand in a URL."""
    if not is_logical_name(value):
        raise errors.Invalid(
            field=name,
            value=value,
            allowed="A name has 1 to 255 characters of A-Z a-z 0-9 - . _ ~ and is not a UUID.",
        )
    return value


def is_logical_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None and not uuidutils.is_uuid_like(value)


def ident(name: str, value: str) -> str:
    """What may name an object in a URL or body: a uuid, or a name."""
    if uuidutils.is_uuid_like(value):
        return canonical(value)
    if not is_logical_name(value):
        raise errors.Invalid(field=name, value=value, allowed="Expected a UUID or a name.")
    return value


def whole(least: int, most: int = 2**31 - 1) -> FieldType:
    """A whole number, or its digits as text."""

    def parse(name: str, value: Any) -> int:
        digits = isinstance(value, int | float) or (value.isascii() and value.removeprefix("-").isdecimal())
        number = int(value) if digits else None  # JSON's 5.0 is a whole number too
        if number is None or not least <= number <= most:
            raise errors.Invalid(field=name, value=value, allowed=f"Send a whole number from {least} to {most}.")
        return number

    return FieldType({"type": ["integer", "string", "null"], "maxLength": 12}, parse)


def _portgroup_name(name: str, value: str) -> str | None:
    """As the name of a node, but it may look like a uuid, and an empty one is none."""
    return (value if uuidutils.is_uuid_like(value) else logical_name(name, value)) if value else None


def _uuid_or_none(name: str, value: str) -> str | None:
    return uuid(name, value) if value else None


_STRING = {"type": "string"}
_OPTIONAL_STRING = {"type": ["string", "null"]}
_FLAG = {"type": ["boolean", "string", "null"]}

TEXT = text()
LONG_TEXT = text(longest=2**16)
REQUIRED_TEXT = text(nullable=False)
OBJECT = FieldType({"type": ["object", "null"]}, empty={})
FLAG = FieldType(_FLAG, flag, empty=False)
FLAG_ON = FieldType(_FLAG, flag, empty=True)
TRISTATE = FieldType(_FLAG, flag)
UUID = FieldType(_OPTIONAL_STRING, uuid)
UUID_OR_EMPTY = FieldType(_OPTIONAL_STRING, _uuid_or_none)
MAC = FieldType(_STRING, mac)
OPTIONAL_MAC = FieldType(_OPTIONAL_STRING, mac)
NAME = FieldType(_OPTIONAL_STRING, logical_name)
PORTGROUP_NAME = FieldType(_OPTIONAL_STRING, _portgroup_name)
