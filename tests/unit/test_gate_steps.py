"""What the steps of ``devstack/gate.sh`` run, and as whom."""

import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).parents[2]
GATE = ROOT / "tests" / "gate"
CONTAINERS = re.compile(r"from tests\.gate import .*\b(?:debian|containers)\b")
OF_SERVERS = "ServersTest"
"""The class of the pages that are typed in a container; the other pages need no root."""


GATE_SH = (ROOT / "devstack" / "gate.sh").read_text()


def steps() -> list[list[str]]:
    """Return name, type, seats, minutes and command of each step."""
    rows = re.findall(r'^    "([\w-]+ +\|.*)"$', GATE_SH, re.MULTILINE)
    return [[field.strip() for field in row.split("|", 4)] for row in rows]


def commands() -> list[str]:
    return [step[4] for step in steps()]


class StepsTest(testtools.TestCase):
    def test_each_has_a_name_of_its_own_and_fits(self) -> None:
        found = re.search(r"^SEATS=(\d+)$", GATE_SH, re.MULTILINE)
        assert found is not None
        names = [step[0] for step in steps()]
        self.assertEqual(len(names), len(set(names)))
        for name, kind, seats, minutes, _ in steps():
            self.assertIn(kind, ("check", "tests"), name)
            self.assertTrue(1 <= int(seats) <= int(found[1]), f"{name} would wait for ever")
            self.assertGreater(int(minutes), 0, name)

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
