"""Starting, watching and stopping what the quickstart needs."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time

import requests
import testtools
from quickstart import story
from quickstart.children import Child
from quickstart.failure import Failure
from quickstart.files import FileServer


class DirectoryTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)


class ChildTest(DirectoryTest):
    def _start(self, code: str) -> Child:
        child = Child("child", [sys.executable, "-c", code], self.directory / "log", self.directory / "out")
        self.addCleanup(child.stop)
        return child

    def test_it_is_waited_for_until_it_answers(self) -> None:
        child = self._start("import time; print('ready', flush=True); time.sleep(60)")
        self.assertEqual("ready\n", child.wait_for(lambda: (self.directory / "out").read_text() or None))
        child.check()

    def test_its_end_is_reported_with_the_end_of_its_log(self) -> None:
        child = self._start("import sys; sys.exit('the disk is full')")
        error = self.assertRaises(Failure, child.wait_for, lambda: None)
        self.assertIn("child ended with status 1", str(error))
        self.assertIn("the disk is full", str(error))

    def test_it_is_stopped(self) -> None:
        child = self._start("import time, os; print(os.getpid(), flush=True); time.sleep(60)")
        number = int(child.wait_for(lambda: (self.directory / "out").read_text() or None))
        child.stop()
        self.assertRaises(ProcessLookupError, os.kill, number, 0)

    def test_the_kernel_ends_it_with_the_quickstart(self) -> None:
        """Even when that is killed, and can do nothing about it any more."""
        out = self.directory / "out"
        source = (
            "import pathlib, sys; from quickstart.children import Child;"
            "c = Child('c', [sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); time.sleep(60)'],"
            f" pathlib.Path({str(self.directory / 'log')!r}), pathlib.Path({str(out)!r}));"
            f"c.wait_for(lambda: pathlib.Path({str(out)!r}).read_text() or None);"
            "import os; os.kill(os.getpid(), 9)"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", source], env=environment, check=False)
        number = int(out.read_text())
        deadline = time.monotonic() + 60
        while _runs(number):
            self.assertLess(time.monotonic(), deadline, f"process {number} still runs")
            time.sleep(0.02)


def _runs(number: int) -> bool:
    """Return whether a process is there and not a zombie that waits to be reaped."""
    try:
        return pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class FileServerTest(DirectoryTest):
    def test_files_are_served_and_probed(self) -> None:
        (self.directory / "disk.img").write_bytes(b"image")
        server = FileServer(self.directory, self.directory / "log")
        self.addCleanup(server.stop)
        url = server.url("disk.img")
        self.assertEqual(b"image", requests.get(url, timeout=60).content)
        self.assertEqual("5", requests.head(url, timeout=60).headers["Content-Length"])
        self.assertEqual(404, requests.get(server.url("other"), timeout=60).status_code)
        self.assertIn("GET /disk.img", (self.directory / "log").read_text())


class ExpectedStepsTest(testtools.TestCase):
    def test_the_templates_step_stands_between_boot_and_image(self) -> None:
        found = [(step, priority) for _, step, priority, _ in story.expected_steps(mirrored=True)]
        self.assertEqual(
            [
                ("deploy", 100),
                ("apply_configuration", 90),
                ("write_image", 80),
                ("prepare_instance_boot", 60),
                ("tear_down_agent", 40),
                ("switch_to_tenant_network", 30),
                ("boot_instance", 20),
            ],
            found,
        )

    def test_without_the_trait_there_are_only_core_steps(self) -> None:
        steps = story.expected_steps(mirrored=False)
        self.assertEqual({"driver"}, {origin for *_, origin in steps})
        self.assertEqual(6, len(steps))
