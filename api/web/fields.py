"""Fields: what clients may send, declared once. Types of values, JSON schemas with clear messages, bodies."""

import copy
import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import jsonschema
import orjson
from jsonschema import exceptions
from oslo_config import cfg
from oslo_utils import strutils, uuidutils
from werkzeug import wrappers

from ingot.api.web import faults
from ingot.api.web.call import Call
from ingot.common import errors, masking
from ingot.common.json_types import Json

_LONGEST_MESSAGE = 300
_BOOLEANS = (
    "Send true or false; as text '1', 't', 'true', 'on', 'y', 'yes' or '0', 'f', 'false', 'off', 'n', 'no' are fine."
)
_MAC = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,255}", re.ASCII)

POST = 1
PATCH = 2
BOTH = POST | PATCH


class Schema:
    """A compiled JSON schema.

    :param noun: what is checked, for messages: ``node``, ``clean_steps`` ...
    """

    def __init__(self, noun: str, document: Json) -> None:
        self.noun = noun
        self.document = document
        self._validator = jsonschema.Draft202012Validator(document)

    def check(self, value: object) -> None:
        """Check a value.

        :raises Invalid: the value does not fit the schema.
        """
        error = exceptions.best_match(self._validator.iter_errors(value))
        if error is None:
            return
        where = ".".join(map(str, error.absolute_path))
        message = error.message.replace(repr(error.instance), masking.describe_value(where, error.instance), 1)
        # What releases of the library before 4.21 said, and clients look for.
        message = message.replace("should be non-empty", "should be non-empty: it is too short")
        if error.validator == "additionalProperties":
            message = message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]} ..."
            message += f"; allowed are: {', '.join(sorted(error.schema.get('properties', ()))) or 'none'}"
        elif error.validator == "required" and not where:
            missing = (name for name in error.schema["required"] if name not in error.instance)
            message += f". Missing mandatory parameter: {', '.join(missing)}"
        elif error.validator in _UNEXPLAINED:
            message += f"; allowed is: {_describe_form(error.schema)}"
        raise errors.Invalid(": ".join(filter(None, (f"Schema error for {self.noun}", where, message))))

    def parse(self, _name: str, value: Json) -> Json:
        """Return a field's value as it is, checked."""
        self.check(value)
        return value


_UNEXPLAINED = ("anyOf", "maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")
"""Demands of a schema that the messages of its library do not explain."""

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


def _describe_form(schema: Json) -> str:
    """Return in words what a schema allows."""
    if "anyOf" in schema:
        return ", or ".join(map(_describe_form, schema["anyOf"]))
    known = {key: schema[key] for key in _CLAUSES if schema.get(key) is not None}
    texts = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in known.items()}
    return " ".join(_CLAUSES[key].format(text) for key, text in texts.items())


TEXT_SCHEMA: Json = {"type": "string"}
OPTIONAL_TEXT_SCHEMA: Json = {"type": ["string", "null"]}
OPTIONAL_NUMBER_SCHEMA: Json = {"type": ["number", "null"]}
FLAG_SCHEMA: Json = {"type": "boolean"}


