"""Queries on chassis."""

from oslo_db import exception as db_exc

from ingot.common import errors
from ingot.db import listing, models, records, rows
from ingot.db.engine import Database

SOURCE = listing.Source("Chassis", models.table(models.Chassis))


class _Chassis(rows.Rows):
    def delete(self, db: Database, row: records.Record) -> None:
        """
        :raises Invalid: nodes are in it.
        """
        try:
            super().delete(db, row)
        except db_exc.DBReferenceError as exc:
            raise errors.Invalid(
                f"Chassis {row.uuid} has nodes. Move or delete them first: nothing was deleted."
            ) from exc


CHASSIS = _Chassis(SOURCE)
