"""Tables of fields: what a resource shows, sorts and selects, and how a JSON patch changes it.

A resource's table is the only place that knows its fields. Representation, ``fields=``, detail, sort keys, what POST
and PATCH accept, and the answer 406 for what is newer than the request all derive from it.
"""

import copy
import functools
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jsonpatch
import jsonpointer
import orjson

from ingot.api.auth import access
from ingot.api.web import fields
from ingot.api.web.call import Call
from ingot.api.web.fields import Compute, Field
from ingot.common import errors, masking
from ingot.common.json_types import Json
from ingot.db import listing, models


class Selection(NamedTuple):
    """What one answer shows of each record.

    :param columns: what must be read for it.
    :param plain: names of fields that are columns.
    :param computed: names of the others with their functions.
    :param guarded: names of those with rules of their own for seeing them, with these rules.
    :param kept: columns that nothing but the answer needs: JSON in them goes there as the text that is kept.
    """

    names: frozenset[str]
    columns: tuple[str, ...]
    plain: tuple[str, ...]
    computed: tuple[tuple[str, Compute], ...]
    guarded: tuple[tuple[str, str], ...] = ()
    kept: frozenset[str] = frozenset()

    def columns_of(self, source: listing.Source[listing.AnyModel]) -> tuple[str, ...]:
        """Return those of the needed columns that the source has; the others are completed afterwards."""
        return tuple(name for name in self.columns if name in source.computed or name in source.table.c)

    def render(self, record: models.Record, call: Call) -> Json:
        """Return one record as the client sees it."""
        row = record.__dict__
        shown = {name: row[name] for name in self.plain}
        for name, compute in self.computed:
            shown[name] = compute(record, call)
        if self.guarded and not call.access.sees_all:
            target = access.build_target("node", owner=row["owner"], lessee=row["lessee"])
            for name, rule in self.guarded:
                if not call.access.permits(rule, target):
                    notice = f"** Redacted - requires {rule} permission. **"
                    shown[name] = {"content": notice} if isinstance(shown[name], dict) else notice
        return shown


class Table:
    """The fields of a resource.

    :param noun: the resource in messages, e.g. ``port``.
    :param newer: the error for writing a field that is newer than the request's version.
    :param always: columns that are read whatever is shown: an object's owner decides what may be seen of it.
    """

    def __init__(
        self,
        noun: str,
        *declared: Field,
        newer: type[errors.IngotError] = errors.VersionRefused,
        always: tuple[str, ...] = (),
    ) -> None:
        self.noun = noun
        self.newer = newer
        self._always = always
        self.fields: Mapping[str, Field] = {field.name: field for field in declared}
        written = (
            field if field.post_since is None else field._replace(since=field.post_since)
            for field in self.fields.values()
            if field.type and field.write & fields.POST
        )
        self.creation = fields.Body(noun, *written, newer=newer)
        self.patchable: Mapping[str, Field] = {
            name: field for name, field in self.fields.items() if field.type and field.write & fields.PATCH
        }
        self.select = functools.lru_cache(maxsize=256)(self._select)

    def sort_column(self, key: str, minor: int) -> str:
        """Return the column for a ``sort_key``.

        :raises Invalid: lists cannot be sorted by it.
        :raises VersionRefused: it is newer than the request's version.
        """
        if key in ("", "id"):
            return "id"
        field = self.fields.get(key)
        if field is None or not field.sortable:
            allowed = ", ".join(sorted(name for name, known in self.fields.items() if known.sortable))
            raise errors.Invalid(field="sort_key", value=key, allowed=f"Lists can be sorted by: {allowed}.")
        fields.refuse_newer((field,), minor)
        return key

    def _select(self, minor: int, names: tuple[str, ...] | None = None, detail: bool = True) -> Selection:
        """Return what to show.

        :param names: from ``fields=``; None for the usual ones.
        :param detail: with no names: everything, else what is brief.
        :raises Invalid: a name is unknown.
        :raises VersionRefused: a named field is newer than the request's version.
        """
        if names is None:
            chosen = [
                field
                for field in self.fields.values()
                if field.since <= minor and not field.hidden and (detail or field.brief)
            ]
        else:
            chosen = self._list_named((*names, *({"links"} & self.fields.keys())), minor)
        plain = tuple(field.name for field in chosen if field.compute is None)
        needed = (field.needs or (() if field.compute else (field.name,)) for field in chosen)
        computed_from = itertools.chain(*(field.needs for field in chosen))
        return Selection(
            frozenset(field.name for field in chosen),
            tuple(dict.fromkeys(itertools.chain(*needed, self._always))),
            plain,
            tuple((field.name, field.compute) for field in chosen if field.compute),
            tuple((field.name, field.see) for field in chosen if field.see),
            frozenset(plain).difference(computed_from),
        )

    def _list_named(self, given: Iterable[str], minor: int) -> list[Field]:
        names = dict.fromkeys(given)
        shown = {name: field for name, field in self.fields.items() if not field.hidden}
        unknown = sorted(name for name in names if name not in shown)
        if unknown:
            known = ", ".join(sorted(name for name, field in shown.items() if field.since <= minor))
            raise errors.Invalid(field="fields", value=", ".join(unknown), allowed=f"A {self.noun} has: {known}.")
        chosen = [shown[name] for name in names]
        fields.refuse_newer(chosen, minor)
        return chosen


