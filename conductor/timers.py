"""Call functions at intervals, each time guarded: a failure is logged, and the next call comes all the same."""

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

import futurist
from futurist import periodics
from oslo_log import log

from ingot.common import errors

LOG = log.getLogger(__name__)


class Timer(NamedTuple):
    """What is called when.

    :param name: for logs.
    :param spacing: seconds from the end of one call to the beginning of the next.
    """

    name: str
    work: Callable[[], object]
    spacing: float
    immediately: bool = False


class TimerPool:
    """Calls timers in threads of its own until it is stopped.

    :param threads: how many calls there may be at a time; a timer never overlaps with itself.
    """

    def __init__(self, timers: Iterable[Timer], threads: int = 1) -> None:
        timers = list(timers)
        self.names = ", ".join(timer.name for timer in timers)
        self._changed = threading.Condition()
        self._running = 0
        self._stopped = False
        self._worker = periodics.PeriodicWorker(
            [(self._guard(timer), (), {}) for timer in timers],
            executor_factory=lambda: futurist.ThreadPoolExecutor(max_workers=threads),
        )
        threading.Thread(target=self._worker.start, kwargs={"allow_empty": True}, name="timers", daemon=True).start()

    def stop(self) -> None:
        """Begin no call anymore."""
        with self._changed:
            self._stopped = True
        self._worker.stop()

    def wait(self, timeout: float) -> None:
        """Wait for the calls that run, at most ``timeout`` seconds; those that have not ended then are logged."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._running, timeout):
                LOG.warning("Periodic work did not end in time: %s", self.names)

    def _guard(self, timer: Timer) -> Callable[[], None]:
        @periodics.periodic(spacing=timer.spacing, run_immediately=timer.immediately)
        def call() -> None:
            with self._changed:
                if self._stopped:
                    return
                self._running += 1
            try:
                timer.work()
            except errors.ServiceUnavailable as exc:
                LOG.warning("%s was put off: %s", timer.name, exc.message)
            except BaseException:  # the edge of a timer, and perhaps code of a plug-in's
                LOG.exception("%s failed unexpectedly", timer.name)
            finally:
                with self._changed:
                    self._running -= 1
                    self._changed.notify_all()

        call.__name__ = timer.name
        return call
