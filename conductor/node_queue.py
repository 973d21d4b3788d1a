"""All work on a node meets here and stands in line, in order of arrival: nobody polls for a lock.

A bell (:meth:`NodeQueues.ring`) says *look at this node*; a second one that arrives before the first is answered adds
nothing. A job (:meth:`NodeQueues.submit`) is a function whose result somebody waits for.
"""

import collections
import heapq
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, NamedTuple

import futurist
from oslo_log import log

from ingot.common import errors

LOG = log.getLogger(__name__)


class _Job(NamedTuple):
    """What stands in a queue.

    :param refuse: called instead of ``run`` when its turn does not come any more.
    """

    run: Callable[[], None]
    refuse: Callable[[], None]


class NodeQueues:
    """One queue for each node that has work now, and the threads that empty them.

    :param look: what answers a bell: called with the node's uuid and the reason of the bell that came last.
    :param workers: how many threads work on nodes.
    :param is_slow: whether work on a node may be expected to wait for hardware that does not answer. A quarter of as
        many threads, beside the others, are for such nodes: however many there are, they keep nobody else waiting.
    """

    def __init__(self, look: Callable[[str, str], None], workers: int, is_slow: Callable[[str], bool]) -> None:
        self._look = look
        self._is_slow = is_slow
        self._executor = futurist.ThreadPoolExecutor(max_workers=workers)
        self._slow_executor = futurist.ThreadPoolExecutor(max_workers=max(1, workers // 4))
        self._lock = threading.Lock()
        self._waiting: dict[str, collections.deque[_Job]] = {}
        self._bells: dict[str, str] = {}
        self._stopped = False
        self._idle = threading.Condition(self._lock)

    def ring(self, uuid: str, why: str) -> None:
        """Somebody must look at a node, as soon as those before have finished with it."""
        with self._lock:
            already = uuid in self._bells
            self._bells[uuid] = why
            if not already:
                self._enqueue(uuid, _Job(lambda: self._answer(uuid), lambda: None))

    def submit(self, uuid: str, job: Callable[[], Any]) -> "futures.Future[Any]":
        """Runs ``job`` when those before have finished with the node; the future has its result or exception.

        :raises ServiceUnavailable: this conductor is being stopped.
        """
        future: futures.Future[Any] = futures.Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(job())
                except BaseException as exc:  # noqa: BLE001 - it is raised again where the result is asked for
                    future.set_exception(exc)

        def refuse() -> None:
            if future.set_running_or_notify_cancel():
                future.set_exception(_stopping())

        with self._lock:
            if self._stopped:
                raise _stopping()
            self._enqueue(uuid, _Job(run, refuse))
        return future

    def is_busy(self, uuid: str) -> bool:
        """Whether a thread of this conductor works on the node or is about to."""
        with self._lock:
            return uuid in self._waiting

    def stop(self, timeout: float) -> bool:
        """Begins nothing and waits for what runs. Bells that were not answered are forgotten, as the nodes stay due;
        whoever waits for a job that has not begun is told.

        :returns: whether all of it ended within ``timeout`` seconds. What did not is picked up by another conductor.
        """
        with self._lock:
            self._stopped = True
            refused = [job for jobs in self._waiting.values() for job in jobs]
            for jobs in self._waiting.values():
                jobs.clear()
        for job in refused:
            job.refuse()
        with self._lock:
            ended = self._idle.wait_for(lambda: not self._waiting, timeout)
        for executor in (self._executor, self._slow_executor):
            executor.shutdown(wait=False)
        return ended

    def _enqueue(self, uuid: str, job: _Job) -> None:
        if self._stopped:
            return
        if uuid in self._waiting:
            self._waiting[uuid].append(job)
        else:
            self._waiting[uuid] = collections.deque((job,))
            executor = self._slow_executor if self._is_slow(uuid) else self._executor
            executor.submit(self._drain, uuid)

    def _drain(self, uuid: str) -> None:
        """The jobs of one node, one after the other, until there is none."""
        while True:
            with self._lock:
                if not self._waiting[uuid]:
                    del self._waiting[uuid]
                    self._idle.notify_all()
                    return
                job = self._waiting[uuid].popleft()
            job.run()

    def _answer(self, uuid: str) -> None:
        with self._lock:
            why = self._bells.pop(uuid)
        try:
            self._look(uuid, why)
        except BaseException:  # the edge of a worker: the node stays due, and the sweep comes back to it
            LOG.exception("Looking at node %s (%s) failed unexpectedly", uuid, why)


def _stopping() -> errors.ServiceUnavailable:
    return errors.ServiceUnavailable(what="This conductor", reason="it is being stopped; please try again")


class Alarms:
    """Rings bells at set times, for looks that are due sooner than the next sweep. One thread, whatever the number."""

    def __init__(self, ring: Callable[[str, str], None]) -> None:
        self._ring = ring
        self._changed = threading.Condition()
        self._heap: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def set(self, uuid: str, after: float) -> None:
        """Rings the bell of a node in ``after`` seconds. Each node has one alarm, the one set last: with more, looks
        that each set the next would go on side by side."""
        with self._changed:
            self._next[uuid] = time.monotonic() + after
            heapq.heappush(self._heap, (self._next[uuid], uuid))
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                rest = self._heap[0][0] - time.monotonic() if self._heap else None
                if rest is None or rest > 0:
                    self._changed.wait(rest)
                    continue
                when, uuid = heapq.heappop(self._heap)
                if self._next.get(uuid) != when:
                    continue
                del self._next[uuid]
            self._ring(uuid, "alarm")
