"""The same deployment with an API and two conductors as processes of their own, on RabbitMQ and a shared database."""

import signal
import urllib.parse
from typing import Any, ClassVar

import testtools

from tests import database
from tests.functional import proxy, services
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran


class _OnTwoConductors:
    """The tests; the databases are the classes below."""

    backend: ClassVar[str]

    def make_lab(self: Any, **settings: Any) -> lab.Lab:
        url = self.useFixture(database.DatabaseFixture(self.backend, migrated=False)).url
        made: lab.Lab = self.useFixture(
            lab.Lab(database_url=url, rabbit_url=services.broker_url(), conductors=2, **settings)
        )
        return made

    def test_machines_become_active(self: Any) -> None:
        bench = self.make_lab(machines=4)
        uuids = [bench.enroll(number) for number in range(4)]
        owners = {bench.user.node(uuid)["conductor"] for uuid in uuids}
        self.assertLessEqual(owners, set(bench.conductors))
        for uuid in uuids:
            bench.user.provision(uuid, "manage")
        for uuid in uuids:
            bench.reach(uuid, "manageable")
            bench.user.provision(uuid, "provide")
        for uuid in uuids:
            bench.reach(uuid, "available")
            bench.set_image(uuid)
            bench.user.provision(uuid, "active")
        for number, uuid in enumerate(uuids):
            bench.reach(uuid, "active")
            self.assertEqual(CORE, ran(bench.step_runs(uuid)))
            self.assertTrue(bench.holds_image(number))

    def test_the_other_conductor_finishes_what_a_killed_one_began(self: Any) -> None:
        bench = self.make_lab(options=lab.MORTAL)
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        slow = {"command": "deploy.execute_deploy_step", "seconds": 50}
        bench.rack.control.order_fault("machine-0", "slow_answer", slow, times=1)
        bench.user.provision(uuid, "active")

        def asked_to_write() -> str | None:
            node = bench.user.node(uuid)
            writing = node["deploy_step"].get("step") == "write_image"
            return node["reservation"] if writing else None

        victim = bench.eventually(asked_to_write, "a conductor asks the agent to write")
        bench.conductors[victim].stop(signal.SIGKILL)
        bench.reach(uuid, "active")
        attempts = [row for row in bench.step_runs(uuid) if row["step"] == "write_image"]
        self.assertEqual(["interrupted", "done"], [row["state"] for row in attempts])
        self.assertNotEqual(victim, attempts[-1]["conductor"])
        self.assertTrue(bench.holds_image(0))


class TestOnMariaDB(_OnTwoConductors, testtools.TestCase):
    backend = "mysql"


class TestOnPostgreSQL(_OnTwoConductors, testtools.TestCase):
    backend = "postgresql"


class TestWithoutBroker(testtools.TestCase):
    def test_what_is_accepted_is_done(self) -> None:
        broker = urllib.parse.urlsplit(services.broker_url())
        line = self.useFixture(proxy.Proxy((broker.hostname, broker.port)))
        place = broker.netloc.replace(f"{broker.hostname}:{broker.port}", f"127.0.0.1:{line.port}")
        url = self.useFixture(database.DatabaseFixture("mysql", migrated=False)).url
        bench = self.useFixture(lab.Lab(database_url=url, rabbit_url=broker._replace(netloc=place).geturl()))
        uuid = bench.enroll()
        bench.process.stop()
        line.cut()
        bench.process.start()  # which has no connection to the broker yet
        bench.wait_until_served()
        bench.user.provision(uuid, "manage")
        bench.reach(uuid, "manageable")
        line.restore()
        bench.user.provision(uuid, "provide")
        bench.reach(uuid, "available")