def masked_field(name: str, since: int = 1, **options: Any) -> Field:
    """Return a field that shows its column with secrets masked.

    :param options: further ones of :class:`ingot.api.web.fields.Field`.
    """

    def compute(record: models.Record, _call: Call) -> object:
        found = vars(record)[name]
        return found and masking.mask(found)  # most are empty

    return Field(name, since, compute=compute, needs=(name,), masked=True, **options)


LINKS: Json = {
    "type": "array",
    "items": fields.complete_schema({"href": fields.TEXT_SCHEMA, "rel": fields.TEXT_SCHEMA}),
}


def links_field(collection: str, column: str = "uuid", below: str = "", since: int = 1) -> Field:
    """Return the field ``links`` of a resource: its own address and the bookmark.

    :param below: a sub-resource; the field has its name and its links.
    """

    path = f"{collection}/{_OWN_NAME}/{below}".rstrip("/")

    def compute(record: models.Record, call: Call) -> orjson.Fragment:
        return orjson.Fragment(orjson.dumps(getattr(record, column))[1:-1].join(_split_links(call.base, path)))

    return Field(below or "links", since, compute=compute, needs=(column,), brief=not below, schema=LINKS)


def record_fields(collection: str, since: int = 1) -> tuple[Field, ...]:
    """Return what most resources show of their rows: their links, and when they were created and changed."""
    return (links_field(collection), *(Field(name, since, sortable=True) for name in ("created_at", "updated_at")))


def build_links(call: Call, path: str) -> list[dict[str, str]]:
    return _build_links(call.base, path)


def _build_links(base: str, path: str) -> list[dict[str, str]]:
    return [{"href": f"{base}/v1/{path}", "rel": "self"}, {"href": f"{base}/{path}", "rel": "bookmark"}]


_OWN_NAME = "<own-name>"
"""Stands for the name of an object in its links, which are the same but for it."""


@functools.lru_cache(maxsize=32)  # strangers may name hosts, too, and long ones
def _split_links(base: str, path: str) -> list[bytes]:
    """Return links as text, in parts between which the own name stands."""
    return orjson.dumps(_build_links(base, path)).split(_OWN_NAME.encode())


_ESCAPES_SINCE = 98
"""Minor version from which the paths of a patch may hold ~0 and ~1."""

_NO_SUCH_PLACE = "the path leads through something that is not there, or is no object or list; add that first"


def _build_patch_schema(path: str) -> fields.Schema:
    operation = fields.object_schema(
        {
            "op": {"enum": ["add", "replace", "remove"]},
            "path": {"type": "string", "pattern": path, "maxLength": 2048},
            "value": {},
        },
        required=("op", "path"),
    )
    return fields.Schema("patch", {"type": "array", "items": operation, "maxItems": 1000})


class _PatchBody:
    """The body of a PATCH request (RFC 6902): checked here for its form, in :func:`apply_patch` for its meaning."""

    schema = _build_patch_schema(r"^(/([\w-]|~[01])+)+$")
    _plain = _build_patch_schema(r"^(/[\w-]+)+$")

    def check(self, value: object, minor: int) -> object:
        (self._plain if minor < _ESCAPES_SINCE else self.schema).check(value)
        return value


PATCH_BODY = _PatchBody()


