"""History, timeline, runs and agent logs of a node."""

from typing import Any

import sqlalchemy as sa

from ingot.common import clock
from ingot.db import models, node_history, nodes
from tests import api_case, database, sql_counter

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


class OwnHistory(PastCase):
    """History as the console reads it."""

    def setUp(self) -> None:
        super().setUp()
        entry = {"severity": "INFO", "event_type": "provisioning", "conductor": "c", "event": "x" * 300, "user": "u"}
        self.uuids = [f"{number}0000000-0000-0000-0000-000000000000" for number in range(3)]
        requests = ("req-1", None, "req-3")
        self.write(models.NodeHistory, *({**entry, "uuid": uuid, "request_id": request} for uuid, request in zip(
            self.uuids, requests, strict=True)))  # fmt: skip

    def test_has_whole_entries_with_the_ids_of_requests(self) -> None:
        page = self.good("GET", "/ingot/v1/nodes/n/history?sort_key=created_at&sort_dir=desc&limit=2", version=None)
        rest = self.good("GET", page["next"].removeprefix("http://localhost"), version=None)
        entries = page["history"] + rest["history"]
        self.assertEqual({"req-1", None, "req-3"}, {entry["request_id"] for entry in entries})
        self.assertEqual({"x" * 300}, {entry["event"] for entry in entries})
        self.assertEqual(
            {
                *("uuid", "created_at", "severity", "event_type", "event", "duration_seconds", "conductor"),
                *("user", "project", "request_id", "state", "target_provision_state"),
            },
            set(entries[0]),
        )

    def test_the_bare_metal_api_shows_what_it_always_did(self) -> None:
        entry = self.good("GET", f"/v1/nodes/n/history/{self.uuids[0]}", version="1.115")
        self.assertNotIn("request_id", entry)
        self.assertNotIn("request_id", self.good("GET", "/v1/nodes/n/history?detail=true")["history"][0])


class StepRunsCase(PastCase):
    def attempt(self, step: str, index: int, state: str = "done", **values: Any) -> dict[str, Any]:
        started = clock.after(-60)
        return {
            "run_id": RUN, "flow": "deploy", "step_index": index, "attempt": 1, "interface": "deploy", "step": step,
            "args": {}, "priority": 100 - index, "origin": "driver", "state": state, "started_at": started,
            "finished_at": clock.after(-30), "conductor": "conductor-1", "error": None, **values,
        }  # fmt: skip

    def present(self, **values: Any) -> None:
        with self.db.single() as connection:
            connection.execute(sa.update(nodes.NODES).values(values))


class Timeline(StepRunsCase):
    def timeline(self, query: str = "") -> Any:
        return self.good("GET", f"/ingot/v1/nodes/n/timeline{query}", version=None)

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

    def test_finds_the_plan_of_whatever_flow_runs(self) -> None:
        for kind, flow in (("clean", "manual_clean"), ("service", "service"), ("for_parent", "for_parent")):
            info = {f"{kind}_steps": [planned("a", 3), planned("b", 2)], f"{kind}_step_index": 1, "agent": {}}
            self.present(flow=flow, run_id=OLD, driver_internal_info=info, step_state="running", step_attempt=1)
            timeline = self.timeline()
            self.assertEqual((flow, [("b", "running")]), (timeline["flow"], [(step["step"], step["state"]) for step in (
                timeline["steps"])]))  # fmt: skip

    def test_says_who_runs_a_step_as_long_as_the_plan_is_known(self) -> None:
        plan = [planned("deploy", 100) | {"runner": "driver"}, planned("erase", 80) | {"runner": "agent"}]
        self.write(models.StepRun, self.attempt("deploy", 0), self.attempt("another_plan", 1))
        self.present(
            flow="deploy", run_id=RUN, driver_internal_info={"deploy_steps": plan, "deploy_step_index": 1},
        )  # fmt: skip
        self.assertEqual(["driver", None, "agent"], [step["runner"] for step in self.timeline()["steps"]])
        self.present(flow=None, run_id=None)
        self.assertEqual([None, None], [step["runner"] for step in self.timeline()["steps"]])


