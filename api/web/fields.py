"""Fields of resources, declared once: what is shown from which version on, what may be written, sorted, selected.

A resource's table of fields is the only place that knows them. Representation, ``fields=``, detail, sort keys, what
POST and PATCH accept, and the answer 406 for what is newer than the request all derive from it.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ingot.api.auth import access
from ingot.api.web import field_types, schemas
from ingot.api.web.call import Call
from ingot.common import errors
from ingot.db import listing, models

Compute = Callable[[models.Record, Call], Any]

POST = 1
PATCH = 2
BOTH = POST | PATCH


class Field(NamedTuple):
    """A field of a resource, or a key of a request's body.

    :param since: minor version that shows it, and that takes it in a body.
    :param type: what may be written; None for what clients cannot write.
    :param write: POST, PATCH or BOTH, for those with a type.
    :param brief: whether items of a list show it when the client asks for nothing particular.
    :param sortable: whether lists can be sorted by it.
    :param compute: makes the shown value of a record; without it the column of the same name is shown.
    :param needs: the columns that ``compute``, or what completes the record, works with.
    :param patch_since: where PATCH takes it at older versions than answers show it.
    :param post_since: where POST does.
    :param required: whether a POST must have it, and a PATCH cannot remove it.
    :param hidden: whether answers never show it.
    :param schema: JSON schema of what is shown, where neither the column nor the type tell it.
    :param see: the rule of policy for seeing it, if it has one of its own.
    :param edit: the rule of policy for patching it, if it has one of its own.
    """

    name: str
    since: int = 1
    type: field_types.FieldType | None = None
    write: int = BOTH
    brief: bool = False
    sortable: bool = False
    compute: Compute | None = None
    needs: tuple[str, ...] = ()
    patch_since: int | None = None
    post_since: int | None = None
    required: bool = False
    hidden: bool = False
    schema: Mapping[str, Any] | None = None
    see: str | None = None
    edit: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.needs or (() if self.compute else (self.name,))


class Body:
    """A request body: an object whose keys are declared fields.

    :param newer: the error for a key that is newer than the request's version.
    """

    def __init__(
        self, noun: str, declared: Iterable[Field], newer: type[errors.IngotError] = errors.VersionRefused
    ) -> None:
        self._newer = newer
        self.declared: tuple[Field, ...] = tuple(declared)
        self._fields = {field.name: field for field in self.declared}
        self._needs_version = [field for field in self._fields.values() if field.since > 1]
        self.schema = schemas.Schema(noun, object_schema(self._fields.values()))

    def check(self, value: Any, minor: int) -> dict[str, Any]:
        """The body with every value parsed; keys that were not sent are absent.

        :raises Invalid: see :class:`schemas.Schema` and the field_types.
        :raises VersionRefused: a key is newer than the request's version, unless the body has another error for that.
        """
        body = {} if value is None else value
        if isinstance(body, dict):
            refuse_newer((field for field in self._needs_version if field.name in body), minor, self._newer)
        self.schema.check(body)
        return {name: parsed(self._fields[name], given) for name, given in body.items()}


def object_schema(declared: Iterable[Field]) -> dict[str, Any]:
    """The JSON schema of an object with these fields."""
    writable = [field for field in declared if field.type]
    return schemas.record(
        {field.name: field.type.schema | brought(field.since) for field in writable if field.type},
        [field.name for field in writable if field.required],
    )


def parsed(field: Field, value: Any) -> Any:
    """A written value in the form that is stored."""
    assert field.type is not None  # noqa: S101 - only writable fields get here
    if value is None:
        return copy.copy(field.type.empty)
    return value if field.type.parse is None else field.type.parse(field.name, value)


def refuse_newer(used: Iterable[Field], minor: int, refusal: type[errors.IngotError] = errors.VersionRefused) -> None:
    """
    :raises VersionRefused: a used field is newer than the request's version; ``refusal`` may be another error.
    """
    for field in used:
        if field.since > minor:
            raise refusal(
                f"Request not acceptable. The field {field.name} needs API version 1.{field.since} or newer; "
                f"the request speaks 1.{minor}."
            )


class Selection(NamedTuple):
    """What one answer shows of each record.

    :param columns: what must be read for it.
    :param plain: names of fields that are columns.
    :param computed: names of the others with their functions.
    :param guarded: names of those that not everybody may see, with the rules for seeing them.
    """

    names: frozenset[str]
    columns: tuple[str, ...]
    plain: tuple[str, ...]
    computed: tuple[tuple[str, Compute], ...]
    guarded: tuple[tuple[str, str], ...] = ()

    def columns_of(self, source: listing.Source) -> tuple[str, ...]:
        """Those of the needed columns that the source has; the others are completed afterwards."""
        return tuple(name for name in self.columns if name in source.computed or name in source.table.c)

    def render(self, record: models.Record, call: Call) -> dict[str, Any]:
        """One record as the client sees it."""
        row = record.__dict__
        shown = {name: row[name] for name in self.plain}
        for name, compute in self.computed:
            shown[name] = compute(record, call)
        if self.guarded and not call.access.sees_all:
            self._hide(shown, access.node_target(record), call)
        return shown

    def _hide(self, shown: dict[str, Any], whose: access.Target, call: Call) -> None:
        for name, rule in self.guarded:
            if not call.access.permits(rule, whose):
                told = f"** Redacted - requires {rule} permission. **"
                shown[name] = {"content": told} if isinstance(shown[name], dict) else told


class Table:
    """The fields of a resource.

    :param noun: the resource in messages, e.g. ``port``.
    :param newer: the error for writing a field that is newer than the request's version.
    :param always: columns that are read whatever is shown: whose an object is decides what may be seen of it.
    """

    def __init__(
        self,
        noun: str,
        fields: Iterable[Field],
        newer: type[errors.IngotError] = errors.VersionRefused,
        always: tuple[str, ...] = (),
    ) -> None:
        self.noun = noun
        self.newer = newer
        self._always = always
        self.fields: Mapping[str, Field] = {field.name: field for field in fields}
        written = (
            field if field.post_since is None else field._replace(since=field.post_since)
            for field in self.fields.values()
            if field.type and field.write & POST
        )
        self.creation = Body(noun, written, newer)
        self.select = functools.lru_cache(maxsize=2048)(self._select)

    def patchable(self) -> dict[str, Field]:
        """The fields that PATCH takes."""
        return {name: field for name, field in self.fields.items() if field.type and field.write & PATCH}

    def sort_column(self, key: str, minor: int) -> str:
        """The column for a ``sort_key``.

        :raises Invalid: lists cannot be sorted by it.
        :raises VersionRefused: it is newer than the request's version.
        """
        if key in ("", "id"):
            return "id"
        field = self.fields.get(key)
        if field is None or not field.sortable:
            allowed = ", ".join(sorted(name for name, known in self.fields.items() if known.sortable))
            raise errors.Invalid(field="sort_key", value=key, allowed=f"Lists can be sorted by: {allowed}.")
        refuse_newer((field,), minor)
        return key

    def _select(self, minor: int, names: tuple[str, ...] | None = None, detail: bool = True) -> Selection:
        """What to show.

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
            chosen = self._named((*names, "links"), minor)
        columns = dict.fromkeys((*(column for field in chosen for column in field.columns), *self._always))
        return Selection(
            frozenset(field.name for field in chosen),
            tuple(columns),
            tuple(field.name for field in chosen if field.compute is None),
            tuple((field.name, field.compute) for field in chosen if field.compute),
            tuple((field.name, field.see) for field in chosen if field.see),
        )

    def _named(self, names: Iterable[str], minor: int) -> list[Field]:
        wanted = dict.fromkeys(names)
        shown = {name: field for name, field in self.fields.items() if not field.hidden}
        unknown = sorted(name for name in wanted if name not in shown)
        if unknown:
            known = ", ".join(sorted(name for name, field in shown.items() if field.since <= minor))
            raise errors.Invalid(field="fields", value=", ".join(unknown), allowed=f"A {self.noun} has: {known}.")
        chosen = [shown[name] for name in wanted]
        refuse_newer(chosen, minor)
        return chosen


