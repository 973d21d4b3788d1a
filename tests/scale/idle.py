"""What two conductors use on a fleet in which nothing happens but the reading of power states (fake power).

    devstack/services.py run -- python -m tests.scale.idle --nodes 10000 --minutes 2

Processor time is that of the conductors' own processes, so what else runs on the machine hardly matters.
"""

import argparse
import collections
import re
import time
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.db import nodes
from tests.scale import cluster, results

_PURPOSES = (
    ("heartbeat", r"UPDATE conductors"),
    ("ring: members online", r"FROM conductors LEFT"),
    ("sweep: locked nodes", r"FROM nodes\W+WHERE nodes.reservation IS NOT NULL"),
    ("sweep: nodes whose work is due", r"ORDER BY nodes.due_at"),
    ("sweep: allocations that wait", r"FROM allocations"),
    ("power: whose nodes are to be read", r"nodes.due_at IS NULL"),
    ("power: nodes with all that reading them takes", r"nodes.uuid IN"),
    ("events: nodes and conductors that have something to tell", r"outbox_at|conductors.announced"),
    ("conductors online", r"FROM conductors"),
)
"""What statements are for, by their texts; the first that matches."""


def _explained(sent: collections.Counter[str], minutes: float) -> dict[str, float]:
    """Return how many statements per minute each purpose takes."""
    found: collections.Counter[str] = collections.Counter()
    for text, times in sent.items():
        flat = " ".join(text.split())
        purpose = next((name for name, pattern in _PURPOSES if re.search(pattern, flat)), flat[:120])
        found[purpose] += times
    return {purpose: round(times / minutes, 1) for purpose, times in found.most_common() if times}


def _left(made: cluster.Cluster) -> int:
    """Count the nodes whose power state was not read yet, or not written yet."""
    columns = nodes.NODES.c
    unknown = sa.or_(columns.power_state.is_(None), columns.outbox_at.is_not(None))
    with made.db.single() as connection:
        left: int = connection.execute(sa.select(sa.func.count()).select_from(nodes.NODES).where(unknown)).scalar_one()
        return left


def measured(given: argparse.Namespace) -> dict[str, Any]:
    with fixtures.Fixture() as cleanups:
        made = cleanups.useFixture(cluster.Cluster(given.nodes, {}))
        conductors = [made.start(name) for name in ("one", "two")]
        cluster.wait_for(lambda: not _left(made), "all power states are read and all events collected", interval=1)
        time.sleep(given.settle)
        began = time.monotonic()
        before = [(one.processor_seconds(), one.statements()) for one in conductors]
        time.sleep(given.minutes * 60)
        after = [(one.processor_seconds(), one.statements()) for one in conductors]
        seconds = time.monotonic() - began
        return {
            "nodes": given.nodes,
            "seconds": round(seconds),
            "conductors": [
                {
                    "percent_of_a_core": round(100 * (used - used_before) / seconds, 2),
                    "statements_a_minute": round((sent - sent_before).total() / seconds * 60, 1),
                    "of_these": _explained(sent - sent_before, seconds / 60),
                }
                for (used_before, sent_before), (used, sent) in zip(before, after, strict=True)
            ],
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument(
        "--settle", type=float, default=60, help="seconds of rest before it begins (default: %(default)s)"
    )
    results.keep("idle", measured(parser.parse_args()))


if __name__ == "__main__":
    main()
