"""Processes are killed or frozen, database and broker are away for a while: what was accepted is done, nothing twice.

tests/gate/faults does this at random and under load; here each happens once, at the moment where it hurts most.
"""

import concurrent.futures
import signal
import urllib.parse
from typing import Any

import requests
import sqlalchemy as sa
import testtools

from tests import database
from tests.functional import proxy, services
from tests.functional.deployment import lab

SLOW = {"command": "deploy.execute_deploy_step", "seconds": 30}


class OutageCase(testtools.TestCase):
    """``self.database`` and ``self.broker`` are the lines to both, which can be cut or held."""

    def make_lab(self, **settings: Any) -> lab.Lab:
        url = sa.make_url(self.useFixture(database.DatabaseFixture("mysql", migrated=False)).url)
        self.database = self.useFixture(proxy.Proxy((url.host, url.port)))
        broker = urllib.parse.urlsplit(services.broker_url())
        self.broker = self.useFixture(proxy.Proxy((broker.hostname, broker.port)))
        place = broker.netloc.replace(f"{broker.hostname}:{broker.port}", f"127.0.0.1:{self.broker.port}")
        made: lab.Lab = self.useFixture(
            lab.Lab(
                database_url=url.set(host="127.0.0.1", port=self.database.port).render_as_string(hide_password=False),
                rabbit_url=broker._replace(netloc=place).geturl(),
                **settings,
            )
        )
        return made

    def writing(self, bench: lab.Lab) -> tuple[str, str]:
        """Return a node whose deployment waits for its slow agent, and the conductor that waits."""
        uuid = bench.enroll()
        bench.make_available(uuid)
        bench.set_image(uuid)
        bench.rack.control.order_fault("machine-0", "slow_answer", SLOW, times=1)
        bench.user.provision(uuid, "active")

        def asked_to_write() -> str | None:
            node = bench.user.node(uuid)
            return node["reservation"] if node["deploy_step"].get("step") == "write_image" else None

        return uuid, bench.eventually(asked_to_write, "a conductor asks the agent to write")

    def ended_well(self, bench: lab.Lab, uuid: str) -> list[dict[str, Any]]:
        """Return the step runs of a deployment that has ended well, each step of it once."""
        self.assertIsNone(bench.reach(uuid, "active")["last_error"])
        step_runs = bench.step_runs(uuid)
        done = [row["step"] for row in step_runs if row["state"] == "done"]
        self.assertEqual(sorted(set(done)), sorted(done))
        self.assertTrue(bench.holds_image(0))
        return step_runs


class TestKilledConductor(OutageCase):
    def test_is_replaced_because_its_witness_tells_of_its_death(self) -> None:
        """Missing heartbeats would tell of it after an hour."""
        bench = self.make_lab(conductors=2, options={"conductor": {"heartbeat_timeout": 3600}})
        uuid, killed = self.writing(bench)
        bench.conductors[killed].stop(signal.SIGKILL)
        attempts = [row for row in self.ended_well(bench, uuid) if row["step"] == "write_image"]
        self.assertEqual(["interrupted", "done"], [row["state"] for row in attempts])
        self.assertNotEqual(killed, attempts[-1]["conductor"])
        bench.conductors[killed].start()
        bench.wait_until_served()


class TestFrozenConductor(OutageCase):
    def test_is_replaced_and_does_nothing_more_when_it_is_thawed(self) -> None:
        never = {"DEFAULT": {"rpc_response_timeout": 900}}  # which is no limit that would end a call in time
        bench = self.make_lab(conductors=2, options={**lab.MORTAL, **never})
        uuid, frozen = self.writing(bench)
        bench.conductors[frozen].send(signal.SIGSTOP)
        answer = bench.user.request("GET", f"/v1/nodes/{uuid}/management/boot_device")
        self.assertIn(answer.status_code, (503, 200), answer.text)  # it may be known already who is there
        attempts = [row for row in self.ended_well(bench, uuid) if row["step"] == "write_image"]
        self.assertEqual(["interrupted", "done"], [row["state"] for row in attempts])
        self.assertNotEqual(frozen, attempts[-1]["conductor"])
        before = bench.user.node(uuid)
        bench.conductors[frozen].send(signal.SIGCONT)
        log = bench.conductors[frozen].log
        bench.eventually(lambda: "is no longer held by" in log.read_text(errors="replace"), "it finds its lock gone")
        for name in ("provision_state", "power_state", "last_error", "provision_updated_at"):
            self.assertEqual(before[name], bench.user.node(uuid)[name], name)


