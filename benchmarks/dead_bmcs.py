"""How many deployments a conductor ends in a minute when a tenth of the BMCs is dead, and when none is.

    python -m benchmarks.dead_bmcs --machines 100 --dead 10 --workers 4 --driver redfish

A deployment switches its machine off and on, and is asked for again as soon as it has ended, well or not.
Those on dead BMCs are not counted. It begins when the reading of power states has found all that are dead. The same
without the threads that work on silent hardware has of its own tells what those are for. All kinds of fleets run side
by side, each with a conductor and a process of its own, as others may use the machine too: what counts is the ratio.
"""

import argparse
import multiprocessing
import time
from typing import Any

import fixtures
import sqlalchemy as sa

from benchmarks import api, bmcs, report, stock
from ingot.api.web import call as calls
from ingot.common import clock, states
from ingot.conductor import manager
from ingot.db import models, nodes
from ingot.drivers.generic import fake
from ingot.drivers.generic.fake import FakeHardware
from ingot.drivers.interfaces import base, power_control
from ingot.drivers.interfaces.task import Task
from ingot.drivers.ipmi.power import IPMIPower
from ingot.drivers.loading import factory
from ingot.drivers.redfish.power import RedfishPower
from tests import conductor_case, database
from tests.unit.drivers.plugins import here, with_plugins

_LIVE = "no deployments of machines with dead BMCs"
_DEAD = "a tenth of those asked for have dead BMCs"
_NO_SLOW_QUEUES = "the same, without threads of their own"
_KINDS = (_LIVE, _DEAD, _NO_SLOW_QUEUES)


class Rebooting(fake.FakeDeploy):
    """Deploys by switching the machine off and on."""

    @base.deploy_step(priority=100, idempotent=True)
    def deploy(self, task: Task) -> Any:
        """Do the whole deployment."""
        return power_control.reboot(task)


class Machine(FakeHardware):
    supported_power_interfaces = (IPMIPower, RedfishPower)
    supported_deploy_interfaces = (Rebooting,)


SOURCE = with_plugins(types_machine=here(Machine), deploy_rebooting=here(Rebooting))


class Bench(fixtures.Fixture):
    """A conductor and its nodes, every so many of them with a dead BMC."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__()
        self._given = given

    def _setUp(self) -> None:
        made = self.useFixture(database.DatabaseFixture())
        self.db = made.db
        conductor_case.fake_hardware(made.conf)
        made.conf.set_override("host", "scale")
        made.conf.set_override("enabled_hardware_types", ["machine"])
        made.conf.set_override("enabled_power_interfaces", [bmcs.DRIVERS[self._given.driver].power])
        made.conf.set_override("enabled_deploy_interfaces", ["rebooting"])
        made.conf.set_override("graceful_shutdown_timeout", 0, group="conductor")
        made.conf.set_override("sync_power_state_interval", 10, group="conductor")
        made.conf.set_override("workers_pool_size", self._given.workers, group="conductor")
        self.conductor = manager.Conductor(made.conf, self.db, factory.Hardware(made.conf, SOURCE))
        self.conductor.start()
        self.addCleanup(self.conductor.stop)

    def enroll(self, info: dict[str, Any]) -> models.Node:
        return database.make_node(self.db, driver="machine", driver_info=info)

    def deploy(self, asked: dict[str, bool]) -> int:
        """Deploy again and again; return how many deployments of live machines ended.

        :param asked: uuids, each with whether its BMC is alive.
        """
        ended, until = 0, time.monotonic() + self._given.seconds
        for uuid in asked:
            self._deploy(uuid)
        while time.monotonic() < until:
            for uuid in self._resting(asked):
                ended += asked[uuid]
                self._deploy(uuid)
            time.sleep(0.05)
        return ended

    def _resting(self, asked: dict[str, bool]) -> list[str]:
        columns = nodes.NODES.c
        with self.db.single() as connection:
            resting = sa.select(columns.uuid).where(columns.flow.is_(None), columns.reservation.is_(None))
            return [uuid for uuid in connection.execute(resting).scalars() if uuid in asked]

    def _deploy(self, uuid: str) -> None:
        accepted = {"provision_state": states.DEPLOYING, "flow": "deploy", "run_id": None, "due_at": clock.now()}
        calls.repeat_if_changed(lambda: nodes.compare_and_set(self.db, nodes.get(self.db, uuid), accepted))()
        self.conductor.queues.notify(uuid, "deploy")


def _fleet(given: argparse.Namespace, kind: str, ready: Any, results: Any) -> None:
    """Deploy one kind of fleet in its own process; report how many deployments ended."""
    driver = bmcs.DRIVERS[given.driver]
    with bmcs.play(driver, given.machines, given.dead) as fleet, Bench(given) as bench:
        asked = {bench.enroll(info).uuid: number % given.dead != 0 for number, info in enumerate(fleet.infos)}
        circuit_breakers = bench.conductor.services.circuit_breakers
        dead = [uuid for uuid, alive in asked.items() if not alive]
        stock.wait_for(lambda: all(map(circuit_breakers.is_unresponsive, dead)), "the dead are known")
        if kind == _LIVE:
            asked = {uuid: alive for uuid, alive in asked.items() if alive}
        if kind == _NO_SLOW_QUEUES:
            bench.conductor.queues._is_slow = lambda _uuid: False
        ready.wait()
        results.put(bench.deploy(asked))


def measure(given: argparse.Namespace) -> list[dict[str, Any]]:
    processes = multiprocessing.get_context("spawn")
    ready = processes.Barrier(len(_KINDS))
    heard = {}
    for kind in _KINDS:
        heard[kind] = processes.Queue()
        processes.Process(target=_fleet, args=(given, kind, ready, heard[kind])).start()
    ended = {kind: queue.get(timeout=api.PATIENCE_S + given.seconds) for kind, queue in heard.items()}
    return [
        {
            "driver": given.driver,
            "fleet": kind,
            "deployments a minute": number * 60 / given.seconds,
            "of the first": number / ended[_LIVE],
        }
        for kind, number in ended.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--driver", choices=bmcs.DRIVERS, default="ipmi", help="(default: %(default)s)")
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--dead", type=int, default=10, help="every which BMC is dead (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="workers_pool_size (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=120, help="(default: %(default)s)")
    given = parser.parse_args()
    report.finish("dead-bmcs", report.circumstances(), {"Deployments a minute": measure(given)})


if __name__ == "__main__":
    main()
