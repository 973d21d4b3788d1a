#!/usr/bin/env python3
"""How many times slower this machine is, at this moment, than a quiet one with two cores.

    devstack/speed.py      prints for example 1.0, or 2.7 on a slow machine; takes two seconds

For devstack/gate.sh, which multiplies its limits by it. Two processes work at once, as tests do, so processors that
slow each other down count, and a missing second one. The load of this machine does not: the limits allow for the steps
that run beside each other, and it is they that load it.
"""

import multiprocessing
import os
import time

REFERENCE = 125.0
"""Rounds that a process manages per second of a processor on the reference machine (2 cores of an AMD EPYC)."""

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


def rate(until: float) -> float:
    """Return how often :func:`work` is done per second of a processor.

    :param until: when to stop, on the monotonic clock.
    """
    rounds, began = 0, time.process_time()
    while time.monotonic() < until:
        work()
        rounds += 1
    return rounds / max(time.process_time() - began, 0.001)


def slowness() -> float:
    """Return how many times slower the machine is, between 1 and :data:`SLOWEST`."""
    with multiprocessing.Pool(PROCESSES) as pool:
        rates = pool.map(rate, [time.monotonic() + SECONDS] * PROCESSES, chunksize=1)
    shared = PROCESSES / min(PROCESSES, len(os.sched_getaffinity(0)))
    return min(SLOWEST, max(1.0, shared * REFERENCE * PROCESSES / max(sum(rates), 1)))


if __name__ == "__main__":
    print(f"{slowness():.1f}")
