"""A conductor is killed or frozen: what is accepted meanwhile is done afterwards, and its start interrupts nothing."""

import signal

import testtools

from tests import database
from tests.functional import services
from tests.functional.deployment import lab

_NODES = 30
_RESET = {"interface": "bios", "step": "factory_reset", "args": {}, "order": 1}
_KINDS = ("bios", "boot", "deploy", "inspect", "management", "power", "raid", "rescue")
_FAKES = {f"{kind}_interface": "fake" for kind in _KINDS}


class TestRestart(testtools.TestCase):
    def test_steps_that_must_not_be_repeated_are_not_interrupted_by_the_start(self) -> None:
        """Wake-ups of requests that were accepted while there was no conductor wait for it in its queue."""
        stored = self.useFixture(database.DatabaseFixture("mysql", migrated=False))
        bench = self.useFixture(lab.Lab(stored.url, services.broker_url()))
        uuids = [bench.user.post("/v1/nodes", {"driver": "fake-hardware", **_FAKES})["uuid"] for _ in range(_NODES)]
        for verb, state in (("manage", "manageable"), ("adopt", "active")):
            for uuid in uuids:
                bench.user.provision(uuid, verb)
            for uuid in uuids:
                bench.reach(uuid, state)
        (conductor,) = bench.conductors.values()
        conductor.stop(signal.SIGKILL)
        request_ids = []
        for uuid in uuids:
            body = {"target": "service", "service_steps": [_RESET]}
            answer = bench.user.request("PUT", f"/v1/nodes/{uuid}/states/provision", body)
            self.assertEqual(202, answer.status_code, answer.text)
            request_ids.append(answer.headers["OpenStack-Request-Id"])
        conductor.start()
        for uuid in uuids:
            bench.reach(uuid, "active")
        for uuid in uuids:
            ended = [(row["step"], row["attempt"], row["state"]) for row in bench.step_runs(uuid)]
            self.assertIn(("factory_reset", 1, "done"), ended)
        log = conductor.log.read_text(errors="replace")
        self.assertEqual([], [own_id for own_id in request_ids if own_id not in log])


class TestFrozen(testtools.TestCase):
    def test_a_deployment_is_accepted_while_the_conductor_does_not_answer(self) -> None:
        """The request is checked when its flow begins, with the message that the user would have had."""
        stored = self.useFixture(database.DatabaseFixture("postgresql", migrated=False))
        bench = self.useFixture(lab.Lab(stored.url, services.broker_url()))
        good, bad = (bench.user.post("/v1/nodes", {"driver": "fake-hardware", **_FAKES})["uuid"] for _ in range(2))
        for verb, state in (("manage", "manageable"), ("provide", "available")):
            for uuid in (good, bad):
                bench.user.provision(uuid, verb)
                bench.reach(uuid, state)
        bench.user.patch(f"/v1/nodes/{bad}", {"/instance_info": {"traits": ["CUSTOM_NONE"]}})
        refused = bench.user.request("PUT", f"/v1/nodes/{bad}/states/provision", {"target": "active"})
        self.assertEqual(400, refused.status_code, refused.text)
        (conductor,) = bench.conductors.values()
        conductor.send(signal.SIGSTOP)
        for uuid in (good, bad):
            bench.user.provision(uuid, "active")
        asked = bench.user.request("GET", f"/v1/nodes/{good}/management/boot_device")
        self.assertEqual(503, asked.status_code, asked.text)
        self.assertIn("has not answered lately", asked.text)
        conductor.send(signal.SIGCONT)
        bench.reach(good, "active")
        self.assertIn("CUSTOM_NONE", bench.reach(bad, "deploy failed")["last_error"])
