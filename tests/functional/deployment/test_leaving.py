"""Conductors that leave a cluster at work: requests are answered, deployments end well, no step runs twice."""

import collections
import threading
import time
from typing import Any

import testtools

from tests import database
from tests.functional import services
from tests.functional.deployment import lab
from tests.functional.deployment.core_steps import CORE, ran

MACHINES = 4
SLOW = {"command": "deploy.execute_deploy_step", "seconds": 3}
"""Keeps a conductor in a step for a while, on each machine."""


class TestLeaving(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        url = self.useFixture(database.DatabaseFixture("mysql", migrated=False)).url
        settings: dict[str, Any] = {"database_url": url, "rabbit_url": services.broker_url()}
        self.bench = self.useFixture(lab.Lab(**settings, conductors=2, machines=MACHINES))
        self.uuids = [self.bench.enroll(number) for number in range(MACHINES)]
        for uuid in self.uuids:
            self.bench.user.patch(f"/v1/nodes/{uuid}", {"/automated_clean": False})
            self.bench.make_available(uuid)
            self.bench.set_image(uuid)

    def deploy_all(self) -> str:
        """Deploy all machines; return the conductor that owns most of them once it is in the middle of a step."""
        owners = collections.Counter(self.bench.user.node(uuid)["conductor"] for uuid in self.uuids)
        ((busiest, _count),) = owners.most_common(1)
        for machine in self.bench.rack.machines:
            self.bench.rack.control.order_fault(machine["name"], "slow_answer", SLOW, times=1)
        for uuid in self.uuids:
            self.bench.user.provision(uuid, "active")

        def writes() -> bool:
            now = [self.bench.user.node(uuid) for uuid in self.uuids]
            writing = [node for node in now if node["deploy_step"].get("step") == "write_image"]
            return any(node["reservation"] == busiest for node in writing)

        self.bench.eventually(writes, f"{busiest} asks an agent to write")
        return busiest

    def ask_while(self, leaving: threading.Thread) -> None:
        """Send a request to the owner of each machine for as long as a conductor leaves.

        A request may reach a conductor that has just left: that is a 503, and a repeated request succeeds.
        """
        leaving.start()
        until = time.monotonic() + lab.PATIENCE
        while leaving.is_alive() and time.monotonic() < until:
            for uuid in self.uuids:
                while (answer := self.bench.user.request("GET", f"/v1/nodes/{uuid}/validate")).status_code == 503:
                    self.assertLess(time.monotonic(), until, answer.text)
                self.assertEqual(200, answer.status_code, answer.text)
        leaving.join()

    def assert_each_step_ran_once(self) -> None:
        for number, uuid in enumerate(self.uuids):
            self.bench.reach(uuid, "active")
            self.assertEqual(CORE, ran(self.bench.step_runs(uuid)))
            self.assertEqual({(1, "done")}, {(row["attempt"], row["state"]) for row in self.bench.step_runs(uuid)})
            self.assertTrue(self.bench.holds_image(number))

    def test_one_that_is_stopped_hands_over(self) -> None:
        process = self.bench.conductors[self.deploy_all()]
        codes: list[int] = []
        self.ask_while(threading.Thread(target=lambda: codes.append(process.stop())))
        self.assertEqual([0], codes)
        self.assert_each_step_ran_once()

    def test_one_that_is_drained_hands_over_and_comes_back(self) -> None:
        gone = self.deploy_all()
        drain = self.command("drain", gone, "--wait", "100").start()
        self.ask_while(threading.Thread(target=drain.wait))
        drain.wait()  # what it raises in a thread is not seen
        listed = self.bench.user.get("/v1/conductors?detail=True")["conductors"]
        (drained,) = (one for one in listed if one["hostname"] == gone)
        self.assertEqual((True, []), (drained["alive"], drained["drivers"]))
        self.assert_each_step_ran_once()
        self.bench.eventually(lambda: gone not in self.owners(), "the others own all nodes")
        self.command("undrain", gone).start().wait()
        self.bench.eventually(lambda: gone in self.owners(), "it has nodes again")

    def command(self, *words: str) -> lab.Process:
        return self.bench.make(["ingot-conductor"], f"operator-{words[0]}", *words)

    def owners(self) -> set[str]:
        return {self.bench.user.node(uuid)["conductor"] for uuid in self.uuids}


class TestWorkers(testtools.TestCase):
    def test_several_run_on_one_host_and_stop_with_their_supervisor(self) -> None:
        url = self.useFixture(database.DatabaseFixture("mysql", migrated=False)).url
        two = {"conductor": {"workers": 2}}
        bench = self.useFixture(lab.Lab(database_url=url, rabbit_url=services.broker_url(), options=two))
        ((name, supervisor),) = bench.conductors.items()

        def alive() -> set[str]:
            listed = bench.user.get("/v1/conductors")["conductors"]
            return {one["hostname"] for one in listed if one["alive"]}

        bench.eventually(lambda: alive() == {name, f"{name}-2"}, "both are alive")
        uuids = [bench.user.post("/v1/nodes", {"driver": "fake-hardware"})["uuid"] for _ in range(4)]
        for uuid in uuids:
            self.assertIn(bench.user.node(uuid)["conductor"], alive())
            bench.make_available(uuid)
        self.assertEqual(0, supervisor.stop())
        self.assertEqual(set(), alive())
