"""Yesterday's database comes back while machines have moved on: what happens to them."""

import os
import pathlib
import subprocess
import time
from typing import Any

import sqlalchemy as sa
import testtools

from tests import database
from tests.functional.deployment import lab

_OPTIONS = {
    "DEFAULT": {"enabled_deploy_interfaces": "direct,fake"},
    # As by default: a machine that is found in another power state than before is switched back.
    "conductor": {"force_power_state_during_sync": True, "sync_power_state_interval": 1, "heartbeat_timeout": 3},
}
_LONG_ENOUGH_S = 4
"""Seconds in which power states are read several times, and each node is looked at by several sweeps."""


LATER = "CREATE TABLE later (id INTEGER PRIMARY KEY)"
"""What a release has added since the backup: a restored database must not have it, or an upgrade fails."""


class OnSQLite(testtools.TestCase):
    backend = "sqlite"

    def setUp(self) -> None:
        super().setUp()
        url = None
        if self.backend != "sqlite":
            url = self.useFixture(database.DatabaseFixture(self.backend, migrated=False)).url
        self.lab = self.useFixture(lab.Lab(database_url=url, machines=3, options=_OPTIONS))
        self.url = sa.make_url(url or f"sqlite:///{self.lab.directory}/ingot.sqlite")
        self.dump = self.lab.directory / "dump"

    # As the page "Back up and restore" has it

    def run_tool(self, *command: str, stdin: pathlib.Path | None = None) -> str:
        secret = {"MYSQL_PWD": self.url.password or "", "PGPASSWORD": self.url.password or ""}
        with (stdin or pathlib.Path(os.devnull)).open("rb") as given:
            ended = subprocess.run(
                command,
                stdin=given,
                capture_output=True,
                timeout=lab.PATIENCE,
                env={**os.environ, **secret},
                check=False,
            )
        self.assertEqual(0, ended.returncode, ended.stderr.decode())
        return ended.stdout.decode()

    def back_up(self) -> None:
        """Back the running site up."""
        self.run_tool("sqlite3", str(self.url.database), f".backup {self.dump}")

    def put_back(self) -> None:
        """Restore the backup."""
        for name in ("-wal", "-shm"):
            pathlib.Path(f"{self.url.database}{name}").unlink(missing_ok=True)
        pathlib.Path(str(self.url.database)).write_bytes(self.dump.read_bytes())

    def run_dbsync(self, *arguments: str) -> str:
        name = f"dbsync-{'-'.join(arguments)}".replace("--", "")
        process = self.lab.make(["ingot-dbsync"], name, *arguments)
        process.start().wait()
        return process.log.read_text()

    def power(self, index: int) -> str:
        return self.lab.ipmitool("power", "status", index=index).split()[-1]

    def nodes(self) -> list[dict[str, Any]]:
        return [self.lab.user.node(f"machine-{number}") for number in range(3)]

    def live_a_day(self) -> list[str]:
        """Back the site up, go on with its machines, then restore the backup; return the uuids of the nodes."""
        bench = self.lab
        free, busy, gone = (bench.enroll(number) for number in range(3))
        for uuid in (free, busy, gone):
            bench.make_available(uuid)
            bench.set_image(uuid)
        bench.user.provision(gone, "active")
        bench.reach(gone, "active")
        slow = {"command": "deploy.execute_deploy_step", "seconds": 3}
        bench.rack.control.order_fault("machine-1", "slow_answer", slow, times=1)
        bench.user.provision(busy, "active")
        bench.eventually(lambda: bench.user.node(busy)["provision_state"] == "wait call-back", "it is being deployed")
        self.back_up()

        # A day goes by.
        bench.reach(busy, "active")
        bench.user.provision(free, "active")
        bench.reach(free, "active")
        bench.user.request("PUT", f"/v1/nodes/{gone}/states/power", {"target": "power off"})
        bench.eventually(lambda: self.power(2) == "off", "a user switches a machine off")
        self.assertEqual(0, bench.process.stop())
        self.put_back()
        time.sleep(_OPTIONS["conductor"]["heartbeat_timeout"])
        return [free, busy, gone]

    def test_no_machine_is_touched_before_an_operator_confirms_it(self) -> None:
        free, _busy, _gone = self.live_a_day()
        bench = self.lab
        said = self.run_dbsync("restored")
        self.assertRegex(said, "node machine-1: (wait call-back|deploying) -> deploy failed\n")
        self.assertIn("3 nodes are held back, 1 flows are given up", said)
        bench.process.start()
        bench.wait_until_served()
        time.sleep(_LONG_ENOUGH_S)

        self.assertEqual(["on", "on", "off"], [self.power(number) for number in range(3)])
        self.assertEqual([True, True, True], [bench.holds_image(number) for number in range(3)])
        found = self.nodes()
        self.assertEqual(["available", "deploy failed", "active"], [node["provision_state"] for node in found])
        self.assertEqual([True] * 3, [node["maintenance"] for node in found])
        self.assertIn("restored from a backup", found[1]["last_error"])
        refused = bench.user.request("PUT", f"/v1/nodes/{free}/states/provision", {"target": "active"})
        self.assertEqual((409, True), (refused.status_code, "maintenance" in refused.text), refused.text)

        # The operator looks at the machines, and says how they are.
        self.assertIn("3 nodes are confirmed", self.run_dbsync("confirm", "--all"))
        bench.eventually(
            lambda: [node["power_state"] for node in self.nodes()] == ["power on", "power on", "power off"],
            "power states are read, and restored on no machine",
        )
        self.assertEqual(["on", "on", "off"], [self.power(number) for number in range(3)])
        bench.user.provision(free, "manage")
        bench.reach(free, "manageable")
        bench.user.provision(free, "adopt")
        bench.reach(free, "active")
        self.assertTrue(bench.holds_image(0))
        self.assertEqual(["on", "on", "off"], [self.power(number) for number in range(3)])

    def test_it_is_refused_while_a_conductor_runs(self) -> None:
        process = self.lab.make(["ingot-dbsync"], "dbsync", "restored")
        self.assertIn("Stop all services", str(self.assertRaises(AssertionError, process.start().wait)))


