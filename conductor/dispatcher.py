"""All work on a node meets here and is queued, in order of arrival: no thread polls for a lock.

A wake-up (:meth:`NodeQueues.notify`) says *reconcile this node*; a second one that arrives before the first is
processed adds nothing. A job (:meth:`NodeQueues.submit`) is a function whose result its caller waits for.
"""

import collections
import heapq
import threading
import time
from collections.abc import Callable
from concurrent import futures
from typing import NamedTuple, TypeVar

import futurist
from oslo_log import log

from ingot.common import context, errors, metrics, tracing
from ingot.conductor import power
from ingot.conductor.flows import FLOWS
from ingot.conductor.membership import Membership
from ingot.conductor.steps import engine
from ingot.conductor.task import task_manager
from ingot.conductor.task.task_manager import Services, Task
from ingot.db import nodes

LOG = log.getLogger(__name__)

Answer = TypeVar("Answer")


class Dispatcher:
    """Receives the wake-ups of a conductor's nodes and reconciles each node with its row in the database."""

    def __init__(self, services: Services, membership: Membership) -> None:
        self._services = services
        self._membership = membership
        is_slow = services.circuit_breakers.is_unresponsive
        self.queues = NodeQueues(self._reconcile, services.conf.conductor.workers_pool_size, is_slow)
        self.delayed_wakeups = DelayedWakeups(self.queues.notify)

    def _reconcile(self, uuid: str, why: str) -> None:
        """Lock a node and do what its row says is to be done."""
        services = self._services
        if services.leaving.is_set():
            # The node still has its work, for its next owner. If it is locked in this name, no thread holds the lock:
            # here is its queue.
            nodes.release_stale(services.db, services.host, uuid)
            return
        LOG.debug("Reconciling node %s: %s", uuid, why)
        steal_from = self._membership.list_still_dead() if self._membership.dead_hosts else ()
        after: float | None = None  # stays so when the lock is lost on the way
        try:
            ctx = context.current()
            with task_manager.acquire(services, ctx, uuid, why, steal_from=steal_from, if_due=True) as task:
                after = self._advance(task)
        except errors.NodeLocked as exc:
            LOG.debug("%s", exc)  # its holder does the work, or the sweep finds out that it is dead; or there is none
            return
        except errors.NotFound:
            LOG.info("Node %s was deleted before it was reconciled (%s)", uuid, why)
            return
        if after is not None and after < services.conf.conductor.sweep_interval:
            self.delayed_wakeups.set(uuid, after)

    def _advance(self, task: Task) -> float | None:
        """Do what can be done now: a power change first, then the flow.

        :returns: seconds after which the node must be reconciled again; None: at a wake-up, or at its ``due_at``.
        """
        node = task.node
        task.context = context.of_work(node.power_request.get("asked_by") or node.request.get("asked_by"))
        task.context.update_store()
        is_own = self._services.serves(node) and not (self._membership.others and self._membership.is_anothers(node))
        if not is_own:
            LOG.info("Node %s is another conductor's by now, which will find its work", node.uuid)
            return None
        request = task.context
        own = tracing.span(
            "reconcile",
            request.traceparent,
            node_uuid=node.uuid,
            ingot_flow=node.flow,
            ingot_request_id=request.request_id,
        )
        with own:
            return self._do(task)

    def _do(self, task: Task) -> float | None:
        if task.node.power_request:
            return power.advance(task)
        if task.node.flow is not None:
            return engine.advance(task, FLOWS)
        if task.node.due_at is not None:
            task.set(due_at=None, abort_requested=False)  # an abort that came after the end aborts nothing
        return None


_POOLS = _USUAL, _SLOW = "usual", "slow"

_Job = Callable[[bool], None]
"""What stands in a queue: run with True, or with False where its turn does not come anymore."""


class PoolLoad(NamedTuple):
    """How much a pool of threads has to do.

    :param name: ``usual``, or ``slow`` for nodes whose hardware does not answer.
    :param busy: threads at work.
    :param most: threads that there may be.
    """

    name: str
    busy: int
    most: int


class Load(NamedTuple):
    """How much work there is.

    :param nodes: that have some.
    :param jobs: that have not begun.
    """

    nodes: int
    jobs: int
    pools: tuple[PoolLoad, ...]


