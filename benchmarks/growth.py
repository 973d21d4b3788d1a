"""How cost grows: ``devstack/services.py run -- python -m benchmarks.growth PART``.

nodes: what requests and a conductor's periodic work cost with a hundred to a hundred thousand nodes. plans: how many
rows each filter and each order of lists reads on MariaDB and PostgreSQL. waits: what a conductor spends while up to a
thousand machines are waited for. (Deployments a second with one to four conductors: ``benchmarks.site``.)
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fixtures
import sqlalchemy as sa

from benchmarks import figures, processes, report, stock
from benchmarks.loads import Meter, Subject
from ingot.api.nodes import nodes as api_nodes
from ingot.api.nodes.node_fields import TABLE
from ingot.common import clock, states
from ingot.conductor import manager
from ingot.db import conductors, listing, node_lists, nodes
from ingot.db.engine import Database
from ingot.rpcapi import client
from tests import conductor_case, database, plans

Row = dict[str, Any]

REQUESTS = {
    "show": "/v1/nodes/{middle}",
    "list of 1000": "/v1/nodes?limit=1000",
    "page from the middle": "/v1/nodes?limit=1000&marker={middle}",
    "few by state": "/v1/nodes?provision_state=clean%20failed",
    "few by fault": "/v1/nodes?fault=power%20failure",
    "1000 by name": "/v1/nodes?limit=1000&sort_key=name",
    "1000 of a group": "/v1/nodes?limit=1000&conductor_group=conductor_group-3",
    "1000 by health": "/v1/nodes?limit=1000&sort_key=health",
    "by part of a description": "/v1/nodes?description_contains=abc",
}
"""Requests by what they ask for. The last two read the whole fleet, which no index can help."""

GROUP = "conductor_group-3"
DRIVERS = ["fake-hardware"]


async def ask(subject: Subject, db: Database, times: int) -> Row:
    """Return the processor time of each request now, that of the database server included."""
    half = sa.select(nodes.NODES.c.uuid).order_by(nodes.NODES.c.id)
    with db.single() as connection:
        number = connection.execute(sa.select(sa.func.count()).select_from(nodes.NODES)).scalar_one()
    (middle,) = db.read_column(half.offset(number // 2).limit(1))
    found: Row = {"nodes": number}
    for name, form in REQUESTS.items():
        path = form.format(middle=middle)
        await subject.api.read(path)
        with Meter(subject) as meter:
            for _ in range(times):
                await subject.api.read(path)
        found[f"{name}, ms"] = 1e3 * meter.server / times
    return found


def idle(subject: Subject, seconds: float) -> Row:
    """Return what API and conductor spend in a minute in which nothing happens."""
    with Meter(subject) as meter:
        time.sleep(seconds)
    minutes = meter.wall / 60
    return {
        "idle, processor seconds a minute": meter.server / minutes,
        "idle, statements a minute": meter.counted["statements"] / minutes,
        "memory, MiB": processes.memory(subject.pids)["rss_mib"],
        "threads": processes.threads(subject.pids),
    }


def _time(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time of some work."""
    began = time.process_time()
    work()
    return 1e3 * (time.process_time() - began)


def periodic(db: Database) -> Row:
    """Return the processor time that a conductor of one of the groups needs for what it does again and again."""
    members = [conductors.RingMember(f"host-{number}", f"conductor_group-{number}", DRIVERS[0]) for number in range(20)]
    rings = client.Rings(lambda: members, time.monotonic, 3600, 5)
    keys = node_lists.list_ring_keys(db)
    own = [node.uuid for node in keys if node.conductor_group == GROUP]
    rings.owner(keys[0].uuid, GROUP, DRIVERS[0])
    ring = _time(lambda: [rings.owner(one.uuid, GROUP, DRIVERS[0]) for one in keys])
    return {
        "ring, ms for 1000 nodes": 1e3 * ring / len(keys),
        "nodes of the group": len(own),
        "which nodes are to be read, ms": _time(lambda: node_lists.list_for_power_sync(db, GROUP, DRIVERS)),
        "reading them, ms": _time(lambda: list(_read_unlocked(db, own))),
        **_sweep(db.url.render_as_string(hide_password=False)),
    }


def _read_unlocked(db: Database, uuids: list[str]) -> Iterator[int]:
    for first in range(0, len(uuids), 200):
        yield len(node_lists.list_unlocked(db, uuids[first : first + 200]))


