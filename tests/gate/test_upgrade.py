"""A release is rolled over a working cluster: the database first, the conductors one by one, the APIs last.

Meanwhile users behind a load balancer deploy and undeploy the machines of a rack, all the time, and read what was made
on the release before. On MariaDB all that is replaced is killed; on PostgreSQL services are pinned, and one goes back.
"""

import os
import signal
import time
from typing import Any

import sqlalchemy as sa
import testtools

from ingot.db import conductors
from ingot.rpcapi import transport, versions
from tests import database
from tests.functional import queues, services
from tests.functional.deployment import lab
from tests.gate import environments, upgrading

MACHINES = 3
SIDE_BY_SIDE_S = 60 * float(os.environ.get("INGOT_TEST_SIDE_BY_SIDE", "0"))
"""How long, in the variable in minutes, conductors of two releases work beside each other; by hand for hours."""

_BEFORE = "0.2"
_PIN = f"[DEFAULT]\npin_release_version = {_BEFORE}\n"


class _Rolled:
    backend: str

    def setUp(self: Any) -> None:
        super().setUp()
        self.database = self.useFixture(database.DatabaseFixture(self.backend, migrated=False))
        settings = {"database_url": self.database.url, "rabbit_url": services.broker_url(), "machines": MACHINES}
        # Killed conductors are to be missed soon.
        self.site = lab.Lab(**settings, conductors=2, apis=2, options=lab.MORTAL)
        self.site.programs = environments.previous_release()
        self.useFixture(self.site)
        self.site.programs = lab.HERE
        self.tenants: list[upgrading.Tenant] = []
        self.resources = upgrading.Resources(self.site.user)
        self.begin()

    def begin(self: Any) -> None:
        """Make everything on the release before, and let users begin."""
        self.resources.make()
        self.resources.note()
        self.resources.user = upgrading.Patient(self.site.url)
        self.reader = upgrading.Reader(self.site.url, self.resources.paths())
        for index in range(MACHINES):
            uuid = self.site.enroll(index)
            self.site.make_available(uuid)
            self.tenants.append(upgrading.Tenant(self.site, index, uuid))
        for user in (*self.tenants, self.reader):
            user.start()
        self.wait_until_all_deployed("before the upgrade")

    def end(self: Any) -> None:
        """Check that nothing was lost, then remove what the release before has made."""
        for user in (*self.tenants, self.reader):
            user.leave()
        for tenant in self.tenants:
            self.assertIsNone(tenant.failure)
        self.assertEqual([], self.reader.failures)
        self.assertEqual([], self.resources.differences())
        self.resources.destroy()
        for name in self.site.conductors:
            self.assertEqual(1, queues.listeners(f"{transport.TOPIC}.{name}"))
        said = [f"{tenant.deployed} deployments, 503: {tenant.user.unavailable}" for tenant in self.tenants]
        text = "\n".join([*said, f"{self.reader.answers} answers"])
        self.addDetail("users", testtools.content.text_content(text))

    def online(self: Any) -> list[tuple[str, str]]:
        known = conductors.list_versions(self.database.db, self.database.conf.conductor.heartbeat_timeout)
        return [(conductor.release.rpartition(".")[0], conductor.rpc_version) for conductor in known]

    def wait_until_all_deployed(self: Any, when: str) -> None:
        """Wait until each machine was deployed from its beginning to its end."""
        goals = [tenant.deployed + 2 for tenant in self.tenants]

        def check() -> bool:
            for tenant in self.tenants:
                if tenant.failure:
                    raise AssertionError(f"{when}: {tenant.failure}\n{self.site.logs()}") from tenant.failure
            return all(tenant.deployed >= goal for tenant, goal in zip(self.tenants, goals, strict=True))

        self.site.eventually(check, f"every machine is deployed {when}")
        self.assertEqual([], self.reader.failures, when)

    def stay_side_by_side(self: Any) -> None:
        """Have conductors of both releases at work for some time."""
        until = time.monotonic() + SIDE_BY_SIDE_S
        self.wait_until_all_deployed("on conductors of two releases")
        self.calm_users(SIDE_BY_SIDE_S > 0)
        while time.monotonic() < until:
            self.wait_until_all_deployed("on conductors of two releases")
        self.calm_users(False)
        self.assertEqual({"0.2", "0.3"}, {release for release, _rpc in self.online()})

    def calm_users(self: Any, is_calm: bool) -> None:
        """Let users make pauses, or none."""
        for user in (*self.tenants, self.reader):
            user.is_calm = is_calm

    def command(self: Any, name: str, *arguments: str) -> str:
        """Run a command that must succeed; return what it prints."""
        process = self.site.make([name], "-".join((name, *arguments)), *arguments)
        process.start().wait()
        return str(process.log.read_text())

    def status(self: Any, name: str, *arguments: str) -> int:
        """Run a command; return its exit status."""
        process = self.site.make([name], "-".join((name, *arguments)), *arguments).start()
        self.site.eventually(lambda: not process.running, f"{name} ends")
        return int(process.stop())

    def replace(self: Any, process: lab.Process, programs: Any = lab.HERE, number: int = signal.SIGTERM) -> None:
        """End a process as a service manager does, or otherwise, and start it from another release."""
        expected = {0 if number == signal.SIGTERM else -number}
        if process.programs != lab.HERE:  # just after its start, release 0.2 may wait for a lock of its own for ever
            expected.add(-signal.SIGKILL)
        self.assertIn(process.stop(number), expected)
        process.programs = programs
        process.start()

    def replace_conductor(self: Any, name: str) -> None:
        self.replace(self.site.conductors[name])
        self.wait_until_all_serve()

    def replace_api(self: Any, name: str) -> None:
        """Take an API out of the balancer, as an operator would, and replace it."""
        self.site.balancer.targets.remove(self.site.addresses[name])
        self.replace(self.site.apis[name])
        self.return_api(name)

    def return_api(self: Any, name: str) -> None:
        self.wait_until_all_serve()
        self.site.balancer.targets.append(self.site.addresses[name])

    def wait_until_all_serve(self: Any) -> None:
        self.site.wait_until_served()
        for url in self.site.urls:
            self.site.eventually(lambda url=url: lab.User(url).get("/v1"), f"{url} answers")


