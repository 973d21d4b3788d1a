"""What the steps of ``devstack/gate.sh`` run, and as whom."""

import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[2]
GATE = ROOT / "tests" / "gate"
CONTAINERS = re.compile(r"from tests\.gate import .*\b(?:debian|containers)\b")
OF_SERVERS = "ServersTest"
"""The class of the pages that are typed in a container; the other pages need no root."""


def commands() -> list[str]:
    """Return the command of each step."""
    rows = re.findall(r'^    "([\w-]+ +\|.*)"$', (ROOT / "devstack" / "gate.sh").read_text(), re.MULTILINE)
    return [row.split("|", 4)[4].strip() for row in rows]


class StepsTest(testtools.TestCase):
    def test_containers_run_as_root(self) -> None:
        names = {path.stem for path in GATE.glob("test_*.py") if CONTAINERS.search(path.read_text())}
        self.assertLessEqual({"test_container", "test_packaging"}, names)
        for name in (*names, OF_SERVERS):
            (command,) = (one for one in commands() if re.search(rf"(?<!--exclude-regex) {name}\b", one))
            self.assertIn("with_root stestr ", command)

    def test_pages_that_need_no_root_run_without(self) -> None:
        (command,) = (one for one in commands() if "tests/gate/pages" in one)
        self.assertNotIn("with_root", command)
        self.assertIn(f"--exclude-regex {OF_SERVERS}", command)
