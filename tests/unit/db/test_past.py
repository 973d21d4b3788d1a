"""Runs of flows, and the logs of agents."""

import datetime
import os
from typing import Any

import sqlalchemy as sa

from ingot.common import clock, errors
from ingot.db import listing, models, node_history
from tests import database

_RUNS = models.table(models.StepRun)


class PastOnSQLite(database.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.began = clock.now().replace(microsecond=250000)
        self.known = database.make_node(self.db)

    def ended(self, run: str, *states: str, node: models.Node | None = None) -> None:
        """Write a step run of a second for each state."""
        with self.db.single() as connection:
            connection.execute(
                sa.insert(_RUNS), [self.attempt(node or self.known, run, *one) for one in enumerate(states)]
            )

    def attempt(self, node: models.Node, run: str, index: int, state: str) -> dict[str, Any]:
        started = self.began + datetime.timedelta(seconds=index)
        return {
            "node_id": node.id, "run_id": run, "flow": "deploy", "step_index": index, "attempt": 1,
            "interface": "deploy", "step": f"step_{index}", "args": {}, "priority": 1, "origin": "driver",
            "state": state, "started_at": started, "finished_at": started + datetime.timedelta(seconds=1),
            "conductor": "one", "error": None if state == "done" else f"{run} {state}",
        }  # fmt: skip

    def runs(self, limit: int = 10, before: str | None = None) -> list[models.Record]:
        return node_history.list_runs(self.db, self.known.id, limit, before)

    def test_a_run_spans_its_first_start_and_its_last_end(self) -> None:
        self.ended("a", "done", "done", "failed")
        (run,) = self.runs()
        self.assertEqual(
            ("a", "deploy", 3, "failed", "a failed", self.began, self.began + datetime.timedelta(seconds=3)),
            (run.run_id, run.flow, run.steps, run.state, run.error, run.started_at, run.finished_at),
        )

    def test_repeated_attempts_are_one_step(self) -> None:
        again = {**self.attempt(self.known, "a", 0, "done"), "attempt": 2}
        self.ended("a", "failed")
        with self.db.single() as connection:
            connection.execute(sa.insert(_RUNS).values(again))
        (run,) = self.runs()
        self.assertEqual((1, "done", None), (run.steps, run.state, run.error))

    def test_runs_come_latest_first_and_page_by_page(self) -> None:
        for name in "abcd":
            self.ended(name, "done", "done")
        self.ended("z", "done", node=database.make_node(self.db))
        self.assertEqual(["d", "c", "b", "a"], [run.run_id for run in self.runs()])
        self.assertEqual(["b"], [run.run_id for run in self.runs(1, "c")])
        self.assertEqual([], self.runs(before="a"))
        self.assertRaises(errors.NotFound, self.runs, before="z")

    def test_the_attempts_of_one_run(self) -> None:
        self.ended("a", "done")
        self.ended("b", "done", "failed")
        self.assertEqual(["step_0", "step_1"], [one.step for one in node_history.list_attempts(self.db, self.known.id)])
        self.assertEqual(1, len(node_history.list_attempts(self.db, self.known.id, "a")))

    def test_megabytes_of_any_bytes_are_kept(self) -> None:
        most = self.database.conf.agent.deploy_logs_max_size
        content = bytes(range(256)) + os.urandom(most - 256)
        log = {"run_id": "a", "flow": "deploy", "content": content}
        kept = listing.get_of_node(
            self.db, node_history.LOGS, self.known.id, node_history.add_log(self.db, self.known.id, log, keep=3)
        )
        self.assertEqual((content, len(content), "a"), (kept.content, kept.size, kept.run_id))

    def test_the_newest_logs_of_a_node_stay(self) -> None:
        other = database.make_node(self.db)
        log = {"run_id": "a", "flow": "deploy", "content": b"x"}
        kept = [node_history.add_log(self.db, node.id, log, keep=1) for node in (other, self.known, self.known)]
        self.assertRaises(errors.NotFound, listing.get_of_node, self.db, node_history.LOGS, self.known.id, kept[1])
        self.assertRaises(errors.NotFound, listing.get_of_node, self.db, node_history.LOGS, self.known.id, kept[0])
        self.assertEqual(b"x", listing.get_of_node(self.db, node_history.LOGS, other.id, kept[0]).content)
        self.assertEqual(b"x", listing.get_of_node(self.db, node_history.LOGS, self.known.id, kept[2]).content)