class TestKilled(_Rolled, testtools.TestCase):
    """What is replaced is killed, the old one at work and the new one as it begins; caps are automatic."""

    backend = "mysql"

    def test_a_release_is_rolled_under_load(self) -> None:
        self.kill_expand()
        self.command("ingot-dbsync", "expand")
        self.command("ingot-dbsync", "add_key")
        self.command("ingot-status", "upgrade", "check")
        self.wait_until_all_deployed("on the database of the next release")
        first, second = self.site.conductors.values()
        self.kill_twice(first)
        self.wait_until_all_serve()
        self.stay_side_by_side()
        self.kill_twice(second)
        self.wait_until_all_serve()
        self.wait_until_all_deployed("on the next release's conductors")
        self.assertEqual([("0.3", versions.RPC_VERSION)] * len(self.site.conductors), self.online())
        for name in self.site.apis:
            self.site.balancer.targets.remove(self.site.addresses[name])
            self.site.eventually(lambda: self.is_idle(), "requests are done")
            self.kill_twice(self.site.apis[name])
            self.return_api(name)
        self.wait_until_all_deployed("on the next release")
        self.migrate()
        self.command("ingot-dbsync", "contract")
        for process in self.site.conductors.values():
            self.replace(process)  # the next one is stopped before this one is well up
        self.wait_until_all_deployed("after restarts back to back")
        self.end()

    def is_idle(self) -> bool:
        """Wait as long as a request may take that an API had when it left the balancer."""
        answers = self.reader.answers
        return bool(self.site.eventually(lambda: self.reader.answers > answers + 2, "readers are answered"))

    def kill_expand(self) -> None:
        """Kill what changes the schema, when it has done a part."""
        process = self.site.make(["ingot-dbsync"], "killed", "expand").start()

        def has_begun() -> bool:
            with self.database.db.single() as connection:
                return any(
                    index["name"] == "nodes_driver_id_idx" for index in sa.inspect(connection).get_indexes("nodes")
                )

        self.site.eventually(has_begun, "expand has begun")
        process.stop(signal.SIGKILL)

    def kill_twice(self, process: lab.Process) -> None:
        self.replace(process, number=signal.SIGKILL)
        self.site.eventually(lambda: process.running, f"{process.name} has begun")
        self.replace(process, number=signal.SIGKILL)

    def migrate(self) -> None:
        """Move data in parts; the status says when there is no more."""
        parts = 0
        while (status := self.status("ingot-dbsync", "online_data_migrations", "--max-count", "3")) == 1:
            parts += 1
        self.assertEqual(0, status)
        self.assertGreater(parts, 1)
        self.assertIn("Nothing is left to move.", self.command("ingot-dbsync", "online_data_migrations"))


class TestPinned(_Rolled, testtools.TestCase):
    """New services keep to the last release; a conductor goes back to it, and forward again."""

    backend = "postgresql"

    def test_a_conductor_goes_back_and_forward_under_load(self) -> None:
        self.command("ingot-dbsync", "expand")
        self.pin()
        first, second = self.site.conductors
        self.replace_conductor(first)
        self.stay_side_by_side()
        self.replace(self.site.conductors[first], environments.previous_release())
        self.wait_until_all_serve()
        self.assertEqual(["0.2", "0.2"], [release for release, _rpc in self.online()])
        self.wait_until_all_deployed("after a conductor went back")
        for name in (first, second):
            self.replace_conductor(name)
        for name in self.site.apis:
            self.replace_api(name)
        self.wait_until_all_deployed("on the next release, pinned")
        self.unpin()
        self.wait_until_all_deployed("on the next release")
        self.command("ingot-dbsync", "online_data_migrations")
        self.command("ingot-dbsync", "contract")
        self.end()

    def pin(self) -> None:
        for name in (*self.site.conductors, *self.site.apis):
            file = self.site.directory / f"{name}.conf"
            file.write_text(file.read_text().replace("[DEFAULT]\n", _PIN, 1))

    def unpin(self) -> None:
        self.command("ingot-dbsync", "add_key")
        for name in (*self.site.conductors, *self.site.apis):
            file = self.site.directory / f"{name}.conf"
            file.write_text(file.read_text().replace(_PIN, "[DEFAULT]\n"))
        self.assertEqual(1, self.status("ingot-status", "upgrade", "check"))  # there are secrets in plain text
        for name in self.site.conductors:
            self.replace_conductor(name)
        for name in self.site.apis:
            self.replace_api(name)
