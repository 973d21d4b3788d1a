"""The fleet: nodes by the terms of a filter, how many match, and which values there are to ask for.

``ingot.api.nodes.fleet_filter`` reads the terms; here they become SQL. Unlike the lists of the Bare Metal API, a part
of the fleet begins at a number: a table on a screen shows any part of it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from oslo_config import cfg

from ingot.db import listing, models, node_lists, triage
from ingot.db.engine import Database
from ingot.db.models.base import AnyColumn
from ingot.db.nodes import NODES, ShownNode

_PORTS = models.table(models.Port)
_TRAITS = models.table(models.NodeTrait)

NEEDS = "needs"
"""Stands for a column: the cause for which the overview shows a node."""

Own = Sequence[listing.Condition | listing.Either]
"""What limits a request to the nodes of its project; empty where nothing does."""


class Pattern(NamedTuple):
    """A text that is asked for.

    :param text: it; empty: no value at all.
    :param open: whether more may follow; after an empty text, any value.
    """

    text: str
    open: bool = False


class Test(NamedTuple):
    """A question to a column of nodes, or to a table whose rows belong to nodes.

    :param name: one of :data:`TESTS`.
    :param column: or :data:`NEEDS`.
    :param values: of which one must fit: patterns, or moments.
    :param expression: what stands for the column; :func:`complete` sets it.
    """

    name: str
    column: str
    values: tuple[Any, ...] = ()
    expression: AnyColumn | None = None

    @property
    def clause(self) -> AnyColumn:
        column = _find_column(self.column) if self.expression is None else self.expression
        return TESTS[self.name](column, self.values)


class Term(NamedTuple):
    """A condition on nodes: tests of which one must hold, or none where it is negated."""

    tests: tuple[Test, ...]
    negated: bool = False

    @property
    def clause(self) -> AnyColumn:
        clause = sa.or_(sa.false(), *(test.clause for test in self.tests))
        # A comparison with what has no value is neither true nor false: it counts as false.
        return sa.not_(sa.func.coalesce(clause, sa.false())) if self.negated else clause


class Part(NamedTuple):
    """Which rows are read; those that tie are in order of their age.

    :param sort_key: a column.
    :param limit: most rows; None for all.
    """

    sort_key: str = "name"
    descending: bool = False
    offset: int = 0
    limit: int | None = None


_ESCAPE = "/"
_IN_PATTERN = str.maketrans({sign: f"{_ESCAPE}{sign}" for sign in (_ESCAPE, "%", "_")})


def _is_exactly(column: AnyColumn, patterns: Collection[Pattern]) -> AnyColumn:
    """Return the condition that a column has one of the texts in just these letters, which is what indexes find."""
    exact = [pattern.text for pattern in patterns if not pattern.open]
    begun = (_like(column, pattern.text, after="%") for pattern in patterns if pattern.open)
    return sa.or_(column.in_(exact), *((column.is_(None),) if "" in exact else ()), *begun)


def _is(column: AnyColumn, patterns: Iterable[Pattern]) -> AnyColumn:
    """Return the condition that a column has one of the texts, in capitals or not."""
    return sa.or_(*(_fold(column, *pattern) for pattern in patterns))


def _fold(column: AnyColumn, text: str, is_open: bool) -> AnyColumn:
    if not text:
        return column != "" if is_open else sa.or_(column.is_(None), column == "")
    # The database folds both sides: none of them knows the same letters as Python.
    folded = sa.func.lower(column)
    return _like(folded, text, after="%", fold=sa.func.lower) if is_open else folded == sa.func.lower(text)


def _holds(column: AnyColumn, patterns: Iterable[Pattern]) -> AnyColumn:
    """Return the condition that a column has one of the texts anywhere in it, in capitals or not."""
    folded = sa.func.lower(column)
    return sa.or_(
        *(
            _like(folded, one.text, before="%", after="%", fold=sa.func.lower) if one.text else _fold(column, *one)
            for one in patterns
        )
    )


def _like(
    column: AnyColumn, text: str, before: str = "", after: str = "", fold: Callable[..., AnyColumn] = sa.literal
) -> AnyColumn:
    return column.like(fold(before + text.translate(_IN_PATTERN) + after), escape=_ESCAPE)


def _has_row(column: AnyColumn, patterns: Collection[Pattern]) -> AnyColumn:
    """Return the condition that the node has a row with one of the texts in the column's table; of no text, no row."""
    rows = sa.select(column.table.c.node_id)
    found = NODES.c.id.in_(rows.where(_is_exactly(column, patterns)))
    return sa.or_(found, NODES.c.id.not_in(rows)) if Pattern("") in patterns else found


