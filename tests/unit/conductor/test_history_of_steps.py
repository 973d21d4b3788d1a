"""What the steps of a run leave in the history of its node."""

import datetime
from typing import Any

from ingot.common import clock, context
from ingot.conductor.steps import cursor
from ingot.conductor.task import task_manager
from tests import conductor_case, database

RUN = "11111111-1111-1111-1111-111111111111"


class HistoryOfSteps(conductor_case.ConductorCase):
    starts = False

    def setUp(self) -> None:
        super().setUp()
        self.began = clock.now()
        self.known = database.make_node(self.db, provision_state="deploying", target_provision_state="active")

    def attempt(self, index: int, number: int = 1, state: str = "done", **values: Any) -> dict[str, Any]:
        """Return an attempt of ten seconds, ten seconds after the one before."""
        started = self.began + datetime.timedelta(seconds=20 * (index + number))
        return {
            "run_id": RUN, "flow": "deploy", "step_index": index, "attempt": number, "interface": "deploy",
            "step": f"step_{index}", "args": {"password": "x"}, "priority": 80, "origin": "driver", "state": state,
            "started_at": started, "finished_at": started + datetime.timedelta(seconds=10),
            "conductor": "conductor-7", "error": None, **values,
        }  # fmt: skip

    def of(self, *attempts: dict[str, Any]) -> list[dict[str, Any]]:
        ctx = context.RequestContext(user_id="worker", project_id="conductors", overwrite=False)
        with task_manager.acquire(self.conductor.services, ctx, self.known.uuid, "test", shared=True) as task:
            return cursor.build_step_entries(task, attempts)

    def test_each_step_has_an_entry_with_its_duration(self) -> None:
        entries = self.of(self.attempt(0), self.attempt(1, origin="template CUSTOM_MIRROR"))
        self.assertEqual(
            [
                "Step deploy.step_0 (driver) of flow deploy completed.",
                "Step deploy.step_1 (template CUSTOM_MIRROR) of flow deploy completed.",
            ],
            [entry["event"] for entry in entries],
        )
        first = entries[0]
        self.assertEqual(("step", "INFO", 10.0), (first["event_type"], first["severity"], first["duration_seconds"]))
        self.assertEqual(("conductor-7", "deploying", "active"), tuple(first[name] for name in (
            "conductor", "state", "target_provision_state")))  # fmt: skip
        self.assertEqual(self.attempt(0)["finished_at"], first["created_at"])

    def test_what_did_not_end_well_is_an_error_with_its_cause(self) -> None:
        for state, verb in (("failed", "failed"), ("aborted", "was aborted"), ("interrupted", "was interrupted")):
            entry = self.of(self.attempt(0, state=state, error="the disk is on fire."))[0]
            self.assertEqual("ERROR", entry["severity"])
            self.assertEqual(f"Step deploy.step_0 (driver) of flow deploy {verb}: the disk is on fire.", entry["event"])

    def test_the_attempts_of_a_step_are_one_entry(self) -> None:
        lost = self.attempt(0, state="failed", error="the BMC was away")
        entry = self.of(lost, self.attempt(0, 2), self.attempt(1))[0]
        self.assertEqual(
            "Step deploy.step_0 (driver) of flow deploy completed at attempt 2. Before that, attempt 1 failed: the BMC "
            "was away.",
            entry["event"],
        )
        self.assertEqual(("INFO", 30.0), (entry["severity"], entry["duration_seconds"]))

    def test_a_step_that_runs_again_later_is_another_one(self) -> None:
        self.assertEqual(3, len(self.of(self.attempt(0), self.attempt(1), self.attempt(0))))
        self.assertEqual(2, len(self.of(self.attempt(0, state="failed", error="x"), self.attempt(0))))

    def test_arguments_are_not_repeated(self) -> None:
        self.assertNotIn("password", self.of(self.attempt(0))[0]["event"])

    def test_who_asked_is_in_the_request_else_who_works(self) -> None:
        self.assertEqual(("worker", "conductors"), tuple(self.of(self.attempt(0))[0][name] for name in (
            "user", "project")))  # fmt: skip
        self.known = database.make_node(self.db, request={"asked_by": {"user": "ada", "project": "engines"}})
        entry = self.of(self.attempt(0))[0]
        self.assertEqual(("ada", "engines"), (entry["user"], entry["project"]))
