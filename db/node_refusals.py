"""What is said of a write to a node that did not take place."""

from collections.abc import Mapping

from oslo_db import exception as db_exc

from ingot.common import clock, errors
from ingot.db import models, rows


def duplicate_error(exc: db_exc.DBDuplicateEntry, values: Mapping[str, object], uuid: str) -> errors.IngotError:
    """Return the error for a unique value that another node has."""
    column = rows.find_duplicate(exc, models.table(models.Node))
    if column == "instance_uuid":
        return errors.Conflict(
            reason=f"Instance {values.get('instance_uuid')} is already associated with a node, it cannot be associated "
            f"with this other node {uuid}"
        )
    if column == "name":
        return errors.Duplicate(noun="node", field="name", value=values.get("name"))
    return errors.Duplicate(noun="node", field="UUID", value=uuid)


def locked_error(node: models.Node) -> errors.NodeLocked:
    """Return the error that names the holder of a node's lock, since when and for what."""
    if node.reservation is None or node.locked_at is None:
        return errors.NodeLocked(f"Node {node.uuid} was locked until just now; please retry.")
    return errors.NodeLocked(
        node=node.uuid, host=node.reservation, purpose=node.lock_purpose, since=clock.iso(node.locked_at)
    )


def lock_lost_error(node: models.Node) -> errors.LockLost:
    """Return the error for a lock, as :func:`ingot.db.nodes.lock` returned it, that another conductor holds now."""
    return errors.LockLost(node=node.uuid, epoch=node.lock_epoch, host=node.reservation)
