"""A site of many machines in conductor groups, as far as this host goes: ``python -m benchmarks.site``, under services.

The database has the whole fleet. Of the groups some have their conductor here, the real one with fake hardware, and
machines are deployed through one API in all of these at once. What each part spends on a deployment and on an idle
minute tells what a larger site needs, and which part is the first that has no more to give.
"""

import argparse
import asyncio
import math
import os
import pathlib
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from benchmarks import bursts, findings, processes, report, servers, sides, stock, wire
from benchmarks.loads import Subject
from ingot.common import states
from ingot.db import nodes
from tests import plans

_GROUPS = plans.GROUPS
_READ_EVERY_S = 60
"""[conductor] sync_power_state_interval of a site."""

DRIVER = "fake-hardware"

Row = dict[str, Any]


def side(groups: Sequence[str]) -> sides.Side:
    """Return Ingot with one API service and a conductor for each of some groups."""
    product = sides.SIDES["ingot"]

    def list_processes(site: sides.Site) -> list[sides.Command]:
        common = ["--config-file", str(site.config)]
        commands = [["ingot-api", *common]]
        for group in groups:
            own = site.directory / f"{group}.conf"
            own.write_text(f"[DEFAULT]\nhost = {site.name}-{group}\n[conductor]\nconductor_group = {group}\n")
            commands.append(["ingot-conductor", *common, "--config-file", str(own)])
        return commands

    return product._replace(processes=list_processes)


def broker_pids() -> list[int]:
    """Return the processes of the broker, by the port on which they listen."""
    port = int(servers.broker().rsplit(":", 1)[1].strip("/"))
    tables = "".join(pathlib.Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6"))
    sockets = {
        f"socket:[{inode}]"
        for inode in re.findall(rf":{port:04X} \S+ 0A (?:\S+ ){{5}}(\d+)", re.sub(" +", " ", tables))
    }
    return [pid for pid in _pids() if sockets & _links(pid)]


def _pids() -> list[int]:
    return [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]


def _links(pid: int) -> set[str]:
    try:
        return {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    except OSError:  # it has ended, or this link has
        return set()


class Parts:
    """The processor time of each part of a site: database, broker, API, conductors."""

    def __init__(self, subject: Subject) -> None:
        api, *conductors = subject.pids
        self._subject = subject
        self._pids = {
            "API": [api],
            "conductors": conductors,
            "database": subject.database_pids,
            "broker": broker_pids(),
        }

    def now(self) -> tuple[Mapping[str, Mapping[int, float]], Mapping[str, int]]:
        return {name: processes.cpu(pids) for name, pids in self._pids.items()}, self._subject.count()

    def since(self, before: tuple[Mapping[str, Mapping[int, float]], Mapping[str, int]], share: float) -> Row:
        """Return what was spent since, for each of so many: milliseconds by part, and statements."""
        used, counted = self.now()
        found: Row = {
            f"{name}, ms": 1e3 * processes.cpu_between(before[0][name], used[name]) / share for name in self._pids
        }
        return found | {name: (counted[name] - before[1][name]) / share for name in counted}


async def deployed(subject: Subject, parts: Parts, config: pathlib.Path, groups: Sequence[str], number: int) -> Row:
    """Deploy machines of some groups at once, and return what a deployment costs."""
    db = stock.connect(str(config))
    columns = nodes.NODES.c
    chosen = sa.select(columns.uuid).where(
        columns.conductor_group.in_(groups),
        columns.provision_state == states.AVAILABLE,
        columns.driver == DRIVER,
        columns.maintenance.is_(False),
        columns.retired.is_(False),
    )
    uuids = db.read_column(chosen.order_by(columns.id).limit(number))
    verb = {"target": "active"}
    before, began = parts.now(), time.perf_counter()

    async def request(node: str) -> None:
        await subject.api.insist("PUT", f"/v1/nodes/{node}/states/provision", verb)

    await wire.each(uuids, 100, request)
    seconds = await bursts.ended(db, uuids, began)
    found = parts.since(before, len(uuids))
    lost = len(uuids) - stock.states_of(db, uuids).get(states.ACTIVE, 0)
    return {"groups": len(groups), "deployments a second": len(uuids) / seconds, "lost": lost, **found}


def idle(parts: Parts, seconds: float, groups: int) -> Row:
    """Return what a group costs in a minute in which power states are read, and nothing else happens."""
    before = parts.now()
    time.sleep(seconds)
    return parts.since(before, groups * seconds / 60)


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


def simulate(given: argparse.Namespace) -> findings.Found:
    """Measure with more and more groups at work; the fleet is the same."""
    mariadb = servers.MariaDB()
    deployments, minutes = [], []
    for count in given.groups:
        groups = [f"conductor_group-{number}" for number in range(count)]
        with tempfile.TemporaryDirectory(prefix="ingot-site-") as directory:
            more: sides.Options = {"conductor": {"sync_power_state_interval": _READ_EVERY_S, "automated_clean": False}}
            site = sides.Site(sides.SETUPS["cluster"], pathlib.Path(directory), stock.create(mariadb), more=more)
            with sides.run(side(groups), site, mariadb) as subject:
                db = stock.connect(str(site.config))
                stock.fill(db, 500)
                plans.multiply(db, given.machines)
                parts = Parts(subject)
                work = deployed(subject, parts, site.config, groups, given.deployments * count)
                deployments.append(asyncio.run(work))
                minutes.append({"groups": count, **idle(parts, given.seconds, count)})
    cores = {"API": given.api_cores, "database": given.database_cores, "broker": 2, "conductors": 1}
    return {
        "What a deployment costs": deployments,
        f"What a group of {given.machines // _GROUPS} machines costs in an idle minute": minutes,
        f"A site of {given.machines} machines in {_GROUPS} groups, the first limit first": first_limits(
            deployments[-1], minutes[-1], cores
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--machines", type=int, default=100_000)
    parser.add_argument("--groups", type=int, nargs="+", default=[1, 2, 4], help="that have their conductors here")
    parser.add_argument("--deployments", type=int, default=200, help="in each group")
    parser.add_argument("--seconds", type=float, default=60, help="of the look at the idle site")
    parser.add_argument("--api-cores", type=int, default=8, help="of the site that is reckoned")
    parser.add_argument("--database-cores", type=int, default=16)
    given = parser.parse_args()
    facts = report.circumstances()
    findings.keep("site", simulate(given), facts)


if __name__ == "__main__":
    main()
