"""Lists, single objects and their editing, the same for every resource that is described by a table of fields."""

import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple

from ingot.api.auth import access
from ingot.api.web import fields, operations, tables
from ingot.api.web.call import Call, Reply
from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import listing, models
from ingot.db.engine import Database
from ingot.db.listing import AnyModel

_LINKED = ("sort_key", "sort_dir")
_LAST = ("fields", "limit", "marker")


class Collection(NamedTuple, Generic[AnyModel]):
    """A resource as far as lists and single objects are concerned.

    :param name: key of the list in answers, e.g. ``ports``.
    :param filters: query parameters that narrow the list.
    :param marker: parses what names the last item of a page; a uuid for most resources.
    :param selects: whether the list takes ``fields=``.
    :param details: whether the list takes ``detail=``.
    :param ownership: how its objects belong to projects, if they do.
    :param complete: adds to records what is in other tables, one statement for all of them; most are in one table.
    """

    name: str
    table: tables.Table
    source: listing.Source[AnyModel]
    filters: tuple[operations.Param, ...] = ()
    marker: Callable[[str, str], str | None] = fields.parse_uuid
    selects: bool = True
    details: bool = True
    complete: Callable[[Call, list[AnyModel], tables.Selection], None] = lambda *_arguments: None
    ownership: access.Ownership[AnyModel] | None = None

    @property
    def one(self) -> "One":
        """The shape of an object."""
        return One(self.table, self.source.json_schema)

    @property
    def page(self) -> operations.Answer:
        """The answer with a page of the list."""
        return operations.Answer(shows=Page(self.name, self.one))

    def params(self, detail: bool = False) -> tuple[operations.Param, ...]:
        """Return the query parameters of the list, or of the list at .../detail."""
        selecting = ((operations.FIELDS,) if self.selects else ()) + ((operations.DETAIL,) if self.details else ())
        marker = operations.Param("marker", self.marker)
        return (*self.filters, *operations.PAGING, marker, *(() if detail else selecting))


class One(NamedTuple):
    """The shape of a single object.

    :param column_schema: returns the JSON schema of a column; None for what is no column.
    """

    table: tables.Table
    column_schema: Callable[[str], Json | None] = lambda _name: None

    def schema(self, named: Json) -> Json:
        """See :class:`ingot.api.web.operations.Shape`. No key is required: ``fields=`` and versions choose."""
        name = self.table.noun.replace("'", "").title().replace(" ", "")
        properties = {}
        for field in (field for field in self.table.fields.values() if not field.hidden):
            known = field.schema or self.column_schema(field.name) or (field.type and field.type.schema) or {}
            properties[field.name] = {**known, **fields.version_extension(field.since)}
        named[name] = fields.object_schema(properties)
        return {"$ref": f"#/components/schemas/{name}"}


class Page(NamedTuple):
    """The shape of a page of a list.

    :param key: of the list.
    """

    key: str
    one: One

    def schema(self, named: Json) -> Json:
        """See :class:`ingot.api.web.operations.Shape`."""
        items = {self.key: {"type": "array", "items": self.one.schema(named)}}
        return fields.object_schema({**items, "next": {"type": "string"}}, (self.key,))


def index(
    call: Call, collection: Collection[AnyModel], where: Iterable[listing.Condition], detail: bool = False
) -> Reply:
    """Answer with a page of a list.

    :param where: conditions beside those of the filters in the query.
    :param detail: show everything, as .../detail does.
    """
    query = call.query
    selection = read_selection(call, collection.table, detail)
    limit = min(query.get("limit", call.conf.api.max_limit), call.conf.api.max_limit)
    page = listing.Page(
        where=(
            *where,
            *operations.build_conditions(collection.filters, query),
            *build_ownership_conditions(call, collection, query.get("project")),
        ),
        sort_key=collection.table.sort_column(query.get("sort_key", "id"), call.minor),
        descending=query.get("sort_dir") == "desc",
        limit=limit,
        marker=query.get("marker"),
        kept=selection.kept,
    )
    found = listing.page(call.db, collection.source, selection.columns_of(collection.source), page)
    collection.complete(call, found, selection)
    body: Json = {collection.name: [selection.render(record, call) for record in found]}
    if len(found) == limit:
        body["next"] = _next_link(call, collection, selection, found[-1], limit)
    return Reply(body)


def build_list(
    described: Collection[AnyModel],
    build_conditions: Callable[..., Iterable[listing.Condition]] = lambda _call: (),
    detail: bool = False,
) -> operations.Operation:
    """Return the operation that answers with a page of a list.

    :param build_conditions: returns conditions beside those of the filters; gets the object that the URL is below.
    :param detail: show everything, at .../detail.
    """

    @operations.operation(*described.params(detail), answer=described.page)
    def list_page(call: Call, **above: str) -> Reply:
        return index(call, described, build_conditions(call, *above.values()), detail)

    return list_page


