"""A site of many machines in conductor groups, as far as this host goes: ``python -m benchmarks.site``, under services.

The database has the whole fleet. Of the groups some have their conductor here, the real one with fake hardware, and
machines are deployed through one API in all of these at once. What each part spends on a deployment and on an idle
minute tells what a larger site needs, and which part is the first that has no more to give.
"""

import argparse
import asyncio
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from benchmarks import bursts, report, stock, wire
from benchmarks.loads import Meter, Subject
from ingot.common import states
from ingot.db import nodes
from ingot.db.engine import Database
from tests import plans

_GROUPS = plans.GROUPS
_READ_EVERY_S = 60
"""[conductor] sync_power_state_interval of a site."""

DRIVER = "fake-hardware"

Row = dict[str, Any]


async def deploy(subject: Subject, db: Database, groups: Sequence[str], number: int) -> Row:
    """Deploy machines of some groups at once, and return what a deployment costs."""
    columns = nodes.NODES.c
    chosen = sa.select(columns.uuid).where(
        columns.conductor_group.in_(groups),
        columns.provision_state == states.AVAILABLE,
        columns.driver == DRIVER,
        columns.maintenance.is_(False),
        columns.retired.is_(False),
    )
    uuids = db.read_column(chosen.order_by(columns.id).limit(number))
    with Meter(subject) as meter:
        began = time.perf_counter()
        await wire.each(uuids, 100, lambda node: subject.api.provision(node, "active"))
        seconds = await bursts.wait_until_active(db, uuids, began)
    lost = len(uuids) - stock.count_active(db, uuids)
    return {
        "groups": len(groups),
        "deployments a second": len(uuids) / seconds,
        "lost": lost,
        **spend(meter, len(uuids)),
    }


def idle(subject: Subject, seconds: float, groups: int) -> Row:
    """Return what a group costs in a minute in which power states are read, and nothing else happens."""
    with Meter(subject) as meter:
        time.sleep(seconds)
    return spend(meter, groups * seconds / 60)


def spend(meter: Meter, share: float) -> Row:
    """Return what was spent for each of so many: milliseconds by part, and statements."""
    used = {f"{part}, ms": 1e3 * seconds / share for part, seconds in meter.used.items()}
    return used | {name: value / share for name, value in meter.counted.items()}


def first_limits(deployment: Row, minute: Row, cores: Mapping[str, int]) -> list[Row]:
    """Return how much of each part a site uses when idle, and how many deployments a second the rest carries.

    :param deployment: milliseconds of each part for a deployment.
    :param minute: the same for an idle minute of a group.
    :param cores: that each part has; conductors those of their group.
    """
    table = []
    for name, have in cores.items():
        parts = _GROUPS if name == "conductors" else 1
        base = minute[f"{name}, ms"] * _GROUPS / parts / 60_000
        each = deployment[f"{name}, ms"]
        most = parts * max(0.0, have - base) * 1000 / each if each else math.inf
        table.append({"part": name, "cores": have, "used when idle": base, "deployments a second": most})
    return sorted(table, key=lambda row: row["deployments a second"])


def main() -> None:
    parser = stock.parser("benchmarks.site", __doc__)
    parser.add_argument("--machines", type=int, default=100_000)
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 2, 3, 4], help="that have their conductors here")
    parser.add_argument("--deployments", type=int, default=200, help="in each group")
    parser.add_argument("--seconds", type=float, default=60, help="of the look at the idle site")
    parser.add_argument("--api-cores", type=int, default=8, help="of the site that is reckoned")
    parser.add_argument("--database-cores", type=int, default=16)
    given = parser.parse_args()
    facts = report.circumstances()
    deployments: list[Row] = []
    minutes: list[Row] = []
    for count in given.groups:
        simulate(given, count, deployments, minutes)
        cores = {"API": given.api_cores, "database": given.database_cores, "broker": 2, "conductors": 1}
        machines = f"{given.machines} machines in {_GROUPS} groups"
        found = {
            f"What a deployment costs ({os.cpu_count()} cores for all parts)": deployments,
            f"What a group of {given.machines // _GROUPS} machines costs in an idle minute": minutes,
            f"A site of {machines}, the first limit first": first_limits(deployments[-1], minutes[-1], cores),
        }
        report.finish("site", facts, found)


def simulate(given: argparse.Namespace, count: int, deployments: list[Row], minutes: list[Row]) -> None:
    """Measure with so many groups at work; the fleet is the same."""
    groups = [f"conductor_group-{number}" for number in range(count)]
    more = {"conductor": {"sync_power_state_interval": _READ_EVERY_S, "automated_clean": False}}
    with stock.service(given.driver, more, groups) as (subject, db):
        stock.fill(db, 500)
        plans.multiply(db, given.machines)
        deployments.append(asyncio.run(deploy(subject, db, groups, given.deployments * count)))
        minutes.append({"groups": count, **idle(subject, given.seconds, count)})


if __name__ == "__main__":
    main()
