"""Calls functions at intervals, each time guarded: what fails is logged, and the next time comes all the same."""

import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

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
    work: Callable[[], Any]
    spacing: float
    immediately: bool = False

    def guarded(self) -> Callable[[], None]:
        @periodics.periodic(spacing=self.spacing, run_immediately=self.immediately)
        def call() -> None:
            try:
                self.work()
            except errors.ServiceUnavailable as exc:
                LOG.warning("%s was put off: %s", self.name, exc.message)
            except BaseException:  # the edge of a timer, and perhaps code of a plug-in's
                LOG.exception("%s failed unexpectedly", self.name)

        call.__name__ = self.name
        return call


def start(timers: Iterable[Timer], threads: int = 1) -> periodics.PeriodicWorker:
    """Begins to call timers in a pool of their own.

    :param threads: how many calls there may be at a time; a timer never overlaps with itself.
    :returns: what stops them.
    """
    worker = periodics.PeriodicWorker(
        [(timer.guarded(), (), {}) for timer in timers],
        executor_factory=lambda: futurist.ThreadPoolExecutor(max_workers=threads),
    )
    threading.Thread(target=worker.start, kwargs={"allow_empty": True}, name="timers", daemon=True).start()
    return worker
