"""What an operator can read afterwards about a deployment that failed on the machine."""

import io
import tarfile

import requests
import testtools

from tests.functional.deployment import lab

MACHINE = "machine-0"


class TestExplaining(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bench = self.useFixture(lab.Lab())
        self.uuid = self.bench.enroll()
        self.bench.make_available(self.uuid)
        self.bench.set_image(self.uuid)
        self.own = f"/ingot/v1/nodes/{self.uuid}"

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
            told = journal.read().decode()
        self.assertIn("write_image", told)
        self.assertIn("404", told)

        entries = [
            entry
            for entry in user.get(f"/v1/nodes/{self.uuid}/history?detail=true")["history"]
            if entry["event_type"] == "step" and "flow deploy" in entry["event"]
        ]
        self.assertEqual(["prepare", "deploy", "write_image"], [
            entry["event"].split()[1].partition(".")[2] for entry in entries])  # fmt: skip
        self.assertEqual(["INFO", "INFO", "ERROR"], [entry["severity"] for entry in entries])
        self.assertIn("404", entries[-1]["event"])
        self.assertGreater(entries[1]["duration_seconds"], 0)

    def test_the_plan_is_what_happens_as_far_as_it_is_known(self) -> None:
        user = self.bench.user
        plan = user.get(f"{self.own}/plan?flow=deploy")
        self.assertEqual((False, []), (plan["in_band_steps_known"], plan["errors"]))
        user.provision(self.uuid, "active")
        self.bench.reach(self.uuid, "active")
        names = ("interface", "step", "priority", "args", "origin")
        self.assertEqual(
            [[step[name] for name in names] for step in plan["steps"]],
            [[step[name] for name in names] for step in self.bench.journal(self.uuid)],
        )
        self.assertEqual([], user.get(f"{self.own}/logs")["logs"])