class TestDatabaseAway(OutageCase):
    def test_requests_are_503_and_what_ran_goes_on(self) -> None:
        bench = self.make_lab(conductors=2)
        uuid, holder = self.writing(bench)
        self.database.cut()
        for method, path, body in (
            ("GET", f"/v1/nodes/{uuid}", None),
            ("PUT", f"/v1/nodes/{uuid}/states/power", {"target": "power on"}),
        ):
            answer = bench.user.request(method, path, body)
            self.assertEqual(503, answer.status_code, answer.text)
            self.assertIn("Retry-After", answer.headers)
        log = bench.conductors[holder].log
        bench.eventually(lambda: "was put off" in log.read_text(errors="replace"), "the conductor finds it away")
        self.database.restore()
        self.ended_well(bench, uuid)


class TestBrokerAway(OutageCase):
    def test_what_is_accepted_is_done_at_once_or_later(self) -> None:
        bench = self.make_lab()
        uuid = bench.enroll()
        for away, back, verb, state in (
            (self.broker.cut, self.broker.restore, "manage", "manageable"),
            (self.broker.hold, self.broker.resume, "provide", "available"),
        ):
            away()
            bench.user.provision(uuid, verb)
            back()
            bench.reach(uuid, state)
        bench.eventually(lambda: self.answers(bench, uuid), "calls are answered again")

    def answers(self, bench: lab.Lab, uuid: str) -> bool:
        return bench.user.request("GET", f"/v1/nodes/{uuid}/management/boot_device").status_code == 200


class TestStop(OutageCase):
    def test_ends_in_time_though_database_and_broker_are_away(self) -> None:
        bench = self.make_lab(options={"conductor": {"graceful_shutdown_timeout": 1}})
        bench.make_available(bench.enroll())  # so it has begun
        self.database.hold()
        self.broker.hold()
        (process,) = bench.conductors.values()
        self.assertEqual(0, process.stop())


class TestKilledAPI(OutageCase):
    MACHINES = 12

    def test_each_request_is_accepted_or_was_never_made(self) -> None:
        bench = self.make_lab(apis=2)
        uuids = [
            bench.user.post("/v1/nodes", {"driver": "ipmi", "driver_info": bench.access()})["uuid"]
            for _ in range(self.MACHINES)
        ]
        with concurrent.futures.ThreadPoolExecutor(self.MACHINES) as users:
            answers = [users.submit(self.manage, bench, uuid) for uuid in uuids]
            bench.apis["api-0"].stop(signal.SIGKILL)
            cut_off = [uuid for uuid, answer in zip(uuids, answers, strict=True) if not answer.result()]
        for uuid in cut_off:  # a client without an answer reads the node and asks again
            bench.eventually(lambda uuid=uuid: self.managed(bench, uuid) or self.manage(bench, uuid), "it is accepted")
        for uuid in uuids:
            self.assertIsNone(bench.reach(uuid, "manageable")["last_error"])
            history = bench.user.get(f"/v1/nodes/{uuid}/history?detail=true")["history"]
            ended = [entry for entry in history if entry["event_type"] == "provisioning"]
            self.assertEqual(1, len(ended), history)

    def manage(self, bench: lab.Lab, uuid: str) -> bool:
        """Return whether the request was accepted, as far as the user knows."""
        user = lab.User(bench.url)
        try:
            return user.request("PUT", f"/v1/nodes/{uuid}/states/provision", {"target": "manage"}).status_code == 202
        except requests.ConnectionError:
            return False

    def managed(self, bench: lab.Lab, uuid: str) -> bool:
        return bench.user.node(uuid)["provision_state"] != "enroll"
