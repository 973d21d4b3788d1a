"""Which BMCs do not answer, and when housekeeping may call them again: a circuit breaker for each BMC.

Only housekeeping is held off. What users and flows need is always tried, and the first answer closes the circuit.
"""

import contextlib
import datetime
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ingot.common import clock, errors, metrics, tracing


class _Pause(NamedTuple):
    seconds: float
    until: float
    since: datetime.datetime
    reason: str


class Silence(NamedTuple):
    """A BMC that does not answer.

    :param since: when a call was not answered for the first time since it last was.
    :param reason: what became of the last call.
    """

    bmc: str
    since: datetime.datetime
    reason: str


class CircuitBreakers:
    """Of all BMCs that one conductor calls; in memory, as a restart may begin to count anew.

    :param first: seconds for which housekeeping leaves a silent BMC alone. Each pause in a row is twice as long.
    :param longest: seconds that a pause has at most.
    :param now: a clock that does not jump.
    """

    def __init__(self, first: float, longest: float, now: Callable[[], float] = time.monotonic) -> None:
        self._first = first
        self._longest = longest
        self._now = now
        self._lock = threading.Lock()
        self._pauses: dict[str, _Pause] = {}
        self._bmcs: dict[str, str] = {}

    @contextlib.contextmanager
    def observe_call(self, node: str, bmc: str, driver: str = metrics.OTHER) -> Iterator[None]:
        """Note whether the BMC of a node answers a call, which runs inside.

        :param node: its uuid.
        :param bmc: names the BMC; nodes that share one give the same name.
        :param driver: that of the node, for the count of calls; drivers of before there were metrics name none.
        """
        outcome = "answered"
        try:
            with tracing.span("call BMC", kind="CLIENT", server_address=bmc, node_uuid=node):
                yield
        except errors.HardwareUnreachable as exc:
            outcome = "unanswered"
            self._open(node, bmc, exc.message)
            raise
        except errors.HardwareError:  # a refusal is an answer
            outcome = "refused"
            self._close(node, bmc)
            raise
        else:
            self._close(node, bmc)
        finally:
            metrics.BMC_CALLS.labels(driver, outcome).inc()

    def count_open(self) -> int:
        """Return how many BMCs did not answer the last call, which was not long ago."""
        with self._lock:
            self._forget()
            return len(self._pauses)

    def list_open(self, most: int) -> list[Silence]:
        """Return the BMCs that did not answer the last call, those first that are silent for longest.

        :param most: how many are returned.
        """
        with self._lock:
            self._forget()
            silent = [Silence(bmc, pause.since, pause.reason) for bmc, pause in self._pauses.items()]
        return sorted(silent, key=lambda one: one.since)[:most]

    def is_unresponsive(self, node: str) -> bool:
        """Return whether the last call to the BMC of a node was not answered."""
        with self._lock:
            return self._bmcs.get(node) in self._pauses

    def can_call(self, bmc: str) -> bool:
        """Return whether housekeeping may call a BMC now."""
        with self._lock:
            pause = self._pauses.get(bmc)
            return pause is None or self._now() >= pause.until

    def _close(self, node: str, bmc: str) -> None:
        with self._lock:
            self._pauses.pop(bmc, None)
            self._bmcs.pop(node, None)

    def _open(self, node: str, bmc: str, reason: str) -> None:
        with self._lock:
            self._forget()
            self._bmcs[node] = bmc
            last = self._pauses.get(bmc)
            since = last.since if last else clock.now()
            if last is not None and self._now() < last.until:
                # Users insist, or the machines of one chassis are called one after the other.
                self._pauses[bmc] = last._replace(reason=reason)
                return
            seconds = min(2 * last.seconds if last else self._first, self._longest)
            self._pauses[bmc] = _Pause(seconds, self._now() + seconds, since, reason)

    def _forget(self) -> None:
        """Remove BMCs that housekeeping would have called again by now, if it had to do with them still.

        Their nodes were deleted, have another address, are in maintenance, or another conductor has them.
        """
        last = self._now() - self._longest - self._first
        for bmc in [bmc for bmc, pause in self._pauses.items() if pause.until < last]:
            del self._pauses[bmc]
        for node in [node for node, bmc in self._bmcs.items() if bmc not in self._pauses]:
            del self._bmcs[node]
