"""Lets the faults of a schedule happen, each at its time."""

import threading
import time
from collections.abc import Sequence
from concurrent import futures

import fixtures

from tests.gate.faults.kinds import KINDS
from tests.gate.faults.schedule import Fault
from tests.gate.faults.site import Site


class Injector(fixtures.Fixture):
    """Each fault has a thread of its own. Where a victim takes longer to get well than the schedule says, its next
    fault waits.

    :ivar happened: (when it began, when it was over, what it was), in seconds since the epoch.
    """

    def __init__(self, site: Site, faults: Sequence[Fault]) -> None:
        super().__init__()
        self._site = site
        self._faults = faults
        self._over = threading.Event()
        self._well: dict[str, threading.Lock] = {fault.victim: threading.Lock() for fault in faults}
        self.happened: list[tuple[float, float, Fault]] = []

    def _setUp(self) -> None:
        self._pool = futures.ThreadPoolExecutor(max_workers=max(1, len(self._faults)))
        self.addCleanup(self._pool.shutdown)
        self.addCleanup(self._over.set)
        began = time.monotonic()
        self._ends = [self._pool.submit(self._inflict, fault, began) for fault in self._faults]

    def finish(self) -> None:
        """Undo the faults that are active and cancel those that are planned. Raise what went wrong with that."""
        self._over.set()
        for end in self._ends:
            end.result()

    def _inflict(self, fault: Fault, began: float) -> None:
        self._over.wait(began + fault.at - time.monotonic())
        kind = KINDS[fault.kind]
        with self._well[fault.victim]:
            if self._over.is_set():
                return
            print(f"{time.monotonic() - began:7.1f} s  {fault.kind}: {fault.victim}", flush=True)
            since = time.time()
            kind.begin(self._site, fault.victim)
            self._over.wait(fault.seconds)
            kind.end(self._site, fault.victim)
            self.happened.append((since, time.time(), fault))
