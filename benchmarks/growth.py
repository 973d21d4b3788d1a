"""How cost grows: ``devstack/services.py run -- python -m benchmarks.growth PART``.

nodes: what requests and a conductor's periodic work cost with a hundred to a hundred thousand nodes. plans: how many
rows each filter and each order of lists reads on MariaDB and PostgreSQL. conductors: deployments a second with one to
four conductors on this host. waits: what a conductor spends while up to a thousand machines are waited for.
"""

import argparse
import asyncio
import os
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fixtures
import sqlalchemy as sa

from benchmarks import bursts, findings, processes, report, servers, sides, stock
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
    "few by state": "/v1/nodes?provision_state=clean failed",
    "few by fault": "/v1/nodes?fault=power failure",
    "1000 by name": "/v1/nodes?limit=1000&sort_key=name",
    "1000 of a group": "/v1/nodes?limit=1000&conductor_group=conductor_group-3",
    "1000 by health": "/v1/nodes?limit=1000&sort_key=health",
    "by part of a description": "/v1/nodes?description_contains=abc",
}
"""Requests by what they ask for. The last two read the whole fleet, which no index can help."""

GROUP = "conductor_group-3"
DRIVERS = ["fake-hardware"]


async def _ask(subject: Subject, path: str, times: int) -> float:
    """Return the milliseconds of processor time of a request, those of the database server included."""
    await subject.api.call("GET", path)
    with Meter(subject) as meter:
        for _ in range(times):
            await subject.api.call("GET", path)
    return meter.per_operation(times)["server_cpu_per_op_ms"]


