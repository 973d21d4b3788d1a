"""Writing rows of nouns that have no state machine: ports, portgroups, chassis, volumes, deploy templates."""

import contextlib
import datetime
import re
from collections.abc import Iterator, Mapping
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
    """The queries of a noun that is a table and nothing else.

    :param members: what may refer to a row, and what to do with that before the row is deleted.
    """

    def __init__(self, source: listing.Source[AnyRow], members: str = "") -> None:
        self.source = source
        self._members = members

    @retry_transaction
    def create(self, db: Database, values: Mapping[str, object]) -> int:
        """Add a row; see :meth:`insert`."""
        with db.single() as connection:
            return self.insert(connection, values)

    @retry_transaction
    def update(self, db: Database, row: AnyRow, values: Mapping[str, object]) -> None:
        """Change a row; see :meth:`write`."""
        with db.single() as connection:
            self.write(connection, row, values)

    @retry_transaction
    def delete(self, db: Database, row: AnyRow) -> None:
        """Remove a row; see :meth:`remove`."""
        with db.single() as connection:
            self.remove(connection, row)

    def insert(self, connection: sa.Connection, values: Mapping[str, object]) -> int:
        """Add a row; it gets a new uuid when none is given.

        :returns: its id.
        :raises Duplicate: another row has a unique value.
        :raises ChangedMeanwhile: what it belongs to was deleted since it was looked up.
        """
        table = self.source.table
        row = {**json_defaults(table), **values, "uuid": values.get("uuid") or uuidutils.generate_uuid()}
        with self._explain_refusal(row):
            result = connection.execute(sa.insert(table).values(row))
        return int(next(iter(result.inserted_primary_key or ())))

    def write(
        self, connection: sa.Connection, row: models.Row, values: Mapping[str, object], *also: sa.ColumnElement[bool]
    ) -> None:
        """Change a row if it is still as it was read.

        :param row: as read; its updated_at is what is compared.
        :param also: further conditions, e.g. that its node is not locked.
        :raises ChangedMeanwhile: it was changed or deleted meanwhile, or what it shall belong to was deleted, or a
            further condition does not hold.
        :raises Duplicate: another row has a unique value.
        """
        table = self.source.table
        # It only grows, whatever the clock does: two states of a row never look the same.
        moment = clock.now() if row.updated_at is None else max(clock.now(), row.updated_at + _TICK)
        statement = sa.update(table).where(table.c.id == row.id, _is_as_read(table, row), *also)
        with self._explain_refusal({**row.as_dict(), **values}):
            written = connection.execute(statement.values(**values, updated_at=moment)).rowcount
        if written != 1:
            raise self._changed_error(row)

    def remove(self, connection: sa.Connection, row: models.Row, *also: sa.ColumnElement[bool]) -> bool:
        """Remove a row if it is still as it was read.

        :returns: whether it was there and the further conditions held.
        :raises ChangedMeanwhile: it was changed since it was read.
        :raises Invalid: others refer to it.
        """
        table = self.source.table
        own, as_read = table.c.id == row.id, _is_as_read(table, row)
        try:
            if connection.execute(sa.delete(table).where(own, as_read, *also)).rowcount == 1:
                return True
        except db_exc.DBReferenceError as exc:
            raise errors.Invalid(
                f"{self.source.noun} {row.uuid} has {self._members} first: nothing was deleted."
            ) from exc
        if connection.execute(sa.select(table.c.id).where(own, sa.not_(as_read))).first():
            raise self._changed_error(row)
        return False

    @contextlib.contextmanager
    def _explain_refusal(self, row: Mapping[str, object]) -> Iterator[None]:
        """Translate the database's refusal of a row into the client's terms."""
        noun = self.source.noun.lower()
        try:
            yield
        except db_exc.DBDuplicateEntry as exc:
            raise _duplicate_error(exc, noun, self.source.table, row) from exc
        except db_exc.DBReferenceError as exc:
            raise owner_gone_error(noun) from exc

    def _changed_error(self, row: models.Row) -> errors.ChangedMeanwhile:
        return errors.ChangedMeanwhile(
            f"{self.source.noun} {row.uuid} was changed by another request while this one was handled. Read it again "
            "and retry."
        )


def json_defaults(table: sa.Table) -> dict[str, object]:
    """Return what the JSON columns of a new row hold."""
    types = {column.name: column.type for column in table.c}
    return {name: found.empty() for name, found in types.items() if isinstance(found, models.JsonText) and found.empty}


def _is_as_read(table: sa.Table, row: models.Row) -> sa.ColumnElement[bool]:
    return table.c.updated_at.is_not_distinct_from(row.updated_at)


def find_duplicate(exc: db_exc.DBDuplicateEntry, table: sa.Table) -> str | None:
    """Return the unique column of which another row has the value; None if several are unique together."""
    # Only the database's own words: those of SQLAlchemy repeat the statement, which names all columns.
    text = str(exc.inner_exception.orig)
    unique = [column.name for column in table.c if column.unique]
    return next((name for name in unique if re.search(rf"{table.name}[._]{name}\b|\({name}\)", text)), None)


def _duplicate_error(
    exc: db_exc.DBDuplicateEntry, noun: str, table: sa.Table, values: Mapping[str, object]
) -> errors.Duplicate:
    found = find_duplicate(exc, table)
    constraints = [one.columns.keys() for one in table.constraints if isinstance(one, sa.UniqueConstraint)]
    together = next((names for names in constraints if len(names) > 1), None)
    if found is None and together:
        owner = " of the same node" if "node_id" in together else ""
        words = " and ".join(f"{name} {values.get(name)}" for name in together if name != "node_id")
        return errors.Duplicate(f"A {noun} with {words}{owner} already exists.")
    found = found or "uuid"
    return errors.Duplicate(noun=noun, field=_LABELS.get(found, found), value=values.get(found))


def owner_gone_error(noun: str, owner: str = "what it belongs to") -> errors.ChangedMeanwhile:
    """Return the error for a row that refers to one that another request deleted."""
    return errors.ChangedMeanwhile(
        f"The {noun} was not written: {owner} was deleted by another request while this one was handled."
    )
