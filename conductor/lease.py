"""For how long a conductor may be sure that no other one has declared it dead."""

import time
from collections.abc import Callable

from oslo_config import cfg


def _awake_or_not() -> float:
    """Seconds that go on while the process is frozen, and while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Each sign of life that the database takes renews it. It ends well before the others may act on their silence."""

    def __init__(self, conf: cfg.ConfigOpts, clock: Callable[[], float] = _awake_or_not) -> None:
        interval, timeout = conf.conductor.heartbeat_interval, conf.conductor.heartbeat_timeout
        self._seconds = max(timeout - 2 * interval, 2 * interval)
        self.now = clock
        self._began = self._renewed = clock()

    def renew(self, moment: float) -> float:
        """To be called after a sign of life.

        :param moment: the time before it was given.
        :returns: for how many seconds there was none, if that was too long and the lease begins anew; else 0.
        """
        silent, self._renewed = moment - self._renewed, moment
        if silent <= self._seconds:
            return 0.0
        self._began = moment
        return silent

    def covers(self, moment: float) -> bool:
        """Whether it has lasted without a break from a moment until now."""
        return self._began <= moment and self.now() - self._renewed <= self._seconds