async def requests(subject: Subject, db: Database, times: int) -> Row:
    """Return what each request costs now."""
    half = sa.select(nodes.NODES.c.uuid).order_by(nodes.NODES.c.id)
    middle = db.read_column(half.offset(stock.count(db) // 2).limit(1))[0]
    paths = {name: path.format(middle=middle).replace(" ", "%20") for name, path in REQUESTS.items()}
    return {f"{name}, ms": await _ask(subject, path, times) for name, path in paths.items()}


def idle(subject: Subject, seconds: float) -> Row:
    """Return what API and conductor spend in a minute in which nothing happens."""
    with Meter(subject) as meter:
        time.sleep(seconds)
    minutes = meter.wall / 60
    return {
        "idle, processor seconds a minute": meter.used / minutes,
        "idle, statements a minute": meter.counted["statements"] / minutes,
        "memory, MiB": processes.memory(subject.pids)["rss_mib"],
    }


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def periodic(db: Database, url: str) -> Row:
    """Return the processor time that a conductor of one of the groups needs for what it does again and again."""
    members = [conductors.RingMember(f"host-{number}", f"conductor_group-{number}", DRIVERS[0]) for number in range(20)]
    rings = client.Rings(lambda: members, time.monotonic, 3600, 5)
    keys = node_lists.list_ring_keys(db)
    own = [node for node in keys if node.conductor_group == GROUP]
    rings.owner(keys[0].uuid, GROUP, DRIVERS[0])
    found = {
        "ring, ms for 1000 nodes": 1e6
        * _seconds(lambda: [rings.owner(one.uuid, GROUP, DRIVERS[0]) for one in keys])
        / len(keys),
        "nodes of the group": len(own),
        "which nodes are to be read, ms": 1e3 * _seconds(lambda: node_lists.list_for_power_sync(db, GROUP, DRIVERS)),
        "reading them, ms": 1e3 * _seconds(lambda: list(_read_unlocked(db, [one.uuid for one in own]))),
    }
    return found | _sweep(url)


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
    sweep = _seconds(conductor.sweeper.sweep)
    conductor.queues.stop(10)
    conductor.membership.unregister()
    db.dispose()
    return {"sweep, ms": 1e3 * sweep, "start of a conductor, ms": 1e3 * started}


def by_nodes(given: argparse.Namespace) -> findings.Found:
    """Measure with more and more nodes."""
    mariadb = servers.MariaDB()
    with tempfile.TemporaryDirectory(prefix="ingot-growth-") as directory:
        site = sides.Site(sides.SETUPS["cluster"], pathlib.Path(directory), stock.create(mariadb))
        with sides.run(sides.SIDES["ingot"], site, mariadb) as subject:
            table = asyncio.run(_grow(subject, site, given))
    return {"By nodes": table, "Growth for each thousand nodes": _slopes(table, "nodes")}


async def _grow(subject: Subject, site: sides.Site, given: argparse.Namespace) -> list[Row]:
    db = stock.connect(str(site.config))
    stock.fill(db, min(given.sizes))
    table = []
    for size in given.sizes:
        plans.multiply(db, size)
        asked = await requests(subject, db, given.times)
        table.append({"nodes": size, **asked, **idle(subject, given.seconds), **periodic(db, site.database)})
    return table


def _slopes(table: list[Row], by: str) -> Row:
    sizes = [float(row[by]) for row in table]
    names = [name for name in table[0] if name != by]
    return {name: findings.slope(sizes, [float(row[name]) for row in table]) for name in names}


def by_plans(given: argparse.Namespace) -> findings.Found:
    """Count the rows that each filter and each order reads."""
    tables: dict[str, list[Row]] = {}
    for backend in ("mysql", "postgresql"):
        with fixtures.Fixture() as cleanups:
            made = cleanups.useFixture(database.DatabaseFixture(backend))
            stock.fill(made.db, 500)
            plans.multiply(made.db, max(given.sizes))
            tables[f"{backend}, {max(given.sizes)} nodes, pages of 100"] = [
                {"list": name, **_plan(made.db, page)} for name, page in _pages().items()
            ]
    return tables


_VALUES: Mapping[str, Any] = {
    **{name: f"{name}-3" for name in ("conductor_group", "resource_class", "owner")},
    **{"shard": ["shard-3"], "lessee": "lessee-1", "fault": "power failure", "provision_state": "clean failed"},
    **{"driver": "ipmi", "instance_name": "database-7", "maintenance": True, "retired": True, "instance_uuid": True},
}


def _pages() -> dict[str, listing.Page]:
    """Return the pages whose plans are looked at: each filter, each order in both directions."""
    whole = (listing.Condition("parent_node", "is_empty", True),)
    pages = {}
    for param in api_nodes.FILTERS:
        if param.column is None:
            continue
        first = param.column if isinstance(param.column, str) else param.column[0]
        condition = listing.Condition(param.column, param.test, _VALUES.get(first, "none"))
        pages[f"filter {param.name}"] = listing.Page(where=(*whole, condition), limit=100)
    for field in (field for field in TABLE.fields.values() if field.sortable):
        for descending in (False, True):
            name = f"order {field.name}{' downwards' if descending else ''}"
            pages[name] = listing.Page(where=whole, sort_key=field.name, descending=descending, limit=100)
    return pages


def _plan(db: Database, page: listing.Page) -> Row:
    [reading] = plans.readings(db, lambda: listing.page(db, node_lists.SOURCE, ("uuid", "name"), page))
    return {"rows read": reading.rows, "plan": reading.plan}


def by_conductors(given: argparse.Namespace) -> findings.Found:
    """Deploy with one conductor and with more on this host."""
    table = []
    mariadb = servers.MariaDB()
    for number in given.conductors:
        with tempfile.TemporaryDirectory(prefix="ingot-growth-") as directory:
            url = stock.create(mariadb)
            more: sides.Options = {"conductor": {"workers": number}}
            site = sides.Site(sides.SETUPS["cluster"], pathlib.Path(directory), url, more=more)
            with sides.run(sides.SIDES["ingot"], site, mariadb) as subject:
                with Meter(subject) as meter:
                    found = asyncio.run(bursts.deploy(subject, stock.connect(str(site.config)), given.deployments))
                seconds = found["seconds until all are deployed"]
                table.append(
                    {
                        "conductors": number,
                        "deployments a second": given.deployments / seconds,
                        "processor ms a deployment": meter.per_operation(given.deployments)["server_cpu_per_op_ms"],
                        "lost": found["lost"],
                        "cores": os.cpu_count(),
                    }
                )
    return {"By conductors": table}


def by_waits(given: argparse.Namespace) -> findings.Found:
    """Measure a conductor while more and more machines are waited for, for an hour."""
    table = []
    mariadb = servers.MariaDB()
    with tempfile.TemporaryDirectory(prefix="ingot-growth-") as directory:
        site = sides.Site(sides.SETUPS["cluster"], pathlib.Path(directory), stock.create(mariadb))
        with sides.run(sides.SIDES["ingot"], site, mariadb) as subject:
            db = stock.connect(str(site.config))
            waiting = {"provision_state": states.DEPLOYWAIT, "step_state": states.StepState.WAITING}
            for number in given.waits:
                stock.empty(db)
                stock.fill(db, number, **waiting, due_at=clock.after(3600), flow="deploy")
                table.append({"waits": number, **idle(subject, given.seconds), "threads": _threads(subject)})
    return {"By waits": table, "Growth for each thousand waits": _slopes(table, "waits")}


def _threads(subject: Subject) -> int:
    return sum(len(list(pathlib.Path(f"/proc/{pid}/task").iterdir())) for pid in processes.cpu(subject.pids))


PARTS = {"nodes": by_nodes, "plans": by_plans, "conductors": by_conductors, "waits": by_waits}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000, 100_000], help="numbers of nodes")
    parser.add_argument("--conductors", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--deployments", type=int, default=1000)
    parser.add_argument("--waits", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--times", type=int, default=20, help="requests of each kind")
    parser.add_argument("--seconds", type=float, default=20, help="of each look at an idle service")
    given = parser.parse_args()
    facts = report.circumstances()
    findings.keep("growth", {**PARTS[given.part](given)}, facts, given.part)


if __name__ == "__main__":
    main()
