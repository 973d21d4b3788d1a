"""Forty users ask for forty machines of a cluster, and a conductor is killed among them: each gets one, and no two the
same."""

import signal
from concurrent import futures
from typing import Any, ClassVar

import testtools

from ingot.common import states
from tests import database
from tests.functional import services
from tests.functional.deployment import lab

USERS = 40


class _OnThreeConductors:
    """The tests; the databases are the classes below."""

    backend: ClassVar[str]

    def test_each_gets_a_machine_of_its_own_though_a_conductor_is_killed(self: Any) -> None:
        fresh = self.useFixture(database.DatabaseFixture(self.backend, migrated=False))
        bench = self.useFixture(lab.Lab(fresh.url, services.broker_url(), conductors=3, machines=1, options=lab.MORTAL))
        machines = {database.make_node(fresh.db, resource_class="fast").uuid for _each in range(USERS)}

        def ask(number: int) -> str:
            user = lab.User(bench.url)
            made = user.post("/v1/allocations", {"resource_class": "fast", "name": f"a{number}"})
            self.assertIn(made["state"], ("allocating", "active"))  # a sweep may be faster than the answer
            if number == USERS // 2:
                list(bench.conductors.values())[1].stop(signal.SIGKILL)
            return str(made["uuid"])

        with futures.ThreadPoolExecutor(8) as pool:
            asked = set(pool.map(ask, range(USERS)))

        def all_served() -> list[dict[str, Any]] | None:
            found: list[dict[str, Any]] = bench.user.get("/v1/allocations")["allocations"]
            return found if all(one["state"] != "allocating" for one in found) else None

        found = bench.eventually(all_served, "no allocation waits any more")
        self.assertEqual([], [one["last_error"] for one in found if one["state"] != "active"])
        self.assertEqual((asked, machines), ({one["uuid"] for one in found}, {one["node_uuid"] for one in found}))
        nodes = bench.user.get("/v1/nodes/detail")["nodes"]
        self.assertEqual(asked, {node["instance_uuid"] for node in nodes if node["resource_class"] == "fast"})
        self.assertEqual({states.AVAILABLE}, {node["provision_state"] for node in nodes})


class TestOnMariaDB(_OnThreeConductors, testtools.TestCase):
    backend = "mysql"


class TestOnPostgreSQL(_OnThreeConductors, testtools.TestCase):
    backend = "postgresql"
