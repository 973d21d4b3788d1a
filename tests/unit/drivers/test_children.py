"""Child processes of steps end in time, with their conductor, and with all that they have started."""

import os
import pathlib
import subprocess
import sys
import textwrap
import time

import fixtures

from ingot.common import errors
from ingot.drivers.interfaces import children, keeper
from tests import patience
from tests.unit.drivers import fakes

MODULES = {
    "says": "import json, sys; job = json.load(sys.stdin); print(json.dumps({'doing': job['what']})); print('a text')",
    "fails": 'print(\'{"failed": "no luck"}\'); raise SystemExit(1)',
    "breaks": "raise ValueError('broken')",
    "grows": "bytes(2**30)",
    "forks": """
        import subprocess, sys, time
        subprocess.Popen(["sleep", "4712"], start_new_session=True)  # leaves its group, as daemons do
        print("{}", flush=True)
        time.sleep(4712)
    """,
}


class ChildrenTest(fakes.DriverTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, text in MODULES.items():
            (self.place / f"child_{name}.py").write_text(textwrap.dedent(text))
        self.useFixture(fixtures.EnvironmentVariable("PYTHONPATH", str(self.place)))
        self.node = self.task()
        self.addCleanup(children.end, self.node)

    def start(self, name: str, seconds: int = 60, memory: int = 512) -> children.Child:
        def begin() -> children.Child:
            limits = children.Limits(seconds, memory)
            return children.Child(
                children.run_module(f"child_{name}"), self.place / "scratch", {"what": "works"}, limits
            )

        child = children.start(self.node, name, begin)
        assert child is not None
        return child

    def wait(self, child: children.Child) -> int:
        deadline = time.monotonic() + patience.seconds(30)
        while (code := child.poll()) is None:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        return code

    def sleeping(self) -> int:
        return subprocess.run(["pgrep", "-f", "^sleep 4712"], capture_output=True, text=True).stdout.count("\n")

    def test_it_gets_a_job_and_says_how_it_goes_on(self) -> None:
        child = self.start("says")
        self.assertEqual(0, self.wait(child))
        self.assertEqual([{"doing": "works"}, {"text": "a text"}], child.said())
        self.assertEqual([], list((self.place / "scratch").iterdir()))

    def test_why_it_has_failed_is_said_in_its_own_words(self) -> None:
        for name, words in (("fails", "no luck"), ("breaks", "ValueError: broken"), ("grows", "MemoryError")):
            child = self.start(name)
            self.assertIn(words, child.explain_failure(self.wait(child)))

    def test_it_may_fail_before_it_has_read_its_job(self) -> None:
        child = children.Child(
            children.run_module("child_breaks"), self.place / "scratch", {"long": "x" * 2**20}, children.Limits(60, 512)
        )
        self.addCleanup(child.close)
        self.assertIn("ValueError: broken", child.explain_failure(self.wait(child)))

    def test_its_time_ends_with_all_that_it_has_started(self) -> None:
        child = self.start("forks", seconds=2)
        self.assertEqual(keeper.TOO_LATE, self.wait(child))
        self.assertEqual("it took longer than 2 s", child.explain_failure(keeper.TOO_LATE))
        self.assertEqual(0, self.sleeping())

    def test_it_ends_when_it_is_not_needed_any_more(self) -> None:
        child = self.start("forks")
        while not child.said():
            time.sleep(0.05)
        self.assertEqual(1, self.sleeping())
        children.end(self.node)
        self.assertEqual((0, None), (self.sleeping(), children.find(self.node, "forks")))

    def test_a_keeper_that_no_step_asks_ends_the_child(self) -> None:
        lease, ours = os.pipe()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, lease)
        command = [sys.executable, "-I", "-S", keeper.__file__, str(lease), "60", "1", "512", str(self.place / "none")]
        done = subprocess.run([*command, "sleep", "4712"], pass_fds=[lease], timeout=patience.seconds(30))
        self.assertEqual((keeper.LEFT_ALONE, 0), (done.returncode, self.sleeping()))

    def test_there_are_as_many_as_a_quarter_of_the_workers(self) -> None:
        self.node.conf.set_override("workers_pool_size", 4, group="conductor")
        self.start("forks")
        other = fakes.MemoryTask(self.node.conf, fakes.node(), self.node.hardware)
        self.assertIsNone(children.start(other, "forks", lambda: self.fail("it must not begin")))
        children.end(self.node)

    def test_a_place_that_cannot_be_used_is_named(self) -> None:
        (self.place / "file").touch()
        failed = self.assertRaises(
            errors.StepFailed,
            lambda: children.Child(
                children.run_module("child_says"), self.place / "file" / "x", {}, children.Limits(1, 512)
            ),
        )
        self.assertIn("file/x cannot be used", str(failed))
