"""Named lists of steps: a row and the rows of its steps, written together. Deploy templates and runbooks are such."""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from ingot.db import listing, records, rows
from ingot.db.engine import Database, retried


class StepLists:
    """The queries of one noun that has steps.

    :param source: its own table.
    :param steps: the table of the steps.
    :param owner: the column there that names whose step it is; the others, but for the id, are what a step consists of.
    """

    def __init__(self, source: listing.Source, steps: sa.Table, owner: str) -> None:
        self.source = source
        self._steps = steps
        self._owner = steps.c[owner]
        self._told = [column for column in steps.c if column.name not in ("id", owner)]

    def steps_of(self, db: Database, owner_ids: Collection[int]) -> dict[int, list[dict[str, Any]]]:
        """The steps in the order they were given, by the id of whose they are. One statement."""
        statement = sa.select(self._owner, *self._told).where(self._owner.in_(owner_ids)).order_by(self._steps.c.id)
        found: dict[int, list[dict[str, Any]]] = {}
        with db.single() as connection:
            for owner_id, *values in connection.execute(statement):
                step = dict(zip((column.name for column in self._told), values, strict=True))
                found.setdefault(owner_id, []).append(step)
        return found

    @retried
    def create(self, db: Database, values: Mapping[str, Any]) -> int:
        """Adds a row with its steps; see :func:`rows.insert`."""
        with db.transaction() as connection:
            owner_id = rows.insert(connection, self.source, _own(values))
            self._add_steps(connection, owner_id, values["steps"])
        return owner_id

    @retried
    def update(self, db: Database, record: records.Record, values: Mapping[str, Any]) -> None:
        """Changes a row; given steps replace all that it had; see :func:`rows.update`."""
        with db.transaction() as connection:
            rows.update(connection, self.source, record, _own(values))
            if "steps" in values:
                connection.execute(sa.delete(self._steps).where(self._owner == record.id))
                self._add_steps(connection, record.id, values["steps"])

    @retried
    def delete(self, db: Database, record: records.Record) -> None:
        """Removes a row; the database removes with it what belongs to it."""
        with db.transaction() as connection:
            rows.delete(connection, self.source, record)

    def _add_steps(self, connection: sa.Connection, owner_id: int, steps: list[dict[str, Any]]) -> None:
        # One step at least must name every column: those that follow are written as the first one is.
        connection.execute(sa.insert(self._steps), [{self._owner.name: owner_id, "args": {}, **step} for step in steps])


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "steps"}
