"""Pages of rows: filters, stable order, markers. What all list requests of the API run through."""

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


TESTS: Mapping[str, Callable[[Column, Any], Column]] = {
    "contains": lambda column, value: column.contains(value, autoescape=True),
    "equals": lambda column, value: column.is_(None) if value is None else column == value,
    "is_set": lambda column, value: column.is_not(None) if value else column.is_(None),
    "one_of": lambda column, value: column.in_(value),
    "one_of_given": lambda column, value: column.in_(value) if value else sa.true(),
}


class Condition(NamedTuple):
    """One filter.

    :param column: name of a column, or several of which any may match.
    :param test: name of a test of :data:`TESTS`.
    """

    column: str | tuple[str, ...]
    test: str
    value: Any

    def clause(self, source: AnySource) -> Column:
        names = (self.column,) if isinstance(self.column, str) else self.column
        return sa.or_(*(TESTS[self.test](source.column(name), self.value) for name in names))


class Either(NamedTuple):
    """Conditions of which one must hold."""

    conditions: tuple[Condition, ...]

    def clause(self, source: AnySource) -> Column:
        return sa.or_(*(condition.clause(source) for condition in self.conditions))


class Page(NamedTuple):
    """The part of a list that is read.

    :param limit: most rows; None for all.
    :param marker: key of the row before the first.
    """

    where: Sequence[Condition | Either] = ()
    sort_key: str = "id"
    descending: bool = False
    limit: int | None = None
    marker: str | None = None


def page(db: Database, source: Source[AnyModel], columns: Collection[str], part: Page) -> list[AnyModel]:
    """Return one page of rows: one statement, two with a marker.

    Rows without a value for the sort key come first in ascending order, on every database; ties are broken by age.

    :param columns: what to read of each row, besides id and the marker's key.
    :raises NotFound: there is no row with the marker's key.
    """
    names = dict.fromkeys(("id", source.key, *columns))
    statement = sa.select(*(source.column(name).label(name) for name in names))
    statement = statement.where(*(condition.clause(source) for condition in part.where))
    sorted_by = source.column(part.sort_key)
    own_id = source.table.c.id
    with db.single() as connection:
        if part.marker is not None:
            statement = statement.where(_after_marker(connection, source, part))
        statement = statement.order_by(*_order(sorted_by, own_id, part.descending)).limit(part.limit)
        return source.model.all_of(connection.execute(statement))


def _order(sorted_by: Column, own_id: Column, descending: bool) -> list[Column]:
    if sorted_by is own_id:
        return [own_id.desc() if descending else own_id]
    empty_first = sa.case((sorted_by.is_(None), 0), else_=1)
    return [empty_first.desc(), sorted_by.desc(), own_id] if descending else [empty_first, sorted_by, own_id]


def _after_marker(connection: sa.Connection, source: AnySource, part: Page) -> Column:
    """Return the condition for rows that come after the marker's."""
    own_id = source.table.c.id
    sorted_by = source.column(part.sort_key)
    statement = sa.select(own_id, sorted_by.label("value")).where(source.table.c[source.key] == part.marker)
    marker = connection.execute(statement).first()
    if marker is None:
        raise errors.NotFound(noun=source.noun, ident=part.marker)
    if sorted_by is own_id:
        return sa.and_(own_id < marker.id if part.descending else own_id > marker.id)
    younger = own_id > marker.id
    if marker.value is None:
        tied = sa.and_(sorted_by.is_(None), younger)
        return tied if part.descending else sa.or_(tied, sorted_by.is_not(None))
    tied = sa.and_(sorted_by == marker.value, younger)
    if part.descending:
        return sa.or_(sorted_by < marker.value, sorted_by.is_(None), tied)
    return sa.or_(sorted_by > marker.value, tied)


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
    names = dict.fromkeys(("id", *columns)) if columns is not None else (*source.table.c.keys(), *source.computed)
    statement = sa.select(*(source.column(name).label(name) for name in names)).where(condition.clause(source))
    return db.read_first(source.model, statement)
