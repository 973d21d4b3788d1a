"""Pages of rows: filters, stable order, markers. What all list requests of the API run through.

A statement is built once for all that differ in values only; to build it takes longer than to run it.
"""

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import sqlalchemy as sa
from oslo_utils import uuidutils

from ingot.common import errors
from ingot.common.json_types import Json
from ingot.db import models
from ingot.db.engine import Database
from ingot.db.models.base import AnyColumn as Column
from ingot.db.models.base import json_schema

AnyModel = TypeVar("AnyModel", bound=models.Base)
AnyPast = TypeVar("AnyPast", models.AgentLog, models.NodeHistory)


class Source(NamedTuple, Generic[AnyModel]):
    """What is read: a table, and columns of other tables that stand in for its foreign keys.

    :param noun: one row in messages, e.g. ``Port``.
    :param model: the table's declaration, with the further columns; what is read is one of these.
    :param computed: further columns by name, e.g. the node's uuid of a port.
    :param key: the column that a page's marker names.
    """

    noun: str
    model: type[AnyModel]
    computed: Mapping[str, Column] = {}
    key: str = "uuid"

    def __hash__(self) -> int:
        return hash((self.model, self.key))

    @property
    def table(self) -> sa.Table:
        return models.table(self.model)

    def column(self, name: str) -> Column:
        return self.computed[name] if name in self.computed else self.table.c[name]

    def json_schema(self, name: str) -> Json | None:
        """Return the JSON schema of what the API shows of a column; None for what is no column."""
        known = name in self.computed or name in self.table.c
        return json_schema(self.column(name)) if known else None


AnySource = Source[Any]


_ESCAPE = "/"
_IN_PATTERN = str.maketrans({sign: f"{_ESCAPE}{sign}" for sign in (_ESCAPE, "%", "_")})

TESTS: Mapping[str, Callable[[Column, Any], Column]] = {
    "contains": lambda column, value: column.contains(value, escape=_ESCAPE),
    "equals": lambda column, value: column.is_(None) if value is None else column == value,
    # What nearly all rows meet, in words that lead to no index: MariaDB would read a whole one for each page.
    "is_empty": lambda column, _value: column.is_(None).is_(sa.true()),
    "is_set": lambda column, value: column.is_not(None) if value else column.is_(None),
    "one_of": lambda column, value: column.in_(value),
    "one_of_given": lambda column, value: column.in_(value) if isinstance(value, sa.BindParameter) else sa.true(),
}


class _Given(NamedTuple):
    """Stands in a statement for a value that it gets when it is executed."""

    name: str


class Condition(NamedTuple):
    """One filter.

    :param column: name of a column, or several of which any may match.
    :param test: name of a test of :data:`TESTS`.
    """

    column: str | tuple[str, ...]
    test: str
    value: Any

    def without_value(self, values: dict[str, object]) -> "Condition":
        """Return what a statement is built from.

        :param values: gets the value, unless the statement depends on it.
        """
        value = self.value
        if value is None or isinstance(value, bool):
            return self
        if not value and not isinstance(value, str):
            return self._replace(value=())
        given = _Given(f"given_{len(values)}")
        values[given.name] = value.translate(_IN_PATTERN) if self.test == "contains" else value
        return self._replace(value=given)

    def clause(self, source: AnySource) -> Column:
        names = (self.column,) if isinstance(self.column, str) else self.column
        return sa.or_(*(self._clause_on(source.column(name)) for name in names))

    def _clause_on(self, column: Column) -> Column:
        value = self.value
        return TESTS[self.test](
            column, sa.bindparam(value.name, type_=column.type) if isinstance(value, _Given) else value
        )


class Either(NamedTuple):
    """Conditions of which one must hold."""

    conditions: tuple[Condition, ...]

    def without_value(self, values: dict[str, object]) -> "Either":
        """See :meth:`Condition.without_value`."""
        return Either(tuple(condition.without_value(values) for condition in self.conditions))

    def clause(self, source: AnySource) -> Column:
        return sa.or_(*(condition.clause(source) for condition in self.conditions))


class Page(NamedTuple):
    """The part of a list that is read.

    :param limit: most rows; None for all.
    :param marker: key of the row before the first.
    :param kept: columns that are read as they are kept; see :func:`ingot.db.models.as_kept`.
    """

    where: Sequence[Condition | Either] = ()
    sort_key: str = "id"
    descending: bool = False
    limit: int | None = None
    marker: str | None = None
    kept: frozenset[str] = frozenset()


def page(db: Database, source: Source[AnyModel], columns: Collection[str], part: Page) -> list[AnyModel]:
    """Return one page of rows: one statement, two with a marker.

    Rows without a value for the sort key come first in ascending order, on every database. Ties are broken by age, the
    oldest first, in descending order the youngest.

    :param columns: what to read of each row, besides id and the marker's key.
    :raises NotFound: there is no row with the marker's key.
    """
    values: dict[str, object] = {}
    form = part._replace(where=tuple(condition.without_value(values) for condition in part.where))
    with db.single() as connection:
        place = None
        if part.marker is not None:
            marker = connection.execute(_find_marker(source, part.sort_key), {"marker": part.marker}).first()
            if marker is None:
                raise errors.NotFound(noun=source.noun, ident=part.marker)
            place = "without value" if marker.value is None else "with value"
            values |= {"marker_id": marker.id, "marker_value": marker.value}
        statement = _select(source, frozenset(columns), form._replace(marker=place), connection.dialect.name)
        return source.model.all_of(connection.execute(statement, values))


