"""Timelines as people read them."""

from typing import Any

import testtools
from quickstart import timeline


def entry(step: str, second: float, took: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """An attempt as the API gives it."""

    def time(seconds: float) -> str:
        return f"2026-01-01T00:00:{seconds:09.6f}+00:00"

    return {
        "run_id": "one",
        "flow": "deploy",
        "interface": "deploy",
        "step": step,
        "priority": 80,
        "args": {},
        "origin": "driver",
        "state": "done",
        "attempt": 1,
        "started_at": time(second),
        "finished_at": None if took is None else time(second + took),
        "conductor": "here",
        "error": None,
        **more,
    }


class ReadTest(testtools.TestCase):
    def test_attempts_of_a_run_belong_together_oldest_first(self) -> None:
        runs = timeline.read(
            [
                entry("write_image", 20, run_id="two"),
                entry("verify_power", 1, flow="verify"),
                entry("deploy", 10, run_id="two"),
            ]
        )
        self.assertEqual(["verify", "deploy"], [run.flow for run in runs])
        self.assertEqual(["deploy", "write_image"], [attempt.step for attempt in runs[1].attempts])

    def test_a_run_takes_from_its_first_start_to_its_last_end(self) -> None:
        run = timeline.read([entry("deploy", 1, 2), entry("write_image", 3, 4.25)])[0]
        self.assertEqual(6.25, run.seconds)

    def test_what_belongs_to_the_flow_is_no_step(self) -> None:
        run = timeline.read([entry("prepare", 1, origin="flow"), entry("deploy", 2)])[0]
        self.assertEqual(["deploy"], [attempt.step for attempt in run.steps])

    def test_times_without_a_zone_are_in_utc(self) -> None:
        run = timeline.read([entry("deploy", 1, started_at="2026-01-01T00:00:01")])[0]
        self.assertEqual(0.5, run.seconds)


class LinesTest(testtools.TestCase):
    def test_a_line_says_when_how_long_and_who(self) -> None:
        run = timeline.read(
            [
                entry("deploy", 1, 2.5),
                entry("apply_configuration", 3.5, 0.25, interface="raid", priority=90, origin="template CUSTOM_X"),
            ]
        )[0]
        title, header, *rows = timeline.lines(run)
        self.assertEqual("deploy, 2.75 s", title)
        self.assertEqual(["started", "took", "priority", "step", "asked", "for", "by"], header.split())
        self.assertEqual(
            ["+2.50", "s", "0.25", "s", "90", "raid.apply_configuration", "template", "CUSTOM_X"], rows[1].split()
        )

    def test_a_repeated_attempt_and_a_failure_are_told(self) -> None:
        run = timeline.read(
            [
                entry("write_image", 1, state="interrupted"),
                entry("write_image", 2, attempt=2, state="failed", error="disk too small"),
            ]
        )[0]
        text = "\n".join(timeline.lines(run))
        self.assertIn("deploy.write_image interrupted", text)
        self.assertIn("deploy.write_image (attempt 2) failed", text)
        self.assertIn("deploy.write_image: disk too small", text)

    def test_a_step_that_runs_has_no_end(self) -> None:
        run = timeline.read([entry("write_image", 1, took=None, state="running")])[0]
        self.assertEqual("deploy, 0.00 s", timeline.lines(run)[0])
