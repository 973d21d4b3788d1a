"""Conductors as processes of their own on a fleet that stands in the database only: for measurements."""

import collections
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any

import fixtures
import sqlalchemy as sa

from ingot.common import states
from ingot.db import conductors, models, nodes
from tests import database, patience
from tests.functional import services

PATIENCE = patience.seconds(300.0)
"""Seconds after which a measurement gives up waiting."""


def fleet(number: int) -> list[dict[str, Any]]:
    """Return rows of nodes as a site has them, half of them deployed, on fake hardware.

    The power state of every tenth node is not known yet.
    """
    empty = {column.name: {} for column in nodes.NODES.c if isinstance(column.type, models.JsonText)}
    return [{**empty, **_node(index)} for index in range(number)]


def _node(index: int) -> dict[str, Any]:
    deployed = index % 2 == 0
    return {
        "uuid": str(uuid.uuid4()),
        "name": f"rack{index // 40:03}-{index % 40:02}",
        "driver": "fake-hardware",
        "resource_class": "baremetal.large",
        "provision_state": states.ACTIVE if deployed else states.AVAILABLE,
        "power_state": None if index % 10 == 0 else states.POWER_ON if deployed else states.POWER_OFF,
        "driver_info": {
            "deploy_kernel": "http://files.example.com/deploy.kernel",
            "deploy_ramdisk": "http://files.example.com/deploy.initramfs",
            "address": f"192.0.2.{index % 250}",
        },
        "properties": {"cpus": 64, "memory_mb": 524288, "local_gb": 1788, "cpu_arch": "x86_64", "vendor": "acme"},
        "extra": {"rack": index // 40, "unit": index % 40, "serial": f"SN{index:08}"},
        "instance_info": {
            "image_source": f"http://files.example.com/images/{uuid.uuid4()}.raw",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": "0" * 64,
            "root_gb": 100,
        }
        if deployed
        else {},
        "driver_internal_info": {"agent_erase_devices_iterations": 1, "is_whole_disk_image": True},
    }


class Conductor:
    """A process of ingot-conductor whose statements and processor time are counted."""

    def __init__(self, directory: pathlib.Path, name: str, configuration: Mapping[str, Mapping[str, Any]]) -> None:
        self.name = name
        self._statements = directory / f"{name}.statements"
        self.log = directory / f"{name}.log"
        config = directory / f"{name}.conf"
        parts = [
            f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items())
            for group, values in configuration.items()
        ]
        config.write_text("\n".join(parts))
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.scale.counting",
            self._statements,
            "--config-file",
            config,
        ]
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def processor_seconds(self) -> float:
        """Return the time used so far, in user and kernel mode, by all its threads."""
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def statements(self) -> collections.Counter[str]:
        """Return how often each text was sent so far."""
        self._statements.unlink(missing_ok=True)
        self._process.send_signal(signal.SIGUSR1)
        wait_for(self._statements.exists, f"{self.name} tells its statements")
        return collections.Counter(json.loads(self._statements.read_text()))

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(PATIENCE)


class Cluster(fixtures.Fixture):
    """A database on the server of ``devstack/services.py`` with a fleet, and conductors on its broker.

    :param options: options of the conductors: {group: {name: value}}.
    """

    def __init__(self, number: int, options: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__()
        self.rows = fleet(number)
        self._options = options

    def _setUp(self) -> None:
        self._database = self.useFixture(database.DatabaseFixture("mysql"))
        self.db = self._database.db
        self._directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._exchange = services.unique_name("scale")
        with self.db.transaction() as connection:
            for first in range(0, len(self.rows), 500):
                connection.execute(sa.insert(nodes.NODES), self.rows[first : first + 500])

    def start(self, name: str) -> Conductor:
        """Start a conductor, and wait until others see it."""
        groups: dict[str, dict[str, Any]] = {
            "DEFAULT": {
                "host": f"{name}-{self._exchange}",
                "control_exchange": self._exchange,
                "state_path": self._directory,
                "transport_url": services.broker_url(),
                "enabled_hardware_types": "fake-hardware",
                **{f"enabled_{kind}_interfaces": "fake" for kind in ("power", "management", "boot", "deploy")},
            },
            "database": {"connection": self._database.url},
            "secrets": {"key_file": self._database.conf.secrets.key_file},
        }
        for group, values in self._options.items():
            groups.setdefault(group, {}).update(values)
        conductor = Conductor(self._directory, groups["DEFAULT"]["host"], groups)
        self.addCleanup(conductor.end)
        wait_for(lambda: conductor.name in conductors.online_hosts(self.db, 30), f"{name} is online\n{conductor.log}")
        return conductor


def wait_for(check: Any, what: str, interval: float = 0.1) -> None:
    """Wait until a condition holds.

    :raises TimeoutError: it did not come true.
    """
    until = time.monotonic() + PATIENCE
    while not check():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {PATIENCE:.0f} s: {what}")
        time.sleep(interval)
