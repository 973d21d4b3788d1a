"""A release is rolled over a working cluster: the database first, the conductors one by one, the APIs last.

Meanwhile users behind a load balancer deploy and undeploy the machines of a rack, all the time.
"""

import threading
import time
from typing import Any, ClassVar

import requests
import testtools

from ingot.db import conductors
from ingot.rpcapi import transport, versions
from tests import database
from tests.functional import queues, services
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran
from tests.gate import environments

MACHINES = 4


class Patient(lab.User):
    """A user that asks again after a 503, and opens a connection for each request: a balancer chooses the API."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._session.headers["Connection"] = "close"

    def request(self, method: str, path: str, body: Any = None) -> requests.Response:
        until = time.monotonic() + lab.PATIENCE
        while (answer := super().request(method, path, body)).status_code == 503 and time.monotonic() < until:
            time.sleep(0.2)
        return answer


class Tenant(threading.Thread):
    """Deploys and undeploys one machine until it is stopped, and counts the deployments."""

    def __init__(self, site: lab.Lab, index: int, uuid: str) -> None:
        super().__init__(daemon=True)
        self._site = site
        self._index = index
        self._user = Patient(site.url)
        self._ends = threading.Event()
        self.uuid = uuid
        self.deployed = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ends.is_set():
                self._once()
        except Exception as exc:  # noqa: BLE001 raised by the test's own thread
            self.failure = exc

    def _once(self) -> None:
        self._user.patch(f"/v1/nodes/{self.uuid}", {"/instance_info": self._site.image_info()})
        self._user.provision(self.uuid, "active")
        self._reach("active")
        steps = self._user.get(f"/ingot/v1/nodes/{self.uuid}/timeline")["steps"]
        if [step for step in ran(steps) if step in CORE] != CORE:
            raise AssertionError(f"steps of {self.uuid}: {steps}")
        if not self._site.holds_image(self._index):
            raise AssertionError(f"the disk of {self.uuid} does not hold the image")
        self.deployed += 1
        self._user.provision(self.uuid, "deleted")
        self._reach("available")

    def _reach(self, state: str) -> None:
        until = time.monotonic() + lab.PATIENCE
        while (node := self._user.node(self.uuid))["provision_state"] != state:
            if "failed" in node["provision_state"] or node["provision_state"] == "error" or time.monotonic() > until:
                raise AssertionError(f"{node['provision_state']} on the way to {state}: {node['last_error']}")
            time.sleep(0.2)

    def leave(self) -> None:
        self._ends.set()
        self.join(3 * lab.PATIENCE)


class _Rolled:
    backend: ClassVar[str]

    def setUp(self: Any) -> None:
        super().setUp()
        self.database = self.useFixture(database.DatabaseFixture(self.backend, migrated=False))
        settings = {"database_url": self.database.url, "rabbit_url": services.broker_url(), "machines": MACHINES}
        self.site = lab.Lab(**settings, conductors=2, apis=2)
        self.site.programs = environments.previous_release()
        self.useFixture(self.site)
        self.site.programs = lab.HERE
        self.tenants: list[Tenant] = []

    def test_a_release_is_rolled_under_load(self: Any) -> None:
        self.enroll_machines()
        self.wait_until_all_deployed("before the upgrade")
        self.upgrade_database()
        self.wait_until_all_deployed("on the database of the next release")
        for name in self.site.conductors:
            self.replace(self.site.conductors[name])
            self.wait_until_all_serve()
        self.wait_until_all_deployed("on the next release's conductors")
        self.assertEqual(
            [(versions.current_version(), versions.RPC_VERSION)] * len(self.site.conductors), self.online()
        )
        for name in self.site.apis:
            self.replace_api(name)
        self.wait_until_all_deployed("on the next release")
        self.command("ingot-dbsync", "online_data_migrations")
        self.command("ingot-dbsync", "contract")
        for process in self.site.conductors.values():
            self.replace(process)  # the next one is stopped before this one is well up
        self.wait_until_all_deployed("after restarts back to back")
        for tenant in self.tenants:
            tenant.leave()
            self.assertIsNone(tenant.failure)
        for name in self.site.conductors:
            self.assertEqual(1, queues.listeners(f"{transport.TOPIC}.{name}"))

    def online(self: Any) -> list[tuple[str, str]]:
        known = conductors.list_versions(self.database.db, self.database.conf.conductor.heartbeat_timeout)
        return [(conductor.release, conductor.rpc_version) for conductor in known]

    def enroll_machines(self: Any) -> None:
        for index in range(MACHINES):
            uuid = self.site.enroll(index)
            self.site.make_available(uuid)
            self.tenants.append(Tenant(self.site, index, uuid))
        for tenant in self.tenants:
            tenant.start()

    def wait_until_all_deployed(self: Any, when: str) -> None:
        """Wait until each machine was deployed from its beginning to its end."""
        goals = [tenant.deployed + 2 for tenant in self.tenants]

        def check() -> bool:
            for tenant in self.tenants:
                if tenant.failure:
                    raise AssertionError(f"{when}: {tenant.failure}\n{self.site.logs()}") from tenant.failure
            return all(tenant.deployed >= goal for tenant, goal in zip(self.tenants, goals, strict=True))

        self.site.eventually(check, f"every machine is deployed {when}")

    def upgrade_database(self: Any) -> None:
        self.command("ingot-dbsync", "upgrade")
        self.command("ingot-dbsync", "add_key")
        self.command("ingot-status", "upgrade", "check")

    def command(self: Any, name: str, *arguments: str) -> None:
        self.site.make([name], name, *arguments).start().wait()

    def replace(self: Any, process: lab.Process) -> None:
        """End a process as a service manager does, and start it from the next release."""
        self.assertEqual(0, process.stop())
        process.programs = lab.HERE
        process.start()

    def replace_api(self: Any, name: str) -> None:
        """Take an API out of the balancer, as an operator would, and replace it."""
        self.site.balancer.targets.remove(self.site.addresses[name])
        self.replace(self.site.apis[name])
        self.wait_until_all_serve()
        self.site.balancer.targets.append(self.site.addresses[name])

    def wait_until_all_serve(self: Any) -> None:
        self.site.wait_until_served()
        for url in self.site.urls:
            self.site.eventually(lambda url=url: lab.User(url).get("/v1"), f"{url} answers")


class TestOnMariaDB(_Rolled, testtools.TestCase):
    backend = "mysql"


class TestOnPostgreSQL(_Rolled, testtools.TestCase):
    backend = "postgresql"