class OneRun(StepRunsCase):
    def run_of(self, ident: str) -> Any:
        return self.good("GET", f"/ingot/v1/runs/{ident}", version=None)

    def test_that_is_over(self) -> None:
        self.node(name="other")
        failed = self.attempt("write_image", 1, "failed", error="disk on fire", args={"password": "x"})
        self.write(models.StepRun, self.attempt("deploy", 0), failed)
        run = self.run_of(RUN)
        self.assertEqual(
            ("n", RUN, "deploy", "failed"), tuple(run[key] for key in ("node_name", "run", "flow", "state"))
        )
        self.assertEqual("disk on fire", run["last_error"])
        self.assertAlmostEqual(30, run["duration"], delta=1)
        self.assertEqual(["deploy", "write_image"], [step["step"] for step in run["steps"]])
        self.assertEqual({"password": "******"}, run["steps"][1]["args"])

    def test_that_runs(self) -> None:
        info = {"deploy_steps": [planned("deploy", 100), planned("boot", 20)], "deploy_step_index": 0}
        self.present(flow="deploy", run_id=RUN, driver_internal_info=info, step_state="running", step_attempt=1,
                     step_started_at=clock.after(-5), reservation="conductor-1")  # fmt: skip
        run = self.run_of(RUN)
        self.assertEqual(("running", "conductor-1", None), (run["state"], run["conductor"], run["finished_at"]))
        self.assertEqual(["running", "planned"], [step["state"] for step in run["steps"]])
        self.write(models.StepRun, self.attempt("deploy", 0))
        self.assertEqual(("running", None), (self.run_of(RUN)["state"], self.run_of(RUN)["finished_at"]))

    def test_that_are_unknown(self) -> None:
        self.assertIn(OLD, self.refused(404, "GET", f"/ingot/v1/runs/{OLD}"))
        self.assertIn("UUID", self.refused(400, "GET", "/ingot/v1/runs/latest"))

    def test_costs_four_statements(self) -> None:
        self.write(models.StepRun, self.attempt("deploy", 0))
        self.run_of(RUN)  # reads what steps have taken elsewhere
        with sql_counter.counting(self.db) as counted:
            self.run_of(RUN)
        self.assertEqual(4, len(counted))


