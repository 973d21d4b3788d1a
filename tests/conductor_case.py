"""A real conductor on a real SQLite database, in the test's process, for tests of flows."""

import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, context, states
from ingot.conductor import manager
from ingot.db import models, nodes
from ingot.db.engine import Database
from tests import database, patience

PATIENCE = patience.seconds(60.0)
"""Seconds after which a test stops waiting; only a failing test waits that long."""

_FAKE = ("bios", "boot", "console", "deploy", "firmware", "inspect", "management", "power", "raid", "rescue", "vendor")


def fake_hardware(conf: Any) -> None:
    """Configure fake-hardware with its fakes only, and no periodic work but sweeps."""
    conf.set_override("enabled_hardware_types", ["fake-hardware"])
    for kind in _FAKE:
        conf.set_override(f"enabled_{kind}_interfaces", ["fake"])
    conf.set_override("sync_power_state_interval", 0, group="conductor")
    conf.set_override("workers_pool_size", 5, group="conductor")


def eventually(check: Callable[[], Any], what: str) -> Any:
    """Return the first true answer of ``check``.

    :raises AssertionError: there was none within :data:`PATIENCE` seconds.
    """
    until = time.monotonic() + PATIENCE
    while not (answer := check()):
        if time.monotonic() > until:
            raise AssertionError(f"not within {PATIENCE:.0f} s: {what}")
        time.sleep(0.02)
    return answer


class ConductorCase(database.TestCase):
    """``self.conductor`` runs unless a test clears ``starts``."""

    starts = True

    def setUp(self) -> None:
        super().setUp()
        self.conf = self.database.conf
        self.conf.set_override("host", "conductor-1")
        fake_hardware(self.conf)
        self.configure()
        self.conductor = self.make_conductor(self.db)
        if self.starts:
            self.start(self.conductor)

    def configure(self) -> None:
        """Override to set options before the conductor is made."""

    def make_conductor(self, db: Database) -> manager.Conductor:
        return manager.Conductor(self.conf, db)

    def start(self, conductor: manager.Conductor) -> None:
        conductor.start()
        self.addCleanup(conductor.stop)

    def accept(self, node: models.Node, flow: str, state: str, **request: Any) -> None:
        """Write what the API writes when it accepts a verb; the conductor is not notified."""
        values = {
            "provision_state": state,
            "target_provision_state": states.TARGETS.get(state),
            "provision_updated_at": clock.now(),
            "flow": flow,
            "request": request,
            "run_id": None,
            "due_at": clock.now(),
        }
        nodes.compare_and_set(self.db, nodes.get(self.db, node.uuid), values)

    def notify(self, node: models.Node, why: str = "test") -> None:
        self.conductor.endpoint.advance(context.admin().to_dict(), node_uuid=node.uuid, why=why)

    def run_flow(self, node: models.Node, flow: str, state: str, **request: Any) -> models.Node:
        """Accept a verb, notify the conductor and wait for the end."""
        self.accept(node, flow, state, **request)
        self.notify(node)
        return self.settled(node)

    def settled(self, node: models.Node) -> models.Node:
        """Return the node once it is unlocked and no flow is under way."""

        def look() -> models.Node | None:
            now = nodes.get(self.db, node.uuid)
            return now if now.reservation is None and now.flow is None and not now.power_request else None

        found: models.Node = eventually(look, f"node {node.uuid} settles")
        return found

    def in_state(self, node: models.Node, state: str) -> models.Node:
        """Return the node once it is in a provision state and unlocked."""

        def look() -> models.Node | None:
            now = nodes.get(self.db, node.uuid)
            return now if now.provision_state == state and now.reservation is None else None

        found: models.Node = eventually(look, f"node {node.uuid} is in {state}")
        return found

    def step_runs(self, node: models.Node) -> list[models.StepRun]:
        """Return the finished attempts of all of the node's runs, oldest first."""
        table = models.table(models.StepRun)
        with self.db.single() as connection:
            rows = connection.execute(sa.select(table).where(table.c.node_id == node.id).order_by(table.c.id))
            return models.StepRun.all_of(rows)

    def history(self, node: models.Node) -> list[models.NodeHistory]:
        table = models.table(models.NodeHistory)
        with self.db.single() as connection:
            rows = connection.execute(sa.select(table).where(table.c.node_id == node.id).order_by(table.c.id))
            return models.NodeHistory.all_of(rows)
