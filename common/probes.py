"""Whether something that may be away answers, for many who ask at once."""

import threading
import time
from collections.abc import Callable

from ingot.common import errors

_FRESH_S = 1.0
"""Seconds for which an answer is good for the next who ask."""

_PATIENCE_S = 5.0
"""Seconds after which what has not answered counts as away."""


class Probe:
    """Asks at most once at a time, however many want to know: probes must not use up the threads of a service.

    :param ask: asks; raises IngotError if there is no answer.
    """

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._began_at: float | None = None
        self._ended_at = float("-inf")
        self._trouble: str | None = "it was not asked yet"

    def read(self) -> str | None:
        """Return why it does not answer; None: it does."""
        with self._lock:
            now = time.monotonic()
            if self._began_at is not None and now - self._began_at > _PATIENCE_S:
                return f"no answer for {now - self._began_at:.0f} s"
            if self._began_at is not None or now - self._ended_at < _FRESH_S:
                return self._trouble
            self._began_at = now
        trouble: str | None = "the question failed unexpectedly"
        try:
            self._ask()
            trouble = None
        except errors.IngotError as exc:
            trouble = exc.message
        finally:
            with self._lock:
                self._trouble, self._began_at, self._ended_at = trouble, None, time.monotonic()
        return trouble
