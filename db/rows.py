"""Writing rows of nouns that have no state machine: ports, portgroups, chassis, volumes, deploy templates."""

import datetime
import re
from collections.abc import Mapping
from typing import Generic, TypeVar

import sqlalchemy as sa
from oslo_db import exception as db_exc
from oslo_utils import uuidutils

from ingot.common import clock, errors
from ingot.db import listing, models
from ingot.db.engine import Database, retry_transaction

_TICK = datetime.timedelta(microseconds=1)

# What a column is called in the message about a value that another row has.
_LABELS = {"address": "MAC address", "uuid": "UUID"}


AnyRow = TypeVar("AnyRow", bound=models.Row)


class Rows(Generic[AnyRow]):
    """The queries of a noun that is a table and nothing else."""

    def __init__(self, source: listing.Source[AnyRow]) -> None:
        self.source = source

    @retry_transaction
    def create(self, db: Database, values: Mapping[str, object]) -> int:
        """Add a row; see :func:`insert`."""
        with db.single() as connection:
            return insert(connection, self.source, values)

    @retry_transaction
    def update(self, db: Database, row: AnyRow, values: Mapping[str, object]) -> None:
        """Change a row; see :func:`update`."""
        with db.single() as connection:
            update(connection, self.source, row, values)

    @retry_transaction
    def delete(self, db: Database, row: AnyRow) -> None:
        """Remove a row; see :func:`delete`."""
        with db.single() as connection:
            delete(connection, self.source, row)


def json_defaults(table: sa.Table) -> dict[str, object]:
    """Return what the JSON columns of a new row hold."""
    types = {column.name: column.type for column in table.c}
    return {name: found.empty() for name, found in types.items() if isinstance(found, models.JsonText) and found.empty}


def insert(connection: sa.Connection, source: listing.Source[AnyRow], values: Mapping[str, object]) -> int:
    """Add a row; it gets a new uuid when none is given.

    :returns: its id.
    :raises Duplicate: another row has a unique value.
    :raises ChangedMeanwhile: what it belongs to was deleted since it was looked up.
    """
    row = {**json_defaults(source.table), **values, "uuid": values.get("uuid") or uuidutils.generate_uuid()}
    try:
        result = connection.execute(sa.insert(source.table).values(row))
    except db_exc.DBDuplicateEntry as exc:
        raise duplicate_error(exc, source, row) from exc
    except db_exc.DBReferenceError as exc:
        raise owner_gone_error(source.noun.lower()) from exc
    return int(next(iter(result.inserted_primary_key or ())))


def update(
    connection: sa.Connection,
    source: listing.Source[AnyRow],
    row: models.Row,
    values: Mapping[str, object],
    also: sa.ColumnElement[bool] | None = None,
) -> None:
    """Change a row if it is still as it was read.

    :param row: as read; its updated_at is what is compared.
    :param also: a further condition, e.g. that its node is not locked.
    :raises ChangedMeanwhile: it was changed or deleted meanwhile, or what it shall belong to was deleted, or the
        further condition does not hold.
    :raises Duplicate: another row has a unique value.
    """
    table = source.table
    conditions = [table.c.id == row.id, _is_as_read(table, row)]
    if also is not None:
        conditions.append(also)
    # It only grows, whatever the clock does: two states of a row never look the same.
    moment = clock.now() if row.updated_at is None else max(clock.now(), row.updated_at + _TICK)
    statement = sa.update(table).where(*conditions).values(**values, updated_at=moment)
    try:
        written = connection.execute(statement).rowcount
    except db_exc.DBDuplicateEntry as exc:
        raise duplicate_error(exc, source, {**row.as_dict(), **values}) from exc
    except db_exc.DBReferenceError as exc:
        raise owner_gone_error(source.noun.lower()) from exc
    if written != 1:
        raise _changed_error(source, row)


def delete(
    connection: sa.Connection,
    source: listing.Source[AnyRow],
    row: models.Row,
    also: sa.ColumnElement[bool] | None = None,
) -> bool:
    """Remove a row if it is still as it was read.

    :returns: whether it was there and the further condition held.
    :raises ChangedMeanwhile: it was changed since it was read.
    """
    table = source.table
    own, as_read = table.c.id == row.id, _is_as_read(table, row)
    conditions = [own, as_read] + ([also] if also is not None else [])
    if connection.execute(sa.delete(table).where(*conditions)).rowcount == 1:
        return True
    if connection.execute(sa.select(table.c.id).where(own, sa.not_(as_read))).first():
        raise _changed_error(source, row)
    return False


def _is_as_read(table: sa.Table, row: models.Row) -> sa.ColumnElement[bool]:
    return table.c.updated_at.is_not_distinct_from(row.updated_at)


def _changed_error(source: listing.Source[AnyRow], row: models.Row) -> errors.ChangedMeanwhile:
    return errors.ChangedMeanwhile(
        f"{source.noun} {row.uuid} was changed by another request while this one was handled. Read it again and retry."
    )


def duplicate_error(
    exc: db_exc.DBDuplicateEntry, source: listing.Source[AnyRow], values: Mapping[str, object]
) -> errors.Duplicate:
    """Return the error for a value, or for values together, that another row has."""
    # Only the database's own words: those of SQLAlchemy repeat the statement, which names all columns.
    text = str(exc.inner_exception.orig)
    noun, table = source.noun.lower(), source.table
    unique = [column.name for column in table.c if column.unique]
    found = next((name for name in unique if re.search(rf"{table.name}[._]{name}\b|\({name}\)", text)), None)
    together = _unique_together(table)
    if found is None and together:
        owner = " of the same node" if "node_id" in together else ""
        words = " and ".join(f"{name} {values.get(name)}" for name in together if name != "node_id")
        return errors.Duplicate(f"A {noun} with {words}{owner} already exists.")
    found = found or "uuid"
    return errors.Duplicate(noun=noun, field=_LABELS.get(found, found), value=values.get(found))


def _unique_together(table: sa.Table) -> list[str]:
    """Return the columns of the constraint by which several of them are unique together."""
    constraints = (one for one in table.constraints if isinstance(one, sa.UniqueConstraint))
    return next(([column.name for column in one.columns] for one in constraints if len(one.columns) > 1), [])


def owner_gone_error(noun: str, owner: str = "what it belongs to") -> errors.ChangedMeanwhile:
    """Return the error for a row that refers to one that another request deleted."""
    return errors.ChangedMeanwhile(
        f"The {noun} was not written: {owner} was deleted by another request while this one was handled."
    )