class NodeQueues:
    """One queue for each node that has work now, and the threads that empty them.

    :param reconcile: what answers a wake-up: called with the node's uuid and the reason of the wake-up that came last.
    :param workers: how many threads work on nodes.
    :param is_slow: whether work on a node may be expected to wait for hardware that does not answer. A quarter of as
        many threads, besides the others, are for such nodes: however many there are, no other node waits for them.
    """

    def __init__(self, reconcile: Callable[[str, str], None], workers: int, is_slow: Callable[[str], bool]) -> None:
        self._reconcile = reconcile
        self._is_slow = is_slow
        self._sizes = (workers, max(2, workers // 4))
        self._executor, self._slow_executor = map(_make_executor, self._sizes)
        self._lock = threading.Lock()
        self._waiting: dict[str, collections.deque[tuple[_Job, float]]] = {}  # with the moment since which they wait
        self._at_work = dict.fromkeys(_POOLS, 0)
        self._reasons: dict[str, tuple[str, context.RequestContext]] = {}
        self._stopped = False
        self._idle = threading.Condition(self._lock)

    def notify(self, uuid: str, why: str) -> None:
        """Wake up for a node: it is reconciled as soon as the jobs before have finished with it."""
        with self._lock:
            already = uuid in self._reasons
            self._reasons[uuid] = why, context.current()
            if not already:
                self._enqueue(uuid, lambda has_turn: self._process(uuid) if has_turn else None)

    def submit(self, uuid: str, job: Callable[[], Answer]) -> "futures.Future[Answer]":
        """Run ``job`` when those before have finished with the node; the future has its result or exception.

        :raises ServiceUnavailable: this conductor is being stopped.
        """
        future: futures.Future[Answer] = futures.Future()
        ctx = context.current()

        def run(has_turn: bool) -> None:
            if not future.set_running_or_notify_cancel():
                return
            ctx.update_store()
            try:
                if not has_turn:
                    raise _stopping_error()
                future.set_result(job())
            except BaseException as exc:  # noqa: BLE001 - it is raised again where the result is used
                future.set_exception(exc)

        with self._lock:
            if self._stopped:
                raise _stopping_error()
            self._enqueue(uuid, run)
        return future

    def is_busy(self, uuid: str) -> bool:
        """Return whether a thread of this conductor works on the node or is about to."""
        with self._lock:
            return uuid in self._waiting

    def read_load(self) -> Load:
        """Return how much work there is now."""
        with self._lock:
            pools = tuple(
                PoolLoad(name, self._at_work[name], most) for name, most in zip(_POOLS, self._sizes, strict=True)
            )
            return Load(len(self._waiting), sum(map(len, self._waiting.values())), pools)

    def stop(self, timeout: float) -> bool:
        """Begin nothing and wait for what runs.

        Wake-ups that were not processed are forgotten, as their work stays in the database; jobs that have not begun
        are refused.

        :returns: whether all of it ended within ``timeout`` seconds. Another conductor picks up the rest.
        """
        with self._lock:
            self._stopped = True
            refused = [job for jobs in self._waiting.values() for job, _since in jobs]
            for jobs in self._waiting.values():
                jobs.clear()
        for job in refused:
            job(False)
        with self._lock:
            ended = self._idle.wait_for(lambda: not self._waiting, timeout)
        for executor in (self._executor, self._slow_executor):
            executor.shutdown(wait=False)
        return ended

    def end_idle_threads(self) -> None:
        """End threads that a burst of work has left without any: when no node has work, all of them.

        Pools are replaced: one that ends some of its threads while others work forgets those, which never end.
        """
        with self._lock:
            if self._waiting or self._stopped:
                return
            idle = (self._executor, self._slow_executor)
            self._executor, self._slow_executor = map(_make_executor, self._sizes)
        for executor in idle:
            executor.shutdown(wait=False)

    def _enqueue(self, uuid: str, job: _Job) -> None:
        if self._stopped:
            return
        waiting = job, time.monotonic()
        if uuid in self._waiting:
            self._waiting[uuid].append(waiting)
        else:
            self._waiting[uuid] = collections.deque((waiting,))
            executor, pool = (self._slow_executor, _SLOW) if self._is_slow(uuid) else (self._executor, _USUAL)
            executor.submit(self._drain, uuid, pool)

    def _drain(self, uuid: str, pool: str) -> None:
        """Run the jobs of one node, one after the other, until there is none."""
        with self._lock:
            self._at_work[pool] += 1
        while True:
            with self._lock:
                if not self._waiting[uuid]:
                    del self._waiting[uuid]
                    self._at_work[pool] -= 1
                    self._idle.notify_all()
                    return
                job, since = self._waiting[uuid].popleft()
            metrics.QUEUE_SECONDS.observe(time.monotonic() - since)
            job(True)

    def _process(self, uuid: str) -> None:
        """Answer a wake-up."""
        with self._lock:
            why, ctx = self._reasons.pop(uuid)
        ctx.update_store()
        try:
            self._reconcile(uuid, why)
        except errors.ServiceUnavailable as exc:  # the database, which has logged the cause
            LOG.debug("Node %s is reconciled later (%s): %s", uuid, why, exc.message)
        except BaseException:  # the edge of a worker: the node keeps its due_at, and the sweep comes back to it
            LOG.exception("Reconciling node %s (%s) failed unexpectedly", uuid, why)


def _make_executor(workers: int) -> futurist.DynamicThreadPoolExecutor:
    """Return a pool that grows with its work: when half of its threads are busy.

    One that has just taken a job still counts as idle.
    """
    return futurist.DynamicThreadPoolExecutor(
        max_workers=workers, min_workers=min(4, workers - 1), grow_threshold=0.5, shrink_threshold=0
    )


def _stopping_error() -> errors.ServiceUnavailable:
    return errors.ServiceUnavailable(what="This conductor", reason="it is being stopped; please try again")


class DelayedWakeups:
    """Sends wake-ups at set times, for work that is sooner than the next sweep. One thread, whatever the number."""

    def __init__(self, notify: Callable[[str, str], None]) -> None:
        self._notify = notify
        self._changed = threading.Condition()
        self._heap: list[tuple[float, str]] = []
        self._next: dict[str, float] = {}
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="delayed wake-ups", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def set(self, uuid: str, after: float) -> None:
        """Wake up for a node in ``after`` seconds.

        Each node has one delayed wake-up, the one set last: with more, reconciliations that each set the next would go
        on side by side.
        """
        with self._changed:
            self._next[uuid] = time.monotonic() + after
            heapq.heappush(self._heap, (self._next[uuid], uuid))
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
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
            self._notify(uuid, "delayed wake-up")
