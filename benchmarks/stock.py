"""Ingot with a fleet that is written straight into its database: to enroll so many through the API would take hours."""

import argparse
import contextlib
import itertools
import pathlib
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa

from benchmarks import servers, sides
from benchmarks.api import FAKE, PATIENCE_S
from benchmarks.loads import Subject
from ingot.common import states
from ingot.common.conf import opts
from ingot.db import nodes, rows
from ingot.db.engine import Database

_BATCH = 1000
STATE = nodes.NODES.c.provision_state


def parser(program: str, purpose: str | None) -> argparse.ArgumentParser:
    """Return the options that all commands have that use such a service."""
    made = argparse.ArgumentParser(prog=f"python -m {program}", description=(purpose or "").partition("\n")[0])
    made.add_argument("--driver", choices=("pymysql", "mysqldb"), default="pymysql", help="for MariaDB")
    return made


@contextlib.contextmanager
def service(driver: str, more: sides.Options, groups: Sequence[str] = ("",)) -> Iterator[tuple[Subject, Database]]:
    """Start Ingot with one API and a conductor for each of some groups; stop it in the end."""

    def list_processes(site: sides.Site) -> list[sides.Command]:
        common = ["--config-file", str(site.config)]
        commands = [["ingot-api", *common]]
        for number, group in enumerate(groups):
            own = site.directory / f"conductor-{number}.conf"
            own.write_text(f"[DEFAULT]\nhost = {site.name}-{number}\n[conductor]\nconductor_group = {group}\n")
            commands.append(["ingot-conductor", *common, "--config-file", str(own)])
        return commands

    side = sides.INGOT._replace(processes=list_processes, driver=driver, more=more)
    with tempfile.TemporaryDirectory(prefix="ingot-benchmark-") as directory:
        with sides.run(side, sides.SETUPS["cluster"], pathlib.Path(directory), servers.MariaDB()) as subject:
            yield subject, Database(opts.load(["--config-file", str(subject.config)], prog="benchmarks"))


def fleet(number: int, **values: Any) -> Iterator[dict[str, Any]]:
    """Yield rows of nodes of fake hardware as a site has them: half of them deployed, unless values say otherwise."""
    like = {**rows.json_defaults(nodes.NODES), **FAKE}
    image = {"image_source": "http://127.0.0.1:8088/image.raw", "image_checksum": "0" * 32, "root_gb": 10}
    facts = {"cpus": 64, "memory_mb": 524288, "local_gb": 1788, "cpu_arch": "x86_64", "vendor": "benchmark"}
    for index in range(number):
        deployed = index % 2 == 0
        yield {
            **like,
            "uuid": str(uuid.uuid4()),
            "name": f"rack{index // 40:03}-{index % 40:02}-{uuid.uuid4().hex[:8]}",
            "resource_class": "baremetal.large",
            "provision_state": states.ACTIVE if deployed else states.AVAILABLE,
            "power_state": states.POWER_ON if deployed else states.POWER_OFF,
            "properties": facts,
            "extra": {"rack": index // 40, "unit": index % 40},
            "instance_info": image,
            **values,
        }


def fill(db: Database, number: int, **values: Any) -> list[str]:
    """Write nodes, and return their UUIDs."""
    written: list[str] = []
    remaining = fleet(number, **values)
    while batch := list(itertools.islice(remaining, _BATCH)):
        with db.transaction() as connection:
            connection.execute(sa.insert(nodes.NODES), batch)
        written += [row["uuid"] for row in batch]
    return written


def fill_ready(db: Database, number: int) -> list[str]:
    """Write nodes that can be deployed, and return their UUIDs."""
    return fill(db, number, provision_state=states.AVAILABLE, power_state=states.POWER_OFF)


def empty(db: Database) -> None:
    """Remove all nodes."""
    db.write(sa.delete(nodes.NODES))


def count_active(db: Database, uuids: Sequence[str]) -> int:
    """Return how many of some nodes are deployed."""
    these = nodes.NODES.c.uuid.in_(uuids)
    statement = sa.select(sa.func.count()).select_from(nodes.NODES).where(these, STATE == states.ACTIVE)
    with db.single() as connection:
        return connection.execute(statement).scalar_one()


def wait_for(check: Callable[[], object], what: str) -> None:
    """Wait until a condition holds.

    :raises TimeoutError: it did not come true.
    """
    until = time.monotonic() + PATIENCE_S
    while not check():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {PATIENCE_S:.0f} s: {what}")
        time.sleep(0.1)