class OnMariaDB(OnSQLite):
    backend = "mysql"

    def server(self) -> tuple[str, ...]:
        address = ("--host", str(self.url.host), "--port", str(self.url.port or 3306), "--protocol=tcp")
        return (*address, "--user", str(self.url.username))

    def back_up(self) -> None:
        dumped = self.run_tool("mariadb-dump", *self.server(), "--single-transaction", str(self.url.database))
        self.dump.write_text(dumped)

    def ask(self, statement: str, *where: str) -> str:
        return self.run_tool("mariadb", *self.server(), "-e", statement, *where)

    def put_back(self) -> None:
        name = str(self.url.database)
        self.ask(LATER, name)
        self.ask(f"DROP DATABASE {name}; CREATE DATABASE {name} CHARACTER SET utf8mb4")
        self.run_tool("mariadb", *self.server(), name, stdin=self.dump)
        self.assertNotIn("later", self.ask("SHOW TABLES", name).split())


class OnPostgreSQL(OnSQLite):
    backend = "postgresql"

    def server(self) -> tuple[str, ...]:
        address = ("--host", str(self.url.host), "--port", str(self.url.port or 5432))
        return (*address, "--username", str(self.url.username))

    def back_up(self) -> None:
        name = ("--dbname", str(self.url.database))
        self.dump.write_text(self.run_tool("pg_dump", *self.server(), *name, "--clean", "--if-exists"))

    def ask(self, *what: str, stdin: pathlib.Path | None = None) -> str:
        name = ("--dbname", str(self.url.database), "--set=ON_ERROR_STOP=1", "--quiet", "--no-align", "--tuples-only")
        return self.run_tool("psql", *self.server(), *name, *what, stdin=stdin)

    def put_back(self) -> None:
        name = str(self.url.database)
        self.ask("-c", LATER)
        self.run_tool("dropdb", *self.server(), name)
        self.run_tool("createdb", *self.server(), "--owner", str(self.url.username), name)
        self.ask("--single-transaction", stdin=self.dump)
        self.assertNotIn("later", self.ask("-c", "SELECT tablename FROM pg_tables").split())
