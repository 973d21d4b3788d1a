"""Creating and deleting nodes."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_db import exception as db_exc

from ingot.db import events, models, nodes, records, rows
from ingot.db.engine import Database, retried

_PORTS = models.table(models.Port)
_OWNED = [
    _PORTS,
    *(models.table(model) for model in (models.Portgroup, models.NodeTrait, models.NodeTag, models.StepRun)),
    models.table(models.NodeHistory),
    models.table(models.Allocation),
]
"""What goes with a node, children of others first."""

_UNTOLD: Mapping[str, Any] = {
    **{"maintenance": False, "maintenance_reason": None, "maintenance_holds": []},
    **{"power_state": None, "target_power_state": None},
}
"""What of a new node is no event."""


@retried
def create(db: Database, values: Mapping[str, Any]) -> None:
    """Adds a node.

    :param values: its columns, with its uuid.
    :raises Duplicate: name or uuid is taken.
    :raises Conflict: the instance is on another node.
    :raises ChangedMeanwhile: its chassis was deleted since it was looked up.
    """
    told = nodes.posted(nodes.events_of(values, _UNTOLD), new=True)
    try:
        with db.single() as connection:
            connection.execute(sa.insert(nodes.NODES).values({**rows.empty(nodes.NODES), **values, **told}))
    except db_exc.DBDuplicateEntry as exc:
        raise nodes.duplicate(exc, values, values["uuid"]) from exc
    except db_exc.DBReferenceError as exc:
        raise rows.owner_gone("node", "its chassis") from exc


@events.numbered
def delete(db: Database, node: records.Record) -> None:
    """Removes a node and everything that belongs to it, if it is still as it was read and nobody works on it.

    :param node: as read before; needs id, uuid, revision.
    :raises NodeLocked: a conductor works on it.
    :raises ChangedMeanwhile: another request was faster.
    :raises NotFound: it was deleted meanwhile.
    """
    table = nodes.NODES
    unchanged = (table.c.id == node.id, table.c.revision == node.revision, table.c.reservation.is_(None))
    with db.transaction() as connection:
        # Held until the end: nobody can take the node between this look and its end.
        held = connection.execute(sa.update(table).where(*unchanged).values(revision=table.c.revision + 1)).rowcount
        if held == 1:
            events.move_of(connection, node.id, {"kind": "provision", "provision_state": None})
            for owned in _OWNED:
                connection.execute(sa.delete(owned).where(owned.c.node_id == node.id))
            connection.execute(sa.delete(table).where(table.c.id == node.id))
    if held != 1:
        raise nodes.why_refused(db, node.uuid)


def resolve(db: Database, ident: str) -> tuple[int, str]:
    """Id and uuid of the node that a uuid or name stands for.

    :raises NotFound: there is no such node.
    """
    node = nodes.get(db, ident, ("id", "uuid"))
    return node.id, node.uuid