def apply_patch(table: Table, current: Mapping[str, object], patch: list[Json], minor: int) -> Json:
    """Return the new values of the fields that a patch changes.

    :param current: values of all patchable fields, as they are stored.
    :raises Invalid: a field cannot be patched, or would get a value that it cannot have.
    :raises PatchError: an operation cannot be applied.
    :raises VersionRefused: a field is newer than the request's version, unless the table has another error for that.
    """
    names = dict.fromkeys(operation["path"].split("/")[1] for operation in patch)
    if unknown := next((name for name in names if name not in table.patchable), None):
        allowed = ", ".join(sorted(known for known, field in table.patchable.items() if field.since <= minor))
        raise errors.Invalid(f"Cannot patch /{unknown[:80]}. Only the following can be updated: {allowed}.")
    used = {name: table.patchable[name] for name in names}
    newer = (field for field in used.values() if (field.patch_since or field.since) > minor)
    fields.refuse_newer(newer, minor, table.newer)
    document = copy.deepcopy({name: current[name] for name in used})
    for operation in patch:
        _run(document, operation)
    written = {name: document[name] for name in used if document.get(name) is not None}
    fields.Body("patch", *used.values()).schema.check(written)
    outcome = {name: field.parse(document.get(name)) for name, field in used.items()}
    changed = {
        name: unmask(name, value, current[name]) if used[name].masked else value
        for name, value in outcome.items()
        if value != current[name]
    }
    return {name: value for name, value in changed.items() if value != current[name]}


def _run(document: Json, operation: Json) -> None:
    # A list or a text where the path expects an object shows as any of these.
    refusals = (jsonpatch.JsonPatchException, TypeError, ValueError, LookupError)
    shown = {key: operation[key] for key in ("op", "path")}
    try:
        jsonpatch.apply_patch(document, [operation], in_place=True)
    except jsonpointer.JsonPointerException as exc:
        # Its message repeats the value at the path, secrets and all.
        raise errors.PatchError(patch=shown, reason=_NO_SUCH_PLACE) from exc
    except refusals as exc:
        raise errors.PatchError(patch=shown, reason=str(exc)[:300]) from exc


def unmask(where: str, value: object, before: object = None) -> object:
    """Return ``value`` with its secrets put in again, where a client sends them back masked, as they were shown.

    :param where: names of the field and of what it is in, with dots.
    :param before: what is stored there now.
    :raises Invalid: there is a mask, and no secret that it stands for.
    """
    if isinstance(value, dict):
        known = before if isinstance(before, dict) else {}
        return {key: _unmask_item(f"{where}.{key}", key, inner, known) for key, inner in value.items()}
    if isinstance(value, list):
        former = _find_former(value, before) if isinstance(before, list) else [None] * len(value)
        return [unmask(f"{where}.{index}", value[index], former[index]) for index in range(len(value))]
    if isinstance(value, str) and any(hidden in value for hidden in _HIDDEN_IN_URLS):
        if not isinstance(before, str) or masking.mask_text(before) != value:
            raise _mask_error(where)
        return before
    return value


_HIDDEN_IN_URLS = (f":{masking.MASK}@", f"={masking.MASK}")


def _unmask_item(where: str, key: str, value: object, known: Json) -> object:
    if value != masking.MASK or not masking.is_secret(key):
        return unmask(where, value, known.get(key))
    if key not in known:
        raise _mask_error(where)
    return known[key]


def _mask_error(where: str) -> errors.Invalid:
    hint = "So secrets are shown, and there is none that this could stand for: send the secret itself, or leave it out."
    return errors.Invalid(f"Invalid {where}: {masking.MASK}. {hint}")


def _find_former(items: list[object], before: list[object]) -> list[object]:
    """Return, for each item of a list that a client sends, what is stored of it; None for a new one.

    Steps are known by their names, whatever else of them changes. Other items are those that look the same, at the same
    place where several do.
    """
    by_step = {name: item for item in before if (name := _name_step(item))}
    shown = masking.mask(before)

    def find(index: int, item: object) -> object:
        if name := _name_step(item):
            return by_step.get(name)
        if shown[index : index + 1] == [item]:
            return before[index]
        same = [place for place, one in enumerate(shown) if one == item]
        return before[same[0]] if len(same) == 1 else None

    return [find(index, item) for index, item in enumerate(items)]


def _name_step(item: object) -> str | None:
    if isinstance(item, dict) and {"interface", "step"} <= item.keys():
        return f"{item['interface']}.{item['step']}"
    return None