def complete_lists(
    call: Call,
    found: Sequence[models.Row],
    selection: tables.Selection,
    name: str,
    read: Callable[[Database, list[int]], Mapping[int, Sequence[object]]],
) -> None:
    """Complete records with a list of what is in another table, if the selection has its name.

    :param read: returns the lists that are not empty by the id of their owner, with one statement.
    """
    if name in selection.names and found:
        known = read(call.db, [record.id for record in found])
        for record in found:
            setattr(record, name, known.get(record.id, []))


def read_selection(call: Call, table: tables.Table, detail: bool = False) -> tables.Selection:
    """Return what a list shows of each object, by the parameters ``fields`` and ``detail``.

    :param detail: show everything, as .../detail does.
    :raises Invalid: both are given.
    """
    names, everything = call.query.get("fields"), call.query.get("detail")
    if everything and names is not None:
        raise errors.Invalid("Can not specify ?detail=True and fields in the same request: leave one out.")
    return table.select(call.minor, names, detail or bool(everything))


def build_ownership_conditions(
    call: Call, collection: Collection[AnyModel], project: str | None = None
) -> list[listing.Condition | listing.Either]:
    """Return what limits a list to the objects of the project of the request, if anything does.

    :param project: the project whose objects are requested.
    :raises Forbidden: the request may not see them.
    """
    if collection.ownership is None:
        return []
    own = call.access.limit_to_project(f"baremetal:{collection.ownership.noun}", project)
    return [] if own is None else [collection.ownership.condition(own)]


def _next_link(
    call: Call, collection: Collection[AnyModel], selection: tables.Selection, last: AnyModel, limit: int
) -> str:
    kept = {name: call.query[name] for name in (*_LINKED, *call.query) if name in call.query and name not in _LAST}
    detail = call.query.get("detail") or call.path.endswith("/detail")
    if collection.selects and not detail:
        kept["fields"] = tuple(name for name in collection.table.fields if name in selection.names and name != "links")
    kept |= {"limit": limit, "marker": getattr(last, collection.source.key)}
    text = {name: ",".join(value) if isinstance(value, tuple) else str(value) for name, value in kept.items()}
    return f"{call.base}{call.path}?{urllib.parse.urlencode(text)}"


def show(call: Call, collection: Collection[AnyModel], record: AnyModel) -> Json:
    """Return one object, with what ``fields=`` selects."""
    selection = collection.table.select(call.minor, call.query.get("fields"))
    collection.complete(call, [record], selection)
    return selection.render(record, call)


def build_row(table: tables.Table, body: Mapping[str, object]) -> Json:
    """Return the columns of a new row: what was sent, and the empty value of what was not."""
    return {
        name: _accept(field, body[name]) if name in body else field.parse(None)
        for name, field in table.fields.items()
        if field.type
    }


def _accept(field: fields.Field, value: object) -> object:
    """Return a value of a new row.

    :raises Invalid: it has secrets that are masked, as in an answer of the API.
    """
    return tables.unmask(field.name, value) if field.masked else value


def read_changes(call: Call, collection: Collection[AnyModel], record: AnyModel) -> Json:
    """Return what the request's patch changes of a record; see :func:`ingot.api.web.tables.apply_patch`.

    :raises Forbidden: it would change what the request may not change.
    """
    if call.access.limited:
        target = collection.ownership.target(record) if collection.ownership else access.NO_TARGET
        named = (collection.table.fields.get(operation["path"].split("/")[1]) for operation in call.body)
        # The rules of the fields that the patch names; for those without one, that of the request itself.
        for rule in dict.fromkeys((field and field.edit) or call.rule for field in named) or (call.rule,):
            call.access.require(rule, target)
    stored = vars(record)  # with secrets as they are kept: none is decrypted to be written again
    current = {name: stored[name] for name in collection.table.patchable if name in stored}
    changes = tables.apply_patch(collection.table, current, call.body, call.minor)
    limit = call.conf.api.max_json_body_depth
    for name, value in changes.items():
        if fields.is_deeper_than(value, limit):
            raise errors.Invalid(f"Field {name} would be nested more than {limit} deep, which is too deep.")
    return changes


def build_without_ident(param: str) -> operations.Operation:
    """Return the operation that refuses a request whose URL names no object.

    :param param: what clients call what is missing.
    """

    @operations.operation(answer=operations.Answer(400))
    def without_ident(call: Call) -> Reply:
        """Refuse the request: its URL names no object."""
        raise errors.Invalid(f"Missing mandatory parameter: {param}. Send it as {call.path.rstrip('/')}/<{param}>.")

    return without_ident
