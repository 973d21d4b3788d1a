"""What is seen while the machines work: on a terminal one line for each, redrawn; elsewhere a line for each change."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

_UP = "\x1b[{}A\r"
_CLEAR_BELOW = "\x1b[0J"
_STYLES = {"heading": "\x1b[1m", "good": "\x1b[32m", "bad": "\x1b[31m"}
_PLAIN = "\x1b[0m"


class Display:
    """Says what happens, with the seconds since the start.

    :param out: a terminal, or anything else that takes text.
    :param clock: gives seconds; only differences matter.
    """

    def __init__(self, out: TextIO = sys.stdout, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._began = clock()
        self.is_terminal = out.isatty()
        self._drawn = 0
        self._last: dict[str, str] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    def heading(self, text: str) -> None:
        """Say what comes next."""
        self._write(f"\n{self._style('heading', f'[{self.elapsed:5.1f} s] {text}')}\n")

    def say(self, text: str) -> None:
        """Write lines below everything so far."""
        self._write(f"{text}\n")

    def good(self, text: str) -> None:
        """Write a line about something that is as it must be."""
        self._write(f"  {self._style('good', 'ok')}  {text}\n")

    def bad(self, text: str) -> None:
        """Write lines about something that is not."""
        self._write(f"\n{self._style('bad', text)}\n")

    def progress(self, rows: Mapping[str, str], details: Mapping[str, str]) -> None:
        """Show where each machine is.

        :param rows: by machine, what is worth a line of its own when it changes.
        :param details: by machine, what changes all the time: shown only where lines can be redrawn, on a terminal that
            is high enough.
        """
        if self.is_terminal and len(rows) < shutil.get_terminal_size().lines:
            self._redraw([f"  {name:<10} {row:<42} {details.get(name, '')}" for name, row in rows.items()])
            return
        for name, row in rows.items():
            if self._last.get(name) != row:
                self._write(f"  {self.elapsed:6.1f} s  {name:<10} {row}\n")
        self._last.update(rows)

    def settle(self) -> None:
        """Leave the machines' lines as they are: what is shown next goes below."""
        self._drawn = 0
        self._last.clear()

    def _redraw(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns
        back = _UP.format(self._drawn) if self._drawn else ""
        self._out.write(back + _CLEAR_BELOW + "".join(f"{line[: width - 1]}\n" for line in lines))
        self._out.flush()
        self._drawn = len(lines)

    def _write(self, text: str) -> None:
        self._drawn = 0  # lines that are written over only make sense right below each other
        self._out.write(text)
        self._out.flush()

    def _style(self, style: str, text: str) -> str:
        return f"{_STYLES[style]}{text}{_PLAIN}" if self.is_terminal else text
