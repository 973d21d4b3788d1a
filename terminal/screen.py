"""A page that stays on the screen and follows what happens: no polling, the API's stream of events says when to look.

One thread reads the stream. What is shown is read again after an event, at most once in a second, and when the page
itself says that time alone changes it. Spans of time pass without a request.
"""

import datetime
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from rich.console import Console, ConsoleRenderable
from rich.live import Live
from rich.text import Text

from ingot.common import clock, explained
from ingot.terminal.access import NotReached
from ingot.terminal.client import Client, Refused
from ingot.terminal.pages import Line

_TICK_S = 1.0
_LEAST_S, _MOST_S = 1.0, 30.0
"""Seconds between two attempts to connect."""

_WITHOUT_EVENTS_S = 60.0
"""Seconds between two reads for users who may not follow events."""

_FORBIDDEN = (401, 403)


class Page(NamedTuple):
    """What is shown.

    :param lines: makes the lines as they are at that moment.
    :param stale_at: when it has to be read again though nothing happens.
    """

    lines: Callable[[], Iterable[Line]]
    stale_at: datetime.datetime | None = None


class Watcher:
    """Follows events in a thread of its own.

    :ivar trouble: why there is no stream now; empty: there is one.
    :ivar is_forbidden: the user may not follow events.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._news = threading.Event()
        self._seen: str | None = None
        self.trouble = "connecting"
        self.is_forbidden = False
        threading.Thread(target=self._run, name="events", daemon=True).start()

    def has_news(self, seconds: float) -> bool:
        """Wait for news, for some seconds at most; return whether there were any since the last time."""
        found = self._news.wait(seconds)
        self._news.clear()
        return found

    def _run(self) -> None:
        pause = _LEAST_S
        while True:
            try:
                for event_id in self._client.follow(self._seen):
                    self._seen = event_id or self._seen
                    self.trouble, pause = "", _LEAST_S
                    self._news.set()
            except Refused as exc:
                self.trouble = exc.message
                if exc.status in _FORBIDDEN:
                    self.is_forbidden = True
                    return
            except NotReached as exc:
                self.trouble = exc.message
            time.sleep(pause)  # also after the end of a stream: the next one begins where it has ended
            pause = min(pause * 2, _MOST_S)


class Screen:
    """Shows a page until it is interrupted.

    :param read: reads the page anew.
    """

    def __init__(self, client: Client, read: Callable[[], Page], console: Console | None = None) -> None:
        self._client = client
        self._read = read
        self._console = console or Console()
        self._watcher = Watcher(client)
        self._page = read()
        self._read_at = client.now()
        self._trouble = ""

    def run(self, turns: int | None = None) -> None:
        """Show the page.

        :param turns: seconds after which it ends; None: when it is interrupted.
        """
        with Live(console=self._console, screen=self._console.is_terminal, auto_refresh=False) as live:
            while turns is None or turns > 0:
                live.update(self._render(), refresh=True)
                began = time.monotonic()
                if self._watcher.has_news(_TICK_S) or self._is_stale():
                    self._read_anew()
                    time.sleep(max(0.0, began + _TICK_S - time.monotonic()))  # what happens meanwhile is one reading
                turns = None if turns is None else turns - 1

    def _is_stale(self) -> bool:
        now = self._client.now()
        age = (now - self._read_at).total_seconds()
        if self._watcher.is_forbidden and age > _WITHOUT_EVENTS_S:
            return True
        return self._page.stale_at is not None and self._read_at < self._page.stale_at < now

    def _read_anew(self) -> None:
        try:
            self._page, self._trouble = self._read(), ""
            self._read_at = self._client.now()
        except NotReached as exc:
            self._trouble = exc.message

    def _render(self) -> ConsoleRenderable:
        """Return what is shown now: the lines that fit the screen, and whether they may be old."""
        text = Text(no_wrap=True, overflow="ellipsis")
        lines = list(self._page.lines())
        room = max(self._console.height - 2, 1) if self._console.is_terminal else len(lines)
        for line in lines[:room]:
            text.append(f"{explained.clean(line.text)}\n", line.style)
        text.append(*self._describe_connection())
        return text

    def _describe_connection(self) -> tuple[str, str]:
        trouble = self._trouble or ("" if self._watcher.is_forbidden else self._watcher.trouble)
        if trouble and trouble != "connecting":
            age = clock.spell((self._client.now() - self._read_at).total_seconds())
            return f"CONNECTION LOST, this is {age} old: {' '.join(trouble.split())}", "bold white on red"
        if self._watcher.is_forbidden:
            return "You may not follow events: read again each minute. Ctrl-C ends.", "yellow"
        return "Live. Ctrl-C ends.", "dim"
