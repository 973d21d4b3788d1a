#!/usr/bin/env python3
"""How many times slower this machine is, at this moment, than a quiet one with two cores.

    devstack/speed.py      prints for example 1.0, or 2.7 on a slow or a busy machine; takes two seconds

For devstack/gate.sh, which multiplies its limits by it. Two processes work at once, as tests do, so other load on the
machine and a missing second core both count.
"""

import multiprocessing
import time

REFERENCE = 250.0
"""Rounds per second that two processes manage together on the reference machine (2 cores of an AMD EPYC), quiet."""

PROCESSES = 2
SECONDS = 2.0
SLOWEST = 4.0
"""Beyond this a machine is not slow but stuck, and longer limits would only hide it."""


def work() -> int:
    """Do a fixed piece of what tests do most: objects, dictionaries and strings."""
    found: dict[int, str] = {}
    total = 0
    for number in range(60_000):
        found[number % 1000] = str(number)
        total += len(found[number % 1000])
    return total


def count_rounds(until: float) -> int:
    """Return how often :func:`work` was done.

    :param until: when to stop, on the monotonic clock.
    """
    rounds = 0
    while time.monotonic() < until:
        work()
        rounds += 1
    return rounds


def slowness() -> float:
    """Return how many times slower the machine is, between 1 and :data:`SLOWEST`."""
    with multiprocessing.Pool(PROCESSES) as pool:
        rounds = sum(pool.map(count_rounds, [time.monotonic() + SECONDS] * PROCESSES, chunksize=1))
    return min(SLOWEST, max(1.0, REFERENCE * SECONDS / max(rounds, 1)))


if __name__ == "__main__":
    print(f"{slowness():.1f}")
