"""What an operator can read afterwards about a deployment that failed on the machine."""

import io
import tarfile
from typing import Any, ClassVar

import requests
import testtools

from tests.functional.deployment import lab

MACHINE = "machine-0"


class ExplainingCase(testtools.TestCase):
    options: ClassVar[dict[str, dict[str, Any]]] = {}

    def setUp(self) -> None:
        super().setUp()
        self.bench = self.useFixture(lab.Lab(options=self.options))
        self.uuid = self.bench.enroll()
        self.bench.make_available(self.uuid)
        self.bench.set_image(self.uuid)
        self.own = f"/ingot/v1/nodes/{self.uuid}"


class TestExplaining(ExplainingCase):
    def fail_in_band(self) -> None:
        self.bench.rack.control.order_fault(MACHINE, "image_404")
        self.bench.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "deploy failed")

    def test_a_step_that_fails_on_the_machine_leaves_logs_runs_and_history(self) -> None:
        user = self.bench.user
        self.assertEqual([], user.get(f"{self.own}/logs")["logs"])
        self.fail_in_band()

        (log,) = user.get(f"{self.own}/logs")["logs"]
        deployment, cleaning, _verification = user.get(f"{self.own}/runs")["runs"]
        self.assertEqual(("deploy", deployment["run"]), (log["flow"], log["run"]))
        self.assertEqual(("failed", "done"), (deployment["state"], cleaning["state"]))

        answer = requests.get(log["links"][0]["href"], timeout=30)
        self.assertEqual("application/gzip", answer.headers["Content-Type"])
        self.assertIn("attachment", answer.headers["Content-Disposition"])
        with tarfile.open(fileobj=io.BytesIO(answer.content), mode="r:gz") as archive:
            journal = archive.extractfile("journal")
            assert journal is not None
            text = journal.read().decode()
        self.assertIn("write_image", text)
        self.assertIn("404", text)

        entries = [
            entry
            for entry in user.get(f"/v1/nodes/{self.uuid}/history?detail=true")["history"]
            if entry["event_type"] == "step" and "flow deploy" in entry["event"]
        ]
        self.assertEqual(["prepare", "deploy", "write_image"], [
            entry["event"].split()[1].partition(".")[2] for entry in entries])  # fmt: skip
        self.assertEqual(["INFO", "INFO", "ERROR"], [entry["severity"] for entry in entries])
        self.assertIn("404", entries[-1]["event"])
        self.assertIsInstance(entries[1]["duration_seconds"], int)

    def test_the_plan_is_what_happens_as_far_as_it_is_known(self) -> None:
        user = self.bench.user
        plan = user.get(f"{self.own}/plan?flow=deploy")
        self.assertEqual((False, []), (plan["in_band_steps_known"], plan["errors"]))
        user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        names = ("interface", "step", "priority", "args", "origin")
        self.assertEqual(
            [[step[name] for name in names] for step in plan["steps"]],
            [[step[name] for name in names] for step in self.bench.step_runs(self.uuid)],
        )
        self.assertEqual([], user.get(f"{self.own}/logs")["logs"])


class TestLogsOfEveryRun(ExplainingCase):
    options: ClassVar[dict[str, dict[str, Any]]] = {
        "agent": {"deploy_logs_collect": "always", "deploy_logs_max_per_node": 2}
    }

    def test_they_are_collected_before_the_agent_ends_and_the_oldest_go(self) -> None:
        def logs() -> list[tuple[str, str]]:
            listed = self.bench.user.get(f"{self.own}/logs?sort_key=created_at")["logs"]
            return [(log["flow"], log["run"]) for log in listed]

        (cleaning,) = logs()
        self.bench.user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        deployment = ("deploy", self.bench.user.get(f"{self.own}/runs?limit=1")["runs"][0]["run"])
        self.assertEqual([cleaning, deployment], logs())
        self.bench.user.provision(self.uuid, "deleted")
        self.bench.reach(self.uuid, "available")
        self.assertEqual((deployment, "automated_clean"), (logs()[0], logs()[1][0]))
