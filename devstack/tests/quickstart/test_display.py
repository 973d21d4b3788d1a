"""Progress on a terminal and in a log."""

import io

import testtools
from quickstart.display import Display


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes on request."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class LogTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.out, self.clock = io.StringIO(), Clock()
        self.display = Display(self.out, self.clock)

    def test_a_line_is_written_when_something_changes(self) -> None:
        self.display.progress({"m0": "cleaning", "m1": "cleaning"}, {})
        self.clock.now += 1.5
        self.display.progress({"m0": "clean wait", "m1": "cleaning"}, {})
        self.display.progress({"m0": "clean wait", "m1": "cleaning"}, {"m0": "changes all the time"})
        lines = [line.split() for line in self.out.getvalue().splitlines()]
        self.assertEqual(
            [
                ["0.0", "s", "m0", "cleaning"],
                ["0.0", "s", "m1", "cleaning"],
                ["1.5", "s", "m0", "clean", "wait"],
            ],
            lines,
        )

    def test_a_log_has_no_control_characters(self) -> None:
        self.display.heading("deploy")
        self.display.good("fine")
        self.display.bad("not fine")
        self.display.progress({"m0": "active"}, {})
        self.assertNotIn("\x1b", self.out.getvalue())

    def test_headings_say_when(self) -> None:
        self.clock.now += 12.34
        self.display.heading("deploy")
        self.assertIn("12.3 s] deploy", self.out.getvalue())


class TerminalTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.out = Terminal()
        self.display = Display(self.out, Clock())

    def test_lines_are_drawn_over(self) -> None:
        self.display.progress({"m0": "deploying", "m1": "deploying"}, {})
        before = len(self.out.getvalue())
        self.display.progress({"m0": "active", "m1": "deploying"}, {"m0": "38 MiB"})
        again = self.out.getvalue()[before:]
        self.assertTrue(again.startswith("\x1b[2A"), again)
        self.assertIn("38 MiB", again)

    def test_other_text_is_never_drawn_over(self) -> None:
        self.display.progress({"m0": "deploying"}, {})
        self.display.good("half of it")
        before = len(self.out.getvalue())
        self.display.progress({"m0": "active"}, {})
        self.assertNotIn("A\r", self.out.getvalue()[before:])