@functools.lru_cache(maxsize=64)
def _select(source: AnySource, columns: frozenset[str], form: Page, dialect: str) -> sa.Select[Any]:
    """Return the statement of a page.

    :param form: the page without values but its limit, of which there are few. Its marker says where the page begins:
        at the first row, behind one that has a value for the sort key, or behind one that has none.
    """
    names = dict.fromkeys(("id", source.key, *sorted(columns)))
    found = {name: source.column(name) for name in names}
    shown = {name: models.as_kept(column) if name in form.kept else column for name, column in found.items()}
    statement = sa.select(*(column.label(name) for name, column in shown.items()))
    statement = statement.where(*(condition.clause(source) for condition in form.where))
    if form.marker is not None:
        statement = statement.where(_after_marker(dialect, source, form))
    return statement.order_by(*build_order(dialect, source, form)).limit(form.limit)


def build_order(dialect: str, source: AnySource, part: Page) -> list[Column]:
    """Return the order of a page, as indexes have it: all of it upwards or all of it downwards."""
    sorted_by = source.column(part.sort_key)
    has_ties = _is_nullable(sorted_by) or not (sorted_by.primary_key or getattr(sorted_by, "unique", False))
    ordered: list[Column] = []
    for key in (sorted_by, source.table.c.id) if has_ties else (sorted_by,):
        one: sa.UnaryExpression[Any] = key.desc() if part.descending else key.asc()
        if dialect == "postgresql" and _is_nullable(key):  # the others have it so anyway
            one = one.nulls_last() if part.descending else one.nulls_first()
        ordered.append(one)
    return ordered


def _is_nullable(column: Column) -> bool:
    return bool(getattr(column, "nullable", True))


@functools.lru_cache(maxsize=64)
def _find_marker(source: AnySource, sort_key: str) -> sa.Select[Any]:
    own_key = source.table.c[source.key] == sa.bindparam("marker")
    return sa.select(source.table.c.id, source.column(sort_key).label("value")).where(own_key)


def _after_marker(dialect: str, source: AnySource, form: Page) -> Column:
    """Return the condition for rows that come after the marker's."""
    own_id = source.table.c.id
    sorted_by = source.column(form.sort_key)
    marker_id = sa.bindparam("marker_id", type_=own_id.type)
    later: Column = own_id < marker_id if form.descending else own_id > marker_id
    if sorted_by is own_id:
        return later
    if form.marker == "without value":
        tied = sa.and_(sorted_by.is_(None), later)
        return tied if form.descending else sa.or_(tied, sorted_by.is_not(None))
    value = sa.bindparam("marker_value", type_=sorted_by.type)
    place, here = sa.tuple_(sorted_by, own_id), sa.tuple_(value, marker_id)
    after: Column = place < here if form.descending else place > here
    if dialect == "mysql":  # it finds no place by a tuple, as the others do, but by these words
        beyond = sorted_by < value if form.descending else sorted_by > value
        after = sa.or_(beyond, sa.and_(sorted_by == value, later))
    return sa.or_(after, sorted_by.is_(None)) if form.descending and _is_nullable(sorted_by) else after


def get(db: Database, source: Source[AnyModel], ident: str, columns: Collection[str] | None = None) -> AnyModel:
    """Return a row by uuid or, where the noun has names, by name.

    :param columns: what to read besides the id; everything by default.
    :raises NotFound: there is none.
    """
    by = "uuid" if uuidutils.is_uuid_like(ident) or "name" not in source.table.c else "name"
    found = find(db, source, Condition(by, "equals", ident), columns)
    if found is None:
        raise errors.NotFound(noun=source.noun, ident=ident)
    return found


def get_of_node(db: Database, source: Source[AnyPast], node_id: int, uuid: str) -> AnyPast:
    """Return a whole row by uuid, of those that belong to a node.

    :raises NotFound: the node has none of this uuid.
    """
    found = find(db, source, Condition("uuid", "equals", uuid))
    if found is None or found.node_id != node_id:
        raise errors.NotFound(noun=source.noun, ident=uuid[:80])
    return found


def find(
    db: Database, source: Source[AnyModel], condition: Condition, columns: Collection[str] | None = None
) -> AnyModel | None:
    """Return the row that a condition on a unique column finds.

    :param columns: what to read besides the id; everything by default.
    """
    values: dict[str, object] = {}
    statement = _select_one(source, condition.without_value(values), None if columns is None else frozenset(columns))
    return db.read_first(source.model, statement, **values)


@functools.lru_cache(maxsize=64)
def _select_one(source: AnySource, condition: Condition, columns: frozenset[str] | None) -> sa.Select[Any]:
    names = (
        dict.fromkeys(("id", *sorted(columns))) if columns is not None else (*source.table.c.keys(), *source.computed)
    )
    return sa.select(*(source.column(name).label(name) for name in names)).where(condition.clause(source))
