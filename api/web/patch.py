"""JSON patch (RFC 6902: add, replace, remove) of resources whose fields are declared in a table."""

import copy
from collections.abc import Mapping
from typing import Any

import jsonpatch
import jsonpointer

from ingot.api.web import fields, schemas
from ingot.common import errors, masking

ESCAPES_SINCE = 98
"""Minor version from which paths may hold ~0 and ~1."""

_NO_SUCH_PLACE = "the path leads through something that is not there, or is no object or list; add that first"

_WORDS = r"^(/[\w-]+)+$"
_WORDS_AND_ESCAPES = r"^(/([\w-]|~[01])+)+$"


def _operations(path: str) -> schemas.Schema:
    operation = schemas.record(
        {
            "op": {"enum": ["add", "replace", "remove"]},
            "path": {"type": "string", "pattern": path, "maxLength": 2048},
            "value": {},
        },
        required=("op", "path"),
    )
    return schemas.Schema("patch", {"type": "array", "items": operation, "maxItems": 1000})


class Patch:
    """The body of a PATCH request: checked here for its form, in :func:`apply` for its meaning."""

    def __init__(self) -> None:
        self._plain = _operations(_WORDS)
        self.schema = _operations(_WORDS_AND_ESCAPES)

    def check(self, value: Any, minor: int) -> list[dict[str, Any]]:
        (self._plain if minor < ESCAPES_SINCE else self.schema).check(value)
        checked: list[dict[str, Any]] = value
        return checked


BODY = Patch()


def apply(table: fields.Table, current: Mapping[str, Any], patch: list[dict[str, Any]], minor: int) -> dict[str, Any]:
    """What a patch changes.

    :param current: values of all patchable fields, as they are stored.
    :returns: new values of the fields that are different afterwards.
    :raises Invalid: a field cannot be patched, or would get a value that it cannot have.
    :raises PatchError: an operation cannot be applied.
    :raises VersionRefused: a field is newer than the request's version, unless the table has another error for that.
    """
    used = _used(table, patch, minor)
    document = copy.deepcopy({name: current[name] for name in used})
    for operation in patch:
        _run(document, operation)
    written = {name: document[name] for name in used if document.get(name) is not None}
    fields.Body("patch", used.values()).schema.check(written)
    outcome = {name: fields.parsed(field, document.get(name)) for name, field in used.items()}
    changed = {name: _unmasked(value, current[name]) for name, value in outcome.items() if value != current[name]}
    return {name: value for name, value in changed.items() if value != current[name]}


def _used(table: fields.Table, patch: list[dict[str, Any]], minor: int) -> dict[str, fields.Field]:
    patchable = table.patchable()
    names = dict.fromkeys(operation["path"].split("/")[1] for operation in patch)
    for name in names:
        if name not in patchable:
            allowed = ", ".join(sorted(known for known, field in patchable.items() if field.since <= minor))
            raise errors.Invalid(f"Cannot patch /{name[:80]}. Only the following can be updated: {allowed}.")
    used = {name: patchable[name] for name in names}
    newer = (field for field in used.values() if (field.patch_since or field.since) > minor)
    fields.refuse_newer(newer, minor, table.newer)
    return used


def _run(document: dict[str, Any], operation: dict[str, Any]) -> None:
    # A list or a text where the path expects an object shows as any of these.
    refusals = (jsonpatch.JsonPatchException, TypeError, ValueError, LookupError)
    told = {key: operation[key] for key in ("op", "path")}
    try:
        jsonpatch.apply_patch(document, [operation], in_place=True)
    except jsonpointer.JsonPointerException as exc:
        # Its own words repeat the value that it looked into, secrets and all.
        raise errors.PatchError(patch=told, reason=_NO_SUCH_PLACE) from exc
    except refusals as exc:
        raise errors.PatchError(patch=told, reason=str(exc)[:300]) from exc


def _unmasked(value: Any, before: Any) -> Any:
    """``value`` with the secrets that a client sends back as it was shown them put in again."""
    if not isinstance(value, dict) or not isinstance(before, dict):
        return value
    return {
        key: before[key]
        if inner == masking.MASK and masking.is_secret(key) and key in before
        else _unmasked(inner, before.get(key))
        for key, inner in value.items()
    }
