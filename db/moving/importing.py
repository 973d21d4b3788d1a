"""Taking over the fleet of an Ironic: all of it in one transaction, or nothing."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.common import errors
from ingot.db.engine import Database
from ingot.db.moving import peer, schema
from ingot.db.moving.rows import Row, Taker

_EXAMPLES = 5


def take_over(db: Database, source: peer.Peer, taker: Taker, writes: bool) -> bool:
    """Write all rows of Ironic into an empty database, or find that they are there already.

    :param taker: translates.
    :param writes: False: only find out what would be done.
    :returns: whether there is something that is written, or would be.
    :raises Conflict: the database holds other rows, or rows of Ironic contradict each other; nothing was written.
    """
    with _transaction(db) as connection:
        target = _Target(connection, writes)
        for noun in schema.NOUNS:
            found = (
                map(taker.take, itertools.repeat(noun), source.read(noun)) if source.has(noun) else [taker.derive(noun)]
            )
            for rows in found:
                target.write(noun, rows)
            target.finish(noun)
        if target.is_new and writes:
            connection.commit()
        return target.is_new


@contextlib.contextmanager
def _transaction(db: Database) -> Iterator[sa.Connection]:
    """Open a transaction that takes as long as it takes, and is rolled back unless it is committed."""
    with db.own_connection() as connection:
        try:
            yield connection
        except db_exc.DBDuplicateEntry as exc:
            reason = f"Nothing was imported: two rows have the same {', '.join(exc.columns)} here: {exc.value}."
            raise errors.Conflict(reason=reason) from exc
        except db_exc.DBError as exc:
            first_line = str(exc.inner_exception).partition("\n")[0]
            raise errors.Conflict(reason=f"Nothing was imported: the database refuses a row: {first_line}") from exc
        finally:
            connection.rollback()


class _Target:
    """Ingot's database while it is filled, or compared when it is filled already.

    :ivar is_new: whether it was empty.
    """

    def __init__(self, connection: sa.Connection, writes: bool) -> None:
        self._connection = connection
        self._writes = writes
        counts = sa.select(
            *(sa.select(sa.func.count()).select_from(one.table).scalar_subquery() for one in schema.NOUNS)
        )
        self._before: Mapping[str, int] = dict(
            zip((one.name for one in schema.NOUNS), connection.execute(counts).one(), strict=True)
        )
        self._seen = dict.fromkeys(self._before, 0)
        self.is_new = not any(self._before.values())

    def write(self, noun: schema.Noun, rows: Sequence[Row]) -> None:
        """Insert rows, or compare them with those that are there."""
        self._seen[noun.name] += len(rows)
        if not rows:
            return
        if not self.is_new:
            self._compare(noun, rows)
        elif self._writes:
            self._connection.execute(sa.insert(noun.table), rows)

    def finish(self, noun: schema.Noun) -> None:
        """Check that there are no further rows; have the next row get an id that is free."""
        table = noun.table
        if not self.is_new:
            if (there := self._before[table.name]) != self._seen[table.name]:
                raise _refusal(f"{table.name} has {there} rows, Ironic has {self._seen[table.name]}")
        elif self._writes and "id" in table.c and self._connection.dialect.name == "postgresql":
            highest = sa.select(sa.func.max(table.c.id)).scalar_subquery()
            sequence = sa.func.pg_get_serial_sequence(table.name, "id")
            self._connection.execute(sa.select(sa.func.setval(sequence, sa.func.coalesce(highest, 1))))

    def _compare(self, noun: schema.Noun, rows: Sequence[Row]) -> None:
        """Refuse rows that are not there as they would be written."""
        table = noun.table
        first = table.c[noun.key[0]]
        found = self._connection.execute(sa.select(table).where(first.in_({row[first.name] for row in rows})))
        there = {_key(noun, row): row for row in found.mappings()}
        other = [
            _key(noun, row)
            for row in rows
            if (known := there.get(_key(noun, row))) is None or any(known[name] != row[name] for name in row)
        ]
        if other:
            examples = ", ".join(" ".join(map(str, key)) for key in other[:_EXAMPLES])
            raise _refusal(f"{len(other)} or more rows of {table.name} are missing or different, such as {examples}")


def _key(noun: schema.Noun, row: schema.Kept) -> tuple[Any, ...]:
    return tuple(row[name] for name in noun.key)


def _refusal(reason: str) -> errors.Conflict:
    return errors.Conflict(
        reason=f"The database of Ingot is not empty, and not what an import of this Ironic leaves: {reason}. Nothing "
        "was changed. Import into an empty database: make one, name it in [database] connection, run ingot-dbsync "
        "upgrade."
    )
