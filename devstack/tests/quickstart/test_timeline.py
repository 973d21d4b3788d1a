"""Timelines as people read them."""

from typing import Any

import testtools
from quickstart import timeline


def step(name: str, second: float | None, took: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """Return an attempt as the API gives it: started after that many seconds, or only planned."""

    def time(seconds: float | None) -> str | None:
        return None if seconds is None else f"2026-01-01T00:00:{seconds:09.6f}+00:00"

    return {
        "interface": "deploy",
        "step": name,
        "priority": 80,
        "args": {},
        "origin": "driver",
        "state": "done",
        "attempt": 1,
        "started_at": time(second),
        "finished_at": None if took is None or second is None else time(second + took),
        "conductor": "here",
        "error": None,
        **more,
    }


def run(*steps: dict[str, Any]) -> timeline.Run:
    return timeline.read({"flow": "automated_clean", "steps": steps})


class ReadTest(testtools.TestCase):
    def test_a_run_takes_from_its_first_start_to_its_last_end(self) -> None:
        self.assertEqual(6.25, run(step("deploy", 1, 2), step("write_image", 3, 4.25)).seconds)

    def test_only_requested_and_applied_changes_are_done(self) -> None:
        found = run(
            step("prepare", 1, origin="flow"),
            step("deploy", 2),
            step("write_image", 3, state="failed"),
            step("boot_instance", None, state="planned"),
        )
        self.assertEqual(["deploy"], [attempt.step for attempt in found.done])

    def test_times_without_a_zone_are_in_utc(self) -> None:
        self.assertEqual(0.5, run(step("deploy", 1, started_at="2026-01-01T00:00:01")).seconds)

    def test_nothing_ran_yet(self) -> None:
        self.assertEqual(0.0, run(step("deploy", None, state="planned")).seconds)


class LinesTest(testtools.TestCase):
    def test_a_line_says_when_how_long_and_who(self) -> None:
        found = run(
            step("deploy", 1, 2.5),
            step("apply_configuration", 3.5, 0.25, interface="raid", priority=90, origin="template CUSTOM_X"),
        )
        title, header, *rows = timeline.lines(found)
        self.assertEqual("automated clean, 2.75 s", title)
        self.assertEqual(["started", "took", "priority", "step", "asked", "for", "by"], header.split())
        self.assertEqual(
            ["+2.50", "s", "0.25", "s", "90", "raid.apply_configuration", "template", "CUSTOM_X"], rows[1].split()
        )

    def test_a_repeated_attempt_and_a_failure_are_recorded(self) -> None:
        found = run(
            step("write_image", 1, state="interrupted"),
            step("write_image", 2, attempt=2, state="failed", error="disk too small"),
        )
        text = "\n".join(timeline.lines(found))
        self.assertIn("deploy.write_image interrupted", text)
        self.assertIn("deploy.write_image (attempt 2) failed", text)
        self.assertIn("deploy.write_image: disk too small", text)

    def test_steps_that_run_or_are_planned_have_no_end(self) -> None:
        found = run(
            step("deploy", 1, took=None, state="running"),
            step("write_image", None, state="planned", attempt=0),
        )
        *_, running, planned = timeline.lines(found)
        self.assertEqual(["+0.00", "s", "80", "deploy.deploy", "running", "driver"], running.split())
        self.assertEqual(["80", "deploy.write_image", "planned", "driver"], planned.split())