def shown_schema(table: Table, source: listing.Source | None = None) -> dict[str, Any]:
    """The JSON schema of an object as answers show it. No key is sure to be there: ``fields=`` and versions choose.

    :param source: whose columns tell the types.
    """
    properties = {}
    for field in (field for field in table.fields.values() if not field.hidden):
        known = field.schema or (source and source.json_schema(field.name)) or (field.type and field.type.schema) or {}
        properties[field.name] = {**known, **brought(field.since)}
    return schemas.record(properties)


def brought(minor: int) -> dict[str, Any]:
    """The extension of OpenAPI by which OpenStack says which microversion brought something; nothing for the first."""
    return {"x-openstack": {"min-ver": f"1.{minor}"}} if minor > 1 else {}


LINKS: Mapping[str, Any] = {
    "type": "array",
    "items": schemas.complete({"href": schemas.TEXT, "rel": schemas.TEXT}),
}


def links(collection: str, column: str = "uuid") -> Field:
    """The field ``links`` of a resource: its own address and the bookmark."""

    def compute(record: models.Record, call: Call) -> list[dict[str, str]]:
        return link_pair(call, f"{collection}/{getattr(record, column)}")

    return Field("links", compute=compute, needs=(column,), brief=True, schema=LINKS)


def sub_links(name: str, collection: str, since: int = 1) -> Field:
    """A field with the links of a sub-resource."""

    def compute(record: models.Record, call: Call) -> list[dict[str, str]]:
        return link_pair(call, f"{collection}/{record.uuid}/{name}")

    return Field(name, since, compute=compute, needs=("uuid",), schema=LINKS)


def link_pair(call: Call, path: str) -> list[dict[str, str]]:
    return [
        {"href": f"{call.base}/v1/{path}", "rel": "self"},
        {"href": f"{call.base}/{path}", "rel": "bookmark"},
    ]
