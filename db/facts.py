"""What was read from machines and has names: settings of the BIOS, versions of firmware components."""

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import sqlalchemy as sa

from ingot.common import errors
from ingot.db import listing, models, nodes, rows
from ingot.db.engine import Database

AnyFact = TypeVar("AnyFact", bound=models.Base)


class Facts(Generic[AnyFact]):
    """One of the two tables: rows of a node, each with a name, which is the source's key.

    :param fixed: columns that a later reading does not change.
    """

    def __init__(self, source: listing.Source[AnyFact], fixed: tuple[str, ...] = ()) -> None:
        self.source: listing.Source[AnyFact] = source
        self._table = source.table
        self._key = source.key
        self._fixed = fixed
        # A row without facts: every row of one statement must have the same columns.
        given = {"node_id", "created_at", "updated_at"}
        nothing = {column.name: None for column in self._table.c if column.name not in given}
        self._blank = {**nothing, **rows.json_defaults(self._table)}
        self._select = sa.select(self._table).where(self._table.c.node_id == sa.bindparam("own_id"))
        self._insert = sa.insert(self._table)

    def list_of_node(self, db: Database, node_id: int) -> list[AnyFact]:
        """Return what is known of a node's machine, by name."""
        statement = sa.select(self._table).where(self._table.c.node_id == node_id)
        return db.read_all(self.source.model, statement.order_by(self._table.c[self._key]))

    def get(self, db: Database, node: models.Node, name: str) -> AnyFact:
        """Return what is known under a name.

        :param node: needs id and uuid.
        :raises NotFound: the machine has nothing of the name, as far as is known.
        """
        named = (self._table.c.node_id == node.id, self._table.c[self._key] == name)
        found = db.read_first(self.source.model, sa.select(self._table).where(*named))
        if found is None:
            raise errors.NotFound(f"Node {node.uuid} doesn't have a {self.source.noun} '{name[:255]}'.")
        return found

    def build_write(self, node_id: int, reading: Iterable[Mapping[str, object]]) -> nodes.ExtraWrite:
        """Return the write of a reading, for a transaction that has written to the node's row before.

        What is not in it is removed; a column that a row does not have stays.

        :param reading: columns of each row, without node_id.
        """
        now = {str(row[self._key]): row for row in reading}

        def write(connection: sa.Connection) -> None:
            own, name = self._table.c.node_id == node_id, self._table.c[self._key]
            found = connection.execute(self._select, {"own_id": node_id}).mappings()
            before = {row[self._key]: dict(row) for row in found}
            if gone := before.keys() - now.keys():
                connection.execute(sa.delete(self._table).where(own, name.in_(gone)))
            if new := [{**self._blank, "node_id": node_id, **row} for key, row in now.items() if key not in before]:
                connection.execute(self._insert, new)
            for key in now.keys() & before.keys():
                changed = {
                    column: value
                    for column, value in now[key].items()
                    if column not in self._fixed and before[key][column] != value
                }
                if changed:
                    connection.execute(sa.update(self._table).where(own, name == key).values(changed))

        return write


BIOS = Facts(listing.Source("BIOS setting", models.BiosSetting, key="name"))
FIRMWARE = Facts(listing.Source("firmware component", models.FirmwareComponent, key="component"), ("initial_version",))
