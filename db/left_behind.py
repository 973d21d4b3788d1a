"""What nodes that were deleted have left outside of themselves, until a conductor has taken it back."""

from collections.abc import Mapping

import sqlalchemy as sa

from ingot.common import leftovers
from ingot.common.json_types import Json
from ingot.db import models
from ingot.db.engine import Database, retry_transaction

_LEFT = models.table(models.LeftBehind)
_NODES = models.table(models.Node)


def keep(connection: sa.Connection, uuid: str, notes: Mapping[str, object]) -> None:
    """Keep what a node that is being deleted has noted of itself, in the transaction that deletes it.

    :param notes: its ``driver_internal_info``.
    """
    rows = [{"node_uuid": uuid, "kind": kind, "notes": notes[kind]} for kind in leftovers.KINDS if notes.get(kind)]
    if rows:
        connection.execute(sa.insert(_LEFT), rows)


def list_left(db: Database, kind: str) -> list[models.LeftBehind]:
    """Return what is left of a kind, in the order in which the nodes were deleted."""
    query = sa.select(_LEFT).where(_LEFT.c.kind == kind).order_by(_LEFT.c.id)
    return db.read_all(models.LeftBehind, query)


@retry_transaction
def forget(db: Database, left: models.LeftBehind) -> None:
    """Forget what is taken back."""
    db.write(sa.delete(_LEFT).where(_LEFT.c.id == left.id))


def list_notes(db: Database, kind: str) -> list[Json]:
    """Return what all nodes that there are have noted of a kind."""
    noted = sa.type_coerce(_NODES.c.driver_internal_info, sa.Text).like(f'%"{kind}"%')
    found = db.read_all(models.Node, sa.select(_NODES.c.driver_internal_info).where(noted))
    infos: list[Mapping[str, object]] = [node.driver_internal_info for node in found]
    return [notes for info in infos if isinstance(notes := info.get(kind), dict)]