def object_schema(properties: Json, required: Iterable[str] = ()) -> Json:
    """Return the schema of an object that has these keys and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def complete_schema(properties: Json) -> Json:
    """Return the schema of an object that has all of these keys and no others."""
    return object_schema(properties, properties)


def list_schema(key: str, item: Json) -> Json:
    """Return the schema of an object that has nothing but a list."""
    return complete_schema({key: {"type": "array", "items": item}})


def version_extension(minor: int) -> Json:
    """Return the extension of OpenAPI that names the microversion of something; nothing for the first version."""
    return {"x-openstack": {"min-ver": f"1.{minor}"}} if minor > 1 else {}


def is_deeper_than(value: object, limit: int) -> bool:
    """Return whether lists and objects are nested deeper than ``limit``."""
    level = [value] if isinstance(value, dict | list) else []
    for _depth in range(limit):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def read_body(conf: cfg.ConfigOpts, request: wrappers.Request, limit: int) -> Any:
    """Return the parsed body of a request; None for an empty one.

    :param limit: bytes that it may have.
    :raises BodyTooLarge: it has more.
    :raises TooDeep: its lists and objects are nested deeper than is accepted.
    :raises Invalid: it is not JSON, or did not arrive whole.
    """
    declared = request.content_length or 0
    try:
        raw = b"" if declared > limit else request.stream.read(limit + 1)
    except (OSError, ValueError) as exc:
        raise errors.Invalid(
            f"The request body cannot be read: {exc}. Send a Content-Length that is true, or whole chunks."
        ) from exc
    if max(declared, len(raw)) > limit:
        raise errors.BodyTooLarge(size=max(declared, len(raw)), limit=limit)
    if len(raw) < declared:
        raise errors.Invalid(f"The request body ended after {len(raw)} of {declared} bytes.")
    if not raw.strip():
        return None
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError as exc:
        raise errors.Invalid(f"The request body is not JSON: {exc}. Send a JSON document in UTF-8.") from exc
    if is_deeper_than(parsed, conf.api.max_json_body_depth):
        raise faults.TooDeep(limit=conf.api.max_json_body_depth)
    if parsed is None:
        raise errors.Invalid("The request body is null. Send a JSON object or list, or leave the body out.")
    return parsed


class FieldType(NamedTuple):
    """The type of a value that clients may write.

    :param schema: JSON schema of what may be sent.
    :param parse: gets the field's name and the value (never None), gives what is stored; raises Invalid. None: the
        value is stored as it is.
    :param empty: what is stored for null, and what remains when the field is removed.
    """

    schema: Json
    parse: Callable[[str, Any], object] | None = None
    empty: object = None


def text(longest: int = 255, shortest: int = 0, nullable: bool = True) -> FieldType:
    """Return the type of free text.

    :param longest: most characters.
    :param shortest: fewest characters.
    """
    limits = {"maxLength": longest, **({"minLength": shortest} if shortest else {})}
    return FieldType({"type": ["string", "null"] if nullable else "string", **limits}, parse_text)


def parse_text(name: str, value: str) -> str:
    """Return the text, unless it holds what no database keeps."""
    if "\x00" in value:
        raise errors.Invalid(field=name, value=value, allowed="Characters NUL are not accepted.")
    return value


def parse_flag(name: str, value: object) -> bool:
    """Return true or false from a boolean or the usual words."""
    try:
        flag: bool = strutils.bool_from_string(value, strict=True)
    except ValueError as exc:
        raise errors.Invalid(field=name, value=value, allowed=_BOOLEANS) from exc
    return flag


def parse_uuid(name: str, value: str) -> str:
    """Return a UUID in its usual form."""
    if not uuidutils.is_uuid_like(value):
        raise errors.Invalid(field=name, value=value, allowed=f"Expected UUID for {name}.")
    return str(uuid.UUID(value))


def parse_mac(name: str, value: str) -> str:
    """Return a MAC address in lower case."""
    if not _MAC.fullmatch(value):
        allowed = f"Expected valid MAC address for {name}: six pairs of hex digits with colons."
        raise errors.Invalid(field=name, value=value, allowed=allowed)
    return value.lower()


class InvalidName(errors.Invalid):
    template = "{field}: {value} is an invalid name. {allowed}"


def parse_name(name: str, value: str) -> str:
    """Return a name that can stand in a URL."""
    if not _NAME.fullmatch(value) or uuidutils.is_uuid_like(value):
        allowed = "A name has 1 to 255 characters of A-Z a-z 0-9 - . _ ~ and is not a UUID."
        raise InvalidName(field=name, value=value, allowed=allowed)
    return value


def parse_ident(name: str, value: str) -> str:
    """Return what names an object in a URL or body: a UUID, or a name."""
    if uuidutils.is_uuid_like(value):
        return str(uuid.UUID(value))
    if not _NAME.fullmatch(value):
        raise errors.Invalid(field=name, value=value, allowed=f"Expected UUID or name for {name}.")
    return value


def parse_node_ident(call: Call, given: str) -> str:
    """Return a node's identifier from a URL.

    :raises Invalid: no node can have this name.
    :raises NotFound: it is a name, and the request's version does not know names.
    """
    if call.minor < 5 and not uuidutils.is_uuid_like(given):
        raise errors.NotFound(
            f"Node {given[:80]} could not be found: names need API version 1.5 or newer, the request speaks "
            f"1.{call.minor}. Send the node's UUID, or a newer version."
        )
    return parse_ident("node", given)


def whole_number(least: int, most: int = 2**31 - 1) -> FieldType:
    """Return the type of a whole number, or its digits as text."""

    def parse(name: str, value: Any) -> int:
        digits = isinstance(value, int | float) or (value.isascii() and value.removeprefix("-").isdecimal())
        number = int(value) if digits else None  # JSON's 5.0 is a whole number too
        if number is None or not least <= number <= most:
            raise errors.Invalid(field=name, value=value, allowed=f"Send a whole number from {least} to {most}.")
        return number

    return FieldType({"type": ["integer", "string", "null"], "maxLength": 12}, parse)


def _parse_portgroup_name(name: str, value: str) -> str | None:
    """Return a name like that of a node, but it may look like a UUID, and an empty one is none."""
    return (value if uuidutils.is_uuid_like(value) else parse_name(name, value)) if value else None


_FLAG: Json = {"type": ["boolean", "string", "null"]}

TEXT = text()
LONG_TEXT = text(longest=2**16)
REQUIRED_TEXT = text(nullable=False)
OBJECT = FieldType({"type": ["object", "null"]}, empty={})
FLAG = FieldType(_FLAG, parse_flag, empty=False)
FLAG_ON = FieldType(_FLAG, parse_flag, empty=True)
TRISTATE = FieldType(_FLAG, parse_flag)
UUID = FieldType(OPTIONAL_TEXT_SCHEMA, parse_uuid)
UUID_OR_EMPTY = FieldType(OPTIONAL_TEXT_SCHEMA, lambda name, value: parse_uuid(name, value) if value else None)
MAC = FieldType(TEXT_SCHEMA, parse_mac)
OPTIONAL_MAC = FieldType(OPTIONAL_TEXT_SCHEMA, parse_mac)
NAME = FieldType(OPTIONAL_TEXT_SCHEMA, parse_name)
PORTGROUP_NAME = FieldType(OPTIONAL_TEXT_SCHEMA, _parse_portgroup_name)
IDENT = FieldType(TEXT.schema, parse_ident)

Compute = Callable[[Any, Call], object]
"""Makes the shown value of a record of the table that the field is in."""


class Field(NamedTuple):
    """A field of a resource, or a key of a request's body.

    :param since: minor version that shows it, and that takes it in a body.
    :param type: what may be written; None for what clients cannot write.
    :param write: POST, PATCH or BOTH, for those with a type.
    :param brief: whether items of a list show it when the request selects nothing.
    :param sortable: whether lists can be sorted by it.
    :param compute: makes the shown value of a record; without it the column of the same name is shown.
    :param needs: the columns that ``compute``, or what completes the record, works with.
    :param patch_since: where PATCH takes it at older versions than answers show it.
    :param post_since: where POST does.
    :param required: whether a POST must have it, and a PATCH cannot remove it.
    :param hidden: whether answers never show it.
    :param schema: JSON schema of what is shown, where neither the column nor the type has it.
    :param see: the rule of policy for seeing it, if it has one of its own.
    :param edit: the rule of policy for patching it, if it has one of its own.
    :param masked: whether secrets in it are shown as a mask, which clients send back for what is there.
    """

    name: str
    since: int = 1
    type: FieldType | None = None
    write: int = BOTH
    brief: bool = False
    sortable: bool = False
    compute: Compute | None = None
    needs: tuple[str, ...] = ()
    patch_since: int | None = None
    post_since: int | None = None
    required: bool = False
    hidden: bool = False
    schema: Json | None = None
    see: str | None = None
    edit: str | None = None
    masked: bool = False

    def parse(self, value: object) -> object:
        """Return a written value in the form that is stored."""
        assert self.type is not None  # noqa: S101 - only writable fields get here
        if value is None:
            return copy.copy(self.type.empty)
        return value if self.type.parse is None else self.type.parse(self.name, value)


class Body:
    """A request body: an object whose keys are declared fields.

    :param newer: the error for a key that is newer than the request's version.
    """

    def __init__(self, noun: str, *declared: Field, newer: type[errors.IngotError] = errors.VersionRefused) -> None:
        self._newer = newer
        self.declared = declared
        self._fields = {field.name: field for field in self.declared}
        properties = {
            field.name: field.type.schema | version_extension(field.since) for field in self.declared if field.type
        }
        required = [field.name for field in self.declared if field.type and field.required]
        self.schema = Schema(noun, object_schema(properties, required))

    def check(self, value: object, minor: int) -> Json:
        """Return the body with every value parsed; keys that were not sent are absent.

        :raises Invalid: see :class:`Schema` and :class:`FieldType`.
        :raises VersionRefused: a key is newer than the request's version, unless the body has another error for that.
        """
        body: Any = {} if value is None else value
        self.schema.check(body)
        parsed = {name: self._fields[name].parse(given) for name, given in body.items()}
        refuse_newer((self._fields[name] for name in parsed), minor, self._newer)
        return parsed


def refuse_newer(used: Iterable[Field], minor: int, refusal: type[errors.IngotError] = errors.VersionRefused) -> None:
    """Refuse fields that the request's version does not have.

    :raises VersionRefused: a used field is newer than the request's version; ``refusal`` may be another error.
    """
    for field in used:
        if field.since > minor:
            raise refusal(
                f"Request not acceptable. The field {field.name} needs API version 1.{field.since} or newer; "
                f"the request speaks 1.{minor}."
            )
