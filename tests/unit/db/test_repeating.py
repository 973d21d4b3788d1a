"""What half an upgrade of the schema has done is distinguished from what only looks like it."""

from typing import Any

import sqlalchemy as sa
import testtools
from alembic.ddl.base import AddColumn, DropColumn
from sqlalchemy import schema

from ingot.db import repeating


def table(name: str = "racks", *more: sa.Column[Any], length: int = 36) -> sa.Table:
    """Return a table; each time another object, as in a migration."""
    columns = (sa.Column("id", sa.Integer(), primary_key=True), sa.Column("room", sa.String(length)), *more)
    return sa.Table(name, sa.MetaData(), *columns)


class DoneTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        engine = sa.create_engine("sqlite://")
        self.addCleanup(engine.dispose)
        self._connection = engine.connect()
        self.addCleanup(self._connection.close)
        self._connection.execute(schema.CreateTable(table()))

    def is_done(self, statement: schema.ExecutableDDLElement) -> bool:
        return repeating.is_done(self._connection, statement)

    def test_a_table_counts_with_the_same_columns_only(self) -> None:
        self.assertTrue(self.is_done(schema.CreateTable(table())))
        self.assertFalse(self.is_done(schema.CreateTable(table("shelves"))))
        self.assertFalse(self.is_done(schema.CreateTable(table("racks", sa.Column("door", sa.Integer())))))
        self.assertFalse(self.is_done(schema.CreateTable(table(length=80))))
        self._connection.execute(AddColumn("racks", sa.Column("door", sa.Integer())))
        self.assertFalse(self.is_done(schema.CreateTable(table())))

    def test_a_column_counts_with_the_same_type_only(self) -> None:
        self.assertTrue(self.is_done(AddColumn("racks", sa.Column("room", sa.String(36)))))
        self.assertFalse(self.is_done(AddColumn("racks", sa.Column("room", sa.Integer()))))
        self.assertFalse(self.is_done(AddColumn("racks", sa.Column("door", sa.String(36)))))

    def test_an_index_counts_with_the_same_columns_only(self) -> None:
        racks = table()
        self._connection.execute(schema.CreateIndex(sa.Index("racks_idx", racks.c.room, racks.c.id)))
        same, other, only = table(), table(), table()
        self.assertTrue(self.is_done(schema.CreateIndex(sa.Index("racks_idx", same.c.room, same.c.id))))
        self.assertFalse(self.is_done(schema.CreateIndex(sa.Index("racks_idx", other.c.id, other.c.room))))
        self.assertFalse(self.is_done(schema.CreateIndex(sa.Index("racks_idx", only.c.room, only.c.id, unique=True))))

    def test_what_is_to_go_counts_when_it_is_gone(self) -> None:
        index = sa.Index("racks_idx", table().c.room)
        for statement in (
            schema.DropTable(table("shelves")),
            schema.DropIndex(index),
            DropColumn("racks", sa.Column("door", sa.Integer())),
        ):
            self.assertTrue(self.is_done(statement))
        self._connection.execute(schema.CreateIndex(index))
        for statement in (
            schema.DropTable(table()),
            schema.DropIndex(index),
            DropColumn("racks", sa.Column("room", sa.String(36))),
        ):
            self.assertFalse(self.is_done(statement))

    def test_other_statements_are_never_left_out(self) -> None:
        self.assertFalse(self.is_done(schema.CreateSequence(sa.Sequence("numbers"))))
