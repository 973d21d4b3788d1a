"""What was read from machines and has names: settings of the BIOS, versions of firmware components."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import listing, models, records, rows
from ingot.db.engine import Database, retried

_NODES = models.table(models.Node)


class Facts:
    """One of the two tables: rows of a node, told apart by a name, which is the source's key.

    :param first: columns that a later reading does not change.
    """

    def __init__(self, source: listing.Source, first: tuple[str, ...] = ()) -> None:
        self.source = source
        self._table = source.table
        self._key = source.key
        self._first = first

    def of_node(self, db: Database, node_id: int) -> list[records.Record]:
        """What is known of a node's machine, by name."""
        statement = sa.select(self._table).where(self._table.c.node_id == node_id)
        with db.single() as connection:
            return records.many(connection.execute(statement.order_by(self._table.c[self._key])))

    def get(self, db: Database, node: records.Record, name: str) -> records.Record:
        """
        :param node: needs id and uuid.
        :raises NotFound: the machine has nothing of the name, as far as is known.
        """
        wanted = (self._table.c.node_id == node.id, self._table.c[self._key] == name)
        with db.single() as connection:
            found = records.one(connection.execute(sa.select(self._table).where(*wanted)))
        if found is None:
            raise errors.NotFound(f"Node {node.uuid} doesn't have a {self.source.noun} '{name[:255]}'.")
        return found

    @retried
    def replace(self, db: Database, node: records.Record, read: Iterable[Mapping[str, Any]]) -> None:
        """Writes a reading, fenced as every write of a task: what is not in it is forgotten, what it says nothing about
        (a column that a row does not have) stays.

        :param node: as its lock returned it; id, lock_epoch and reservation are the fence.
        :param read: columns of each row, without node_id.
        :raises LockLost: the lock was taken over; nothing was written.
        """
        now = {row[self._key]: row for row in read}
        with db.transaction() as connection:
            fence = (_NODES.c.id == node.id, _NODES.c.lock_epoch == node.lock_epoch)
            held = sa.update(_NODES).where(*fence, _NODES.c.reservation == node.reservation)
            if connection.execute(held.values(revision=_NODES.c.revision + 1)).rowcount != 1:
                raise errors.LockLost(node=node.uuid, epoch=node.lock_epoch, host=node.reservation)
            self._write(connection, node.id, now)

    def _write(self, connection: sa.Connection, node_id: int, now: Mapping[str, Mapping[str, Any]]) -> None:
        own, name = self._table.c.node_id == node_id, self._table.c[self._key]
        found = connection.execute(sa.select(self._table).where(own)).mappings()
        before = {row[self._key]: dict(row) for row in found}
        gone = before.keys() - now.keys()
        if gone:
            connection.execute(sa.delete(self._table).where(own, name.in_(gone)))
        new = [{**self._blank(), "node_id": node_id, **row} for one, row in now.items() if one not in before]
        if new:
            connection.execute(sa.insert(self._table), new)
        for one in now.keys() & before.keys():
            changed = self._changed(before[one], now[one])
            if changed:
                connection.execute(sa.update(self._table).where(own, name == one).values(changed))

    def _blank(self) -> dict[str, Any]:
        """Every row of one statement has the same columns."""
        given = {"node_id", "created_at", "updated_at"}
        nothing = {column.name: None for column in self._table.c if column.name not in given}
        return {**nothing, **rows.empty(self._table)}

    def _changed(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
        return {column: value for column, value in now.items() if column not in self._first and before[column] != value}


BIOS = Facts(listing.Source("BIOS setting", models.table(models.BiosSetting), key="name"))
FIRMWARE = Facts(
    listing.Source("firmware component", models.table(models.FirmwareComponent), key="component"), ("initial_version",)
)
