"""What it takes until every node is served again after a conductor has joined, left or died.

    devstack/services.py run -- python -m benchmarks.ring --nodes 10000

At the moment of the change nodes that it gives another owner are made due, as if each had just been asked for something
and no wake-up came. A node is served when a conductor has reconciled it. The same for as many nodes when nothing
changes tells how long the looking itself takes. All nodes get their new owners at the same moment, so some of those
that move tell of all.
"""

import argparse
import signal
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from benchmarks import report, stock
from benchmarks.loads import Subject
from ingot.common import clock
from ingot.common.conf import opts
from ingot.db import conductors, nodes
from ingot.db.engine import Database
from ingot.rpcapi import client
from tests.functional.deployment import lab

Row = dict[str, Any]

_DUE = nodes.NODES.c.due_at.is_not(None)
_TIMEOUT_S = 30
"""[conductor] heartbeat_timeout."""


def owners(hosts: Collection[str], uuids: Sequence[str]) -> dict[str, str]:
    """Return which conductor each node belongs to."""
    members = [conductors.RingMember(host, "", "fake-hardware") for host in hosts]
    exponent = opts.load([], prog="benchmarks", files=[]).hash_partition_exponent
    rings = client.Rings(lambda: members, lambda: 0.0, 5, exponent)
    return {uuid: rings.owner(uuid, "", "fake-hardware") for uuid in uuids}


def serve(db: Database, what: str, uuids: Sequence[str], due: int) -> Row:
    """Make some of the nodes due, and return how long it takes until all are served."""
    began = time.monotonic()
    with db.transaction() as connection:
        some = nodes.NODES.c.uuid.in_(uuids[:due])
        connection.execute(sa.update(nodes.NODES).where(some).values(due_at=clock.now()))
    stock.wait_for(lambda: not db.read_column(sa.select(nodes.NODES.c.id).where(_DUE).limit(1)), "all are served")
    return {"what": what, "nodes that move": len(uuids), "seconds until all are served": time.monotonic() - began}


def measure(subject: Subject, db: Database, given: argparse.Namespace) -> Iterator[Row]:
    """Have a third conductor come and go."""

    def online() -> set[str]:
        return conductors.online_hosts(db, _TIMEOUT_S)

    uuids = stock.fill(db, given.nodes)
    two = online()
    yield serve(db, "nothing changes", uuids[: given.due], given.due) | {"nodes that move": 0}
    own = subject.config.with_name("third.conf")
    own.write_text("[DEFAULT]\nhost = third\n")
    command = ["ingot-conductor", "--config-file", str(subject.config), "--config-file", str(own)]
    before = owners(two, uuids)
    after = owners({*two, "third"}, uuids)
    moved = [uuid for uuid in uuids if before[uuid] != after[uuid]]
    for what, order in (("stops", signal.SIGTERM), ("is killed", signal.SIGKILL)):
        third = lab.Process(command, subject.config.with_name("third.log")).start()
        try:
            stock.wait_for(lambda: "third" in online(), "a third conductor is online")
            yield serve(db, "a third has joined", moved, given.due)
            third.send(order)
            yield serve(db, f"the third {what}", moved, given.due)
            stock.wait_for(lambda: "third" not in online(), "the third is gone")
        finally:
            third.stop()


def main() -> None:
    parser = stock.parser("benchmarks.ring", __doc__)
    parser.add_argument("--nodes", type=int, default=10000)
    parser.add_argument("--due", type=int, default=300, help="nodes that are made due (default: %(default)s)")
    given = parser.parse_args()
    facts = report.circumstances()
    more = {"conductor": {"sync_power_state_interval": 0, "heartbeat_timeout": _TIMEOUT_S}}
    with stock.service(given.driver, more, ("", "")) as (subject, db):
        report.finish("ring", facts, {"By change": list(measure(subject, db, given))})


if __name__ == "__main__":
    main()