class Runs(StepRunsCase):
    def runs(self, query: str = "") -> Any:
        return self.good("GET", f"/ingot/v1/nodes/n/runs{query}", version=None)

    def ids(self, count: int) -> list[str]:
        return [f"{number}0000000-0000-0000-0000-000000000000" for number in range(count)]

    def test_of_a_node_that_never_did_anything_there_are_none(self) -> None:
        self.assertEqual({"runs": []}, self.runs())

    def test_each_has_its_steps_its_time_and_its_end_latest_first(self) -> None:
        began = clock.after(-100)
        self.write(
            models.StepRun,
            self.attempt("erase", 0, "failed", run_id=OLD, flow="automated_clean", started_at=began, error="away"),
            self.attempt("erase", 0, run_id=OLD, flow="automated_clean", attempt=2, finished_at=clock.after(-95)),
            self.attempt("deploy", 0),
            self.attempt("write_image", 1, "failed", error="disk on fire", conductor="conductor-2"),
        )
        deployment, cleaning = self.runs()["runs"]
        expected = (RUN, "deploy", "failed", 2, "disk on fire", "conductor-2")
        self.assertEqual(expected, tuple(deployment[name] for name in (
            "run", "flow", "state", "steps", "last_error", "conductor")))  # fmt: skip
        self.assertEqual((OLD, "automated_clean", "done", 1, None), tuple(cleaning[name] for name in (
            "run", "flow", "state", "steps", "last_error")))  # fmt: skip
        self.assertAlmostEqual(5, cleaning["duration"], delta=0.5)
        self.assertLess(cleaning["started_at"], cleaning["finished_at"])

    def test_one_that_was_aborted_or_lost_says_so(self) -> None:
        for number, (state, expected) in enumerate((("aborted", "aborted"), ("interrupted", "failed"))):
            self.write(models.StepRun, self.attempt("deploy", 0, state, run_id=self.ids(2)[number], error="x"))
            self.assertEqual(expected, self.runs()["runs"][0]["state"])

    def test_the_one_that_runs_has_no_end(self) -> None:
        self.present(flow="deploy", run_id=RUN, step_started_at=clock.after(-5), reservation="conductor-1")
        begun = self.runs()["runs"]
        self.assertEqual([(RUN, "deploy", "running", 0, None)], [tuple(run[name] for name in (
            "run", "flow", "state", "steps", "finished_at")) for run in begun])  # fmt: skip
        self.assertAlmostEqual(5, begun[0]["duration"], delta=1)
        self.write(models.StepRun, self.attempt("deploy", 0))
        (going_on,) = self.runs()["runs"]
        self.assertEqual((RUN, "running", 1, None), tuple(going_on[name] for name in (
            "run", "state", "steps", "finished_at")))  # fmt: skip

    def test_come_page_by_page(self) -> None:
        for run_id in self.ids(5):
            self.write(models.StepRun, self.attempt("deploy", 0, run_id=run_id))
        self.present(flow="deploy", run_id=RUN)
        found, query = [], "?limit=2"
        while query:
            page = self.runs(query)
            found += [run["run"] for run in page["runs"]]
            query = page["next"].removeprefix("http://localhost/ingot/v1/nodes/n/runs") if "next" in page else ""
        self.assertEqual([RUN, *reversed(self.ids(5))], found)

    def test_a_page_after_a_run_that_is_not_there_is_refused(self) -> None:
        self.assertIn(OLD, self.refused(404, "GET", f"/ingot/v1/nodes/n/runs?marker={OLD}"))
        self.present(flow="deploy", run_id=RUN)
        self.assertEqual([], self.runs(f"?marker={RUN}")["runs"])


class AgentLogs(PastCase):
    def setUp(self) -> None:
        super().setUp()
        row = {"run_id": RUN, "flow": "deploy"}
        self.uuids = [node_history.add_log(self.db, self.known.id, {**row, "content": content}, keep=2) for content in (
            b"gone", b"\x1f\x8b\0older", b"\x1f\x8b\0newer")]  # fmt: skip

    def test_the_newest_are_listed_without_their_content(self) -> None:
        logs = self.good("GET", "/ingot/v1/nodes/n/logs", version=None)["logs"]
        self.assertEqual(self.uuids[1:], [log["uuid"] for log in logs])
        self.assertEqual({"uuid", "run", "flow", "created_at", "size", "links"}, set(logs[0]))
        self.assertEqual((RUN, "deploy", 8), (logs[0]["run"], logs[0]["flow"], logs[0]["size"]))

    def test_the_link_of_one_leads_to_its_archive(self) -> None:
        log = self.good("GET", "/ingot/v1/nodes/n/logs", version=None)["logs"][0]
        for accept in ("*/*", "application/gzip", "application/json"):
            answer = self.http.get(log["links"][0]["href"], headers={"Accept": accept})
            self.assertEqual((200, "application/gzip"), (answer.status_code, answer.content_type))
            self.assertEqual(b"\x1f\x8b\0older", answer.get_data())
        self.assertIn(f'attachment; filename="{self.known.uuid}-deploy-', answer.headers["Content-Disposition"])

    def test_another_node_does_not_have_it(self) -> None:
        self.node(name="other")
        self.assertEqual([], self.good("GET", "/ingot/v1/nodes/other/logs", version=None)["logs"])
        self.refused(404, "GET", f"/ingot/v1/nodes/other/logs/{self.uuids[1]}")
        self.refused(404, "GET", f"/ingot/v1/nodes/n/logs/{self.uuids[0]}")

    def test_they_go_with_their_node(self) -> None:
        self.good("DELETE", "/v1/nodes/n")
        table = models.table(models.AgentLog)
        with self.db.single() as connection:
            self.assertEqual([], list(connection.execute(sa.select(table.c.uuid))))
