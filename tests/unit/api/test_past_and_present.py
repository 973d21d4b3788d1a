"""History and timeline of a node."""

from typing import Any

import sqlalchemy as sa

from ingot.common import clock
from ingot.db import models, nodes
from tests import api_case, database

RUN = "11111111-1111-1111-1111-111111111111"
OLD = "22222222-2222-2222-2222-222222222222"


def planned(step: str, priority: int) -> dict[str, Any]:
    return {"interface": "deploy", "step": step, "priority": priority, "args": {}, "origin": "driver"}


class PastCase(api_case.ApiCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = database.make_node(self.db, name="n")

    def write(self, model: type[models.Base], *rows: dict[str, Any]) -> None:
        with self.db.single() as connection:
            connection.execute(sa.insert(models.table(model)), [{"node_id": self.known.id, **row} for row in rows])


class History(PastCase):
    def setUp(self) -> None:
        super().setUp()
        entry = {"severity": "ERROR", "event_type": "provisioning", "conductor": "c", "state": "deploying"}
        self.uuids = [f"{number}0000000-0000-0000-0000-000000000000" for number in range(3)]
        self.write(models.NodeHistory, *({**entry, "uuid": uuid, "event": "x" * 300} for uuid in self.uuids))

    def test_is_listed_short_and_in_detail(self) -> None:
        entry = self.good("GET", "/v1/nodes/n/history")["history"][0]
        self.assertEqual({"uuid", "created_at", "severity", "event", "links"}, set(entry))
        self.assertEqual("x" * 251 + "...", entry["event"])
        detailed = self.good("GET", "/v1/nodes/n/history?detail=true")["history"][0]
        self.assertEqual(("x" * 300, "deploying"), (detailed["event"], detailed["state"]))

    def test_comes_page_by_page(self) -> None:
        page = self.good("GET", "/v1/nodes/n/history?limit=2")
        rest = self.good("GET", page["next"].removeprefix("http://localhost"))
        self.assertEqual(self.uuids, [entry["uuid"] for entry in page["history"] + rest["history"]])

    def test_one_entry(self) -> None:
        entry = self.good("GET", f"/v1/nodes/n/history/{self.uuids[1]}", version="1.114")
        self.assertEqual("provisioning", entry["event_type"])
        self.assertNotIn("state", entry)
        self.node(name="other")
        self.refused(404, "GET", f"/v1/nodes/other/history/{self.uuids[1]}")


class Timeline(PastCase):
    def attempt(self, step: str, index: int, state: str = "done", **values: Any) -> dict[str, Any]:
        started = clock.after(-60)
        return {
            "run_id": RUN, "flow": "deploy", "step_index": index, "attempt": 1, "interface": "deploy", "step": step,
            "args": {}, "priority": 100 - index, "origin": "driver", "state": state, "started_at": started,
            "finished_at": clock.after(-30), "conductor": "conductor-1", "error": None, **values,
        }  # fmt: skip

    def timeline(self, query: str = "") -> Any:
        return self.good("GET", f"/ingot/v1/nodes/n/timeline{query}", version=None)

    def present(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))

    def test_of_a_node_that_never_did_anything_is_empty(self) -> None:
        timeline = self.timeline()
        self.assertEqual((None, []), (timeline["run"], timeline["steps"]))

    def test_shows_what_ran_what_runs_and_what_is_to_come(self) -> None:
        plan = [planned("deploy", 100), planned("write_image", 80), planned("boot_instance", 20)]
        self.write(models.StepRun, self.attempt("deploy", 0))
        self.present(
            flow="deploy", run_id=RUN, step_state="waiting", step_attempt=2, step_started_at=clock.after(-5),
            driver_internal_info={"deploy_steps": plan, "deploy_step_index": 1}, reservation="conductor-1",
        )  # fmt: skip
        steps = self.timeline()["steps"]
        self.assertEqual(
            [("deploy", "done", 1), ("write_image", "waiting", 2), ("boot_instance", "planned", 0)],
            [(step["step"], step["state"], step["attempt"]) for step in steps],
        )
        self.assertAlmostEqual(30, steps[0]["duration"], delta=1)
        self.assertAlmostEqual(5, steps[1]["duration"], delta=1)
        self.assertEqual("conductor-1", steps[0]["conductor"])

    def test_of_the_latest_run_or_a_named_one(self) -> None:
        old = self.attempt("erase_devices", 0, run_id=OLD, flow="automated_clean", args={"password": "x"})
        self.write(models.StepRun, old, self.attempt("deploy", 0, "failed", error="disk on fire"))
        latest = self.timeline()
        self.assertEqual((RUN, "disk on fire"), (latest["run"], latest["steps"][0]["error"]))
        named = self.timeline(f"?run={OLD}")
        self.assertEqual(("automated_clean", {"password": "******"}), (named["flow"], named["steps"][0]["args"]))