def _sweep(url: str) -> Row:
    """Return what a sweep costs that finds nothing, and the start of a conductor."""
    conf = database.configuration(url)
    conf.set_override("host", "growth")
    conf.set_override("conductor_group", GROUP, group="conductor")
    conductor_case.fake_hardware(conf)
    db = Database(conf)
    began = time.perf_counter()
    conductor = manager.Conductor(conf, db)
    conductor.membership.register()
    started = time.perf_counter() - began
    conductor.sweeper.sweep()
    sweep = _time(conductor.sweeper.sweep)
    conductor.queues.stop(10)
    conductor.membership.unregister()
    db.dispose()
    return {"sweep, ms": sweep, "start of a conductor, ms": 1e3 * started}


def by_nodes(given: argparse.Namespace) -> Iterator[report.Found]:
    """Measure with more and more nodes."""
    table: list[Row] = []
    with stock.service(given.driver, {}) as (subject, db):
        stock.fill(db, min(given.sizes))
        for size in given.sizes:
            plans.multiply(db, size)
            asked = asyncio.run(_ask_afresh(subject, db, given.times))
            table.append({**asked, **idle(subject, given.seconds), **periodic(db)})
            yield {"By nodes": table, "Growth for each thousand nodes": _slopes(table, "nodes")}


async def _ask_afresh(subject: Subject, db: Database, times: int) -> Row:
    """Ask with connections of this event loop."""
    try:
        return await ask(subject, db, times)
    finally:
        subject.api.client.close()


def _slopes(table: list[Row], by: str) -> Row:
    sizes = [float(row[by]) for row in table]
    return {name: figures.slope(sizes, [float(row[name]) for row in table]) for name in table[0] if name != by}


def by_plans(given: argparse.Namespace) -> Iterator[report.Found]:
    """Count the rows that each filter and each order reads."""
    tables: dict[str, list[Row]] = {}
    for backend in ("mysql", "postgresql"):
        with fixtures.Fixture() as cleanups:
            db = cleanups.useFixture(database.DatabaseFixture(backend)).db
            stock.fill(db, 500)
            plans.multiply(db, max(given.sizes))
            tables[f"{backend}, {max(given.sizes)} nodes, pages of 100"] = [
                {"list": name, **_plan(db, page)} for name, page in _pages().items()
            ]
        yield tables


_VALUES: Mapping[str, str | bool] = {
    **{name: f"{name}-3" for name in ("conductor_group", "resource_class", "owner")},
    **{"shard": "shard-3", "lessee": "lessee-1", "fault": "power failure", "provision_state": "clean failed"},
    **{"driver": "ipmi", "instance_name": "database-7", "maintenance": True, "retired": True},
}


def _pages() -> dict[str, listing.Page]:
    """Return the pages whose plans are looked at: each filter, each order in both directions."""
    whole = (listing.Condition("parent_node", "is_empty", True),)
    pages = {}
    for param in api_nodes.FILTERS:
        if param.column is None:
            continue
        first = param.column if isinstance(param.column, str) else param.column[0]
        value: Any = True if param.test.startswith("is_") else _VALUES.get(first, "none")
        if param.test.startswith("one_of"):
            value = [value]
        condition = listing.Condition(param.column, param.test, value)
        pages[f"filter {param.name}"] = listing.Page(where=(*whole, condition), limit=100)
    for field in (field for field in TABLE.fields.values() if field.sortable):
        for descending in (False, True):
            name = f"order {field.name}{' downwards' if descending else ''}"
            pages[name] = listing.Page(where=whole, sort_key=field.name, descending=descending, limit=100)
    return pages


def _plan(db: Database, page: listing.Page) -> Row:
    [reading] = plans.readings(db, lambda: listing.page(db, node_lists.SOURCE, ("uuid", "name"), page))
    return {"rows read": reading.rows, "plan": reading.plan}


def by_waits(given: argparse.Namespace) -> Iterator[report.Found]:
    """Measure a conductor while more and more machines are waited for, for an hour."""
    table: list[Row] = []
    waiting = {"provision_state": states.DEPLOYWAIT, "step_state": states.StepState.WAITING, "flow": "deploy"}
    with stock.service(given.driver, {}) as (subject, db):
        for number in given.waits:
            stock.empty(db)
            stock.fill(db, number, **waiting, due_at=clock.after(3600))
            table.append({"waits": number, **idle(subject, given.seconds)})
            yield {"By waits": table, "Growth for each thousand waits": _slopes(table, "waits")}


PARTS = {"nodes": by_nodes, "plans": by_plans, "waits": by_waits}


def main() -> None:
    parser = stock.parser("benchmarks.growth", __doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000], help="numbers of nodes")
    parser.add_argument("--waits", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--times", type=int, default=20, help="requests of each kind")
    parser.add_argument("--seconds", type=float, default=20, help="of each look at an idle service")
    given = parser.parse_args()
    facts = report.circumstances()
    for found in PARTS[given.part](given):
        report.finish(f"growth-{given.part}", facts, found)


if __name__ == "__main__":
    main()