TESTS: Mapping[str, Callable[[AnyColumn, Any], AnyColumn]] = {
    "is": _is,
    "is_exactly": _is_exactly,
    "holds": _holds,
    "has_row": _has_row,
    "is_true": lambda column, _values: column.is_(sa.true()),
    "is_true_not": lambda column, _values: column.is_(sa.false()),
    "is_set": lambda column, _values: column.is_not(None),
    "is_set_not": lambda column, _values: column.is_(None),
    "before": lambda column, moments: sa.or_(*(column < moment for moment in moments)),
    "after": lambda column, moments: sa.or_(*(column > moment for moment in moments)),
}
"""Tests by name."""

_ELSEWHERE: Mapping[str, AnyColumn] = {"port": _PORTS.c.address, "trait": _TRAITS.c.trait}
"""Columns of other tables, by the names that tests have for them."""


def _find_column(name: str) -> AnyColumn:
    return _ELSEWHERE[name] if name in _ELSEWHERE else NODES.c[name]


def complete(db: Database, conf: cfg.ConfigOpts, own: Own, terms: Sequence[Term]) -> tuple[Term, ...]:
    """Return terms with what no column holds: which nodes need attention. At most four statements.

    :param own: as for the overview, of whose nodes those at most are judged whose steps have run for longest.
    """
    asked = [pattern.text for term in terms for test in term.tests if test.column == NEEDS for pattern in test.values]
    if not asked:
        return tuple(terms)
    judged = {} if triage.OF_ROWS.issuperset(asked) else triage.judge(db, conf, own)
    cause = triage.build_cause(judged)

    def fill(test: Test) -> Test:
        return test._replace(expression=cause) if test.column == NEEDS else test

    return tuple(term._replace(tests=tuple(map(fill, term.tests))) for term in terms)


def _build_where(own: Own, terms: Iterable[Term]) -> list[AnyColumn]:
    return [*(condition.clause(node_lists.SOURCE) for condition in own), *(term.clause for term in terms)]


def count(db: Database, own: Own, terms: Sequence[Term]) -> tuple[int, int]:
    """Return how many nodes there are, and how many of them match all terms, with one statement."""
    every = sa.select(sa.func.count()).select_from(NODES).where(*_build_where(own, ()))
    matching = every.where(*_build_where((), terms))
    with db.single() as connection:
        if not terms:
            return (connection.execute(every).scalar_one(),) * 2
        total, found = connection.execute(sa.select(every.scalar_subquery(), matching.scalar_subquery())).one()
        return total, found


def read(db: Database, names: Collection[str], own: Own, terms: Iterable[Term], part: Part) -> list[ShownNode]:
    """Return columns of the nodes that match all terms: one statement, two for a part.

    Rows are wide: those that are only sorted, or left out before the part, are not read.
    """
    if part.limit is None:
        return _select(db, ("id", *names), own, terms, part)
    return read_by_id(db, names, [node.id for node in _select(db, ("id",), own, terms, part)])


def _select(db: Database, names: Iterable[str], own: Own, terms: Iterable[Term], part: Part) -> list[ShownNode]:
    page = listing.Page(sort_key=part.sort_key, descending=part.descending)
    with db.single() as connection:
        order = listing.build_order(connection.dialect.name, node_lists.SOURCE, page)
        statement = sa.select(*models.columns(NODES, names)).where(*_build_where(own, terms)).order_by(*order)
        # MariaDB takes no offset without a limit.
        limited = statement if part.limit is None else statement.limit(part.limit).offset(part.offset)
        return ShownNode.all_of(connection.execute(limited))


def read_by_id(db: Database, names: Iterable[str], ids: Sequence[int]) -> list[ShownNode]:
    """Return columns of these nodes, in this order; those that were deleted meanwhile are left out."""
    if not ids:
        return []
    columns = models.columns(NODES, dict.fromkeys(("id", *names)))
    found = {node.id: node for node in db.read_all(ShownNode, sa.select(*columns).where(NODES.c.id.in_(ids)))}
    return [found[one] for one in ids if one in found]


def count_values(db: Database, own: Own, names: Iterable[str], most: int) -> dict[str, dict[str, int]]:
    """Return the values of columns with how many nodes have them, those first that most have: one statement.

    :param names: of columns, or ``trait``.
    :param most: how many values of each column are returned.
    """
    where = _build_where(own, ())
    parts = []
    for name in names:
        value = _find_column(name)
        columns = sa.literal(name).label("name"), value.label("value"), sa.func.count().label("counted")
        rows = sa.select(*columns).where(value != "", *where)
        if name in _ELSEWHERE:
            rows = rows.join_from(value.table, NODES, NODES.c.id == value.table.c.node_id)
        largest = rows.group_by(value).order_by(sa.desc("counted"), value).limit(most).subquery()
        parts.append(sa.select(largest))
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    with db.single() as connection:
        for name, value, nodes in connection.execute(sa.union_all(*parts)):
            found[name][value] = nodes
    return found
