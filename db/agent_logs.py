"""Queries on the logs of agents: a tar.gz for a run, the newest few of each node."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from oslo_utils import uuidutils

from ingot.db import listing, models
from ingot.db.engine import Database, retried

_LOGS = models.table(models.AgentLog)

SOURCE = listing.Source("Agent log", _LOGS)


@retried
def add(db: Database, node_id: int, log: Mapping[str, Any], keep: int) -> str:
    """Keeps a log, and of all logs of the node only the newest.

    :param log: run_id, flow and content.
    :param keep: how many logs the node has afterwards, at most.
    :returns: the uuid of the log.
    :raises ServiceUnavailable: the database does not take it; content beyond its largest packet is one cause.
    """
    row = {"uuid": uuidutils.generate_uuid(), "node_id": node_id, "size": len(log["content"]), **log}
    with db.transaction() as connection:
        connection.execute(sa.insert(_LOGS).values(row))
        of_node = sa.select(_LOGS.c.id).where(_LOGS.c.node_id == node_id).order_by(_LOGS.c.id.desc())
        # Two statements, because MySQL does not delete from a table that a subquery reads.
        kept = connection.execute(of_node.limit(keep)).scalars().all()
        connection.execute(sa.delete(_LOGS).where(_LOGS.c.node_id == node_id, _LOGS.c.id < min(kept)))
    return str(row["uuid"])
