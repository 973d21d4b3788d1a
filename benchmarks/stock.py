"""Fleets of nodes written straight into a database: enrolling a hundred thousand through the API would take hours."""

import secrets
import uuid
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from benchmarks import servers
from benchmarks.api import FAKE
from ingot.common import states
from ingot.common.conf import opts
from ingot.db import models, nodes, rows
from ingot.db.engine import Database

_BATCH = 1000

_PORTS = models.table(models.Port)


def create(mariadb: servers.MariaDB) -> str:
    """Create a database with a name of its own and return its URL."""
    return mariadb.create(f"benchmark_{secrets.token_hex(4)}")


def connect(config: str) -> Database:
    """Return the database of a service, as its file of options names it."""
    return Database(opts.load(["--config-file", config], prog="benchmarks"))


def nodes_like(number: int, **values: Any) -> Iterator[dict[str, Any]]:
    """Yield new rows of nodes of fake hardware: available and switched off, unless values say otherwise."""
    like = {**rows.json_defaults(nodes.NODES), **FAKE, "provision_state": states.AVAILABLE, "power_state": "power off"}
    image = {"image_source": "http://127.0.0.1:8088/image.raw", "image_checksum": "0" * 32, "root_gb": 10}
    facts = {"properties": {"cpus": 64, "memory_mb": 524288, "local_gb": 1788, "cpu_arch": "x86_64"}}
    for index in range(number):
        own = {"uuid": str(uuid.uuid4()), "extra": {"rack": index // 40, "unit": index % 40}, "instance_info": image}
        yield {**like, **facts, **own, **values}


def fill(db: Database, number: int, **values: Any) -> list[str]:
    """Write nodes, and return their UUIDs."""
    written: list[str] = []
    batch: list[dict[str, Any]] = []
    for row in nodes_like(number, **values):
        batch.append(row)
        written.append(row["uuid"])
        if len(batch) == _BATCH or len(written) == number:
            with db.transaction() as connection:
                connection.execute(sa.insert(nodes.NODES), batch)
            batch = []
    return written


def count(db: Database) -> int:
    """Return how many nodes there are."""
    with db.single() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(nodes.NODES)).scalar_one()


def empty(db: Database) -> None:
    """Remove all nodes."""
    db.write(sa.delete(nodes.NODES))


def states_of(db: Database, uuids: list[str]) -> dict[str, int]:
    """Return how many of some nodes are in each state."""
    of_these = nodes.NODES.c.uuid.in_(uuids)
    statement = sa.select(nodes.NODES.c.provision_state, sa.func.count()).where(of_these)
    with db.single() as connection:
        return {name: count for name, count in connection.execute(statement.group_by(nodes.NODES.c.provision_state))}


def ended_in_order(db: Database, uuids: list[str]) -> list[str]:
    """Return the nodes in the order in which they have reached their states."""
    chosen = sa.select(nodes.NODES.c.uuid).where(nodes.NODES.c.uuid.in_(uuids))
    return db.read_column(chosen.order_by(nodes.NODES.c.provision_updated_at))
