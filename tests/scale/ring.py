"""What it takes until every node is served again after a conductor has joined, left or died.

    devstack/services.py run -- python -m tests.scale.ring --nodes 10000

At the moment of the change nodes that it gives another owner are made due, as if each had just been asked for something
and no wake-up came. A node is served when a conductor has reconciled it. The same for as many nodes when nothing
changes tells how long the looking itself takes. All nodes get their new owners at the same moment, so some of those
that move tell of all.
"""

import argparse
import functools
import signal
import time
from collections.abc import Callable, Collection
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import clock
from ingot.common.conf import opts
from ingot.db import conductors, nodes
from ingot.rpcapi import client
from tests.scale import cluster, results

_DUE = nodes.NODES.c.due_at.is_not(None)


def _owners(hosts: Collection[str], uuids: Collection[str]) -> dict[str, str]:
    members = [conductors.RingMember(host, "", "fake-hardware") for host in hosts]
    conf = opts.load([], prog="ingot-tests", files=[])
    rings = client.Rings(lambda: members, lambda: 0.0, 5, conf.hash_partition_exponent)
    return {uuid: rings.owner(uuid, "", "fake-hardware") for uuid in uuids}


class Fleet:
    """The fleet of a cluster, of which each change is measured."""

    def __init__(self, made: cluster.Cluster, due: int) -> None:
        self._made = made
        self._due = due
        self._uuids = [row["uuid"] for row in made.rows]
        self.found: dict[str, Any] = {}

    def measure(self, what: str, change: Callable[[], None], before: Collection[str], after: Collection[str]) -> None:
        """Schedule the nodes that change hands, and measure the time until each was reconciled."""
        theirs, then = _owners(before, self._uuids), _owners(after, self._uuids)
        moved = [uuid for uuid in self._uuids if theirs[uuid] != then[uuid]]
        began = time.monotonic()
        change()
        self._serve(moved[: self._due])
        ideal = len(self._uuids) / max(len(before), len(after))
        self.found[what] = {
            "moved": len(moved),
            "of_the_ideal_share": round(len(moved) / ideal, 2),
            "seconds_until_all_are_served": round(time.monotonic() - began, 1),
        }

    def compare(self) -> None:
        began = time.monotonic()
        self._serve(self._uuids[: self._due])
        self.found["nothing changes"] = {"seconds_until_all_are_served": round(time.monotonic() - began, 1)}

    def _serve(self, uuids: list[str]) -> None:
        with self._made.db.transaction() as connection:
            for first in range(0, len(uuids), 500):
                some = nodes.NODES.c.uuid.in_(uuids[first : first + 500])
                connection.execute(sa.update(nodes.NODES).where(some).values(due_at=clock.now()))
        cluster.wait_for(lambda: not self._left(), "all nodes are served", interval=0.2)

    def _left(self) -> int:
        with self._made.db.single() as connection:
            left: int = connection.execute(sa.select(sa.func.count()).select_from(nodes.NODES).where(_DUE)).scalar_one()
            return left


def measured(number: int, due: int) -> dict[str, Any]:
    with fixtures.Fixture() as cleanups:
        made = cleanups.useFixture(cluster.Cluster(number, {"conductor": {"sync_power_state_interval": 0}}))
        two = [made.start(name).name for name in ("one", "two")]
        fleet = Fleet(made, due)
        fleet.compare()
        for what, order in (("stops", signal.SIGTERM), ("is killed", signal.SIGKILL)):
            third = made.start("three")
            three = [*two, third.name]
            fleet.measure("a third has joined", lambda: None, two, three)
            fleet.measure(f"the third {what}", functools.partial(third.signal, order), three, two)
            cluster.wait_for(lambda: third.name not in conductors.online_hosts(made.db, 30), "it is gone")  # noqa: B023
        return {"nodes": number, "due": due, "heartbeat_timeout": 30, "hash_ring_reset_interval": 5, **fleet.found}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--due", type=int, default=300, help="nodes that are made due (default: %(default)s)")
    given = parser.parse_args()
    results.keep("ring", measured(given.nodes, given.due))


if __name__ == "__main__":
    main()
