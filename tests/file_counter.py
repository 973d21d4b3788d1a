"""Counts the files of the product in which functions run, by the thread and by what stands below them on the stack."""

import contextlib
import pathlib
import threading
import types
from collections.abc import Iterator
from typing import Any

from ingot.api import app

PRODUCT = ("api", "common", "conductor", "db", "drivers", "rpcapi")
ROOT = pathlib.Path(app.__file__).parents[1]
FRAMEWORKS = {"flask": "web", "werkzeug": "web", "uvicorn": "server"}
"""What a thread does in which one of these runs: it answers requests, or is the event loop of the web server."""


class FileCounter:
    """Watches all threads that start after it: make it before the conductor and the server."""

    def __init__(self) -> None:
        self._places: dict[types.CodeType, str] = {}
        self._watches = False
        self._ran: dict[int, set[tuple[str, bool]]] = {}
        self._web: set[int] = set()
        self._server: set[int] = set()
        threading.setprofile(self._note)

    def stop(self) -> None:
        """Watch no more threads."""
        self._watches = False
        threading.setprofile(None)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what runs meanwhile, and forget what ran before."""
        self._ran, self._web = {}, set()
        self._watches = True
        try:
            yield
        finally:
            self._watches = False

    def of_request(self) -> set[str]:
        """Return the files of the threads that answered requests, without what the conductor did there."""
        return {path for thread in self._web for path, by_conductor in self._ran.get(thread, ()) if not by_conductor}

    def of_conductor(self) -> set[str]:
        """Return the files of all other threads, but for the event loop of the web server."""
        others = self._ran.keys() - self._web - self._server
        return {path for thread in others for path, _by in self._ran[thread]}

    def of_conductor_with_calls(self) -> set[str]:
        """Return the files in which the conductor's work ran, also those of calls answered in threads of requests."""
        called = {path for thread in self._web for path, by_conductor in self._ran.get(thread, ()) if by_conductor}
        return self.of_conductor() | called

    def _note(self, frame: types.FrameType, event: str, _argument: Any) -> None:
        if not self._watches or event != "call":
            return
        place, thread = self._place(frame), threading.get_ident()
        if place == "web":
            self._web.add(thread)
        elif place == "server":
            self._server.add(thread)
        elif place:
            self._ran.setdefault(thread, set()).add((place, self._is_conductors(frame)))

    def _place(self, frame: types.FrameType) -> str:
        """Return the product's file of a function; what a framework stands for; "" for all others."""
        code = frame.f_code
        if code not in self._places:
            place, path = "", pathlib.Path(code.co_filename)
            if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PRODUCT:
                place = str(path.relative_to(ROOT))
            else:
                place = FRAMEWORKS.get(str(frame.f_globals.get("__name__", "")).partition(".")[0], "")
            self._places[code] = place
        return self._places[code]

    def _is_conductors(self, frame: types.FrameType | None) -> bool:
        """Return whether a function runs on behalf of the conductor.

        A local transport calls it in the thread of the request.
        """
        while frame is not None and not self._place(frame).startswith("conductor/"):
            frame = frame.f_back
        return frame is not None
