"""What is built is kept, and found by what it was made from."""

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import testtools

from ingot.image import agent, builds


class BuildsTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name: str, text: str) -> Path:
        path = self.place / name
        path.write_text(text)
        return path

    def test_a_fingerprint_changes_with_everything_that_goes_in(self) -> None:
        first, second = self.write("a", "one"), self.write("b", "two")
        found = [
            builds.fingerprint([first, second], "x"),
            builds.fingerprint([first], "x"),
            builds.fingerprint([first, second], "y"),
            builds.fingerprint([self.write("a", "other"), second], "x"),
        ]
        self.assertEqual(4, len(set(found)))
        self.write("a", "one")
        self.assertEqual(found[0], builds.fingerprint([first, second], "x"))

    def test_a_result_is_built_once(self) -> None:
        runs = []

        def build(scratch: Path, fresh: Path) -> None:
            (scratch / "left over").touch()
            (fresh / "file").write_text("built")
            runs.append(fresh)

        for _ in range(2):
            result = builds.build_once(self.place / "results" / "one", build)
            self.assertEqual("built", (result / "file").read_text())
        self.assertEqual(1, len(runs))
        self.assertEqual(["one"], os.listdir(self.place / "results"))

    def test_a_result_is_kept_as_long_as_callers_ask_for_it(self) -> None:
        long_ago = time.time() - builds.KEPT_UNUSED_S - 1
        for name in ("x-old", "x-asked", "y-old"):
            builds.build_once(self.place / name, lambda scratch, fresh: None)
            os.utime(self.place / name, (long_ago, long_ago))
        builds.build_once(self.place / "x-asked", lambda scratch, fresh: None)
        builds.forget_unused(self.place, "x-*")
        self.assertEqual(["x-asked", "y-old"], sorted(os.listdir(self.place)))

    def test_a_failed_build_leaves_nothing(self) -> None:
        def build(scratch: Path, fresh: Path) -> None:
            (fresh / "half").touch()
            raise builds.BuildError("no space")

        self.assertRaises(builds.BuildError, builds.build_once, self.place / "results" / "one", build)
        self.assertEqual([], os.listdir(self.place / "results"))

    def test_a_command_says_why_it_failed(self) -> None:
        self.assertEqual("text", builds.run("cat", content=b"text"))
        error = self.assertRaises(builds.BuildError, builds.run, "sh", "-c", "echo no such suite >&2; exit 3")
        self.assertIn("failed with status 3:\nno such suite", str(error))
        self.assertRaisesRegex(builds.BuildError, "no-such-tool is not installed", builds.run, "no-such-tool")

    def test_a_command_may_tidy_up_when_its_build_is_stopped(self) -> None:
        tidied = self.place / "tidied"
        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, lambda *_: sys.exit(1)))
        script = f"trap 'touch {tidied}; exit' TERM; sleep 0.2; kill -TERM {os.getpid()}; while :; do sleep 0.01; done"
        self.assertRaises(SystemExit, builds.run, "sh", "-c", script)
        self.assertTrue(tidied.exists())

    def test_new_files_get_a_fixed_time_and_old_ones_keep_theirs(self) -> None:
        old, new = self.write("old", ""), self.write("new", "")
        os.utime(old, (1, 1))
        (self.place / "link").symlink_to("nowhere")
        builds.settle_times(self.place)
        self.assertEqual(
            [1, builds.EPOCH, builds.EPOCH, builds.EPOCH],
            [int(os.lstat(path).st_mtime) for path in (old, new, self.place / "link", self.place)],
        )

    def test_every_pinned_package_has_its_checksum(self) -> None:
        lines = agent.REQUIREMENTS.read_text().splitlines()
        for line in (line for line in lines if not line.startswith("#")):
            self.assertRegex(line, r"^[A-Za-z0-9._-]+==[0-9.]+( --hash=sha256:[0-9a-f]{64}){1,2}$")
