"""Runs loads on several services in turn: A B A, A B A, ... The last A is the first one again."""

import asyncio
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence

from benchmarks import loads, report, scenarios
from benchmarks.loads import Subject
from benchmarks.report import Sample

LONGEST_S = 600.0
"""After this time a load on one side is given up."""


async def compare(
    subjects: Sequence[Subject],
    chosen: Sequence[str],
    size: loads.Size,
    rounds: int,
    keep: Callable[[Sequence[Sample]], None],
) -> None:
    """Measure some operations on all sides: each round has all of them, and each side in turn.

    :param subjects: ours, and the others; ours is measured again after the others, to see what noise does.
    :param keep: is given all that was found so far, whenever there is more.
    """
    everyone = [*subjects, dataclasses.replace(subjects[0], name=report.AGAIN)]
    samples: list[Sample] = []
    try:
        for number in range(-1, rounds):
            for load in (load for load in scenarios.LOADS if {*chosen} & {*load.operations}):
                began = time.monotonic()
                if number < 0:
                    for subject in subjects:
                        await _measure(load, subject, size.little(), number)
                else:
                    for subject in everyone:
                        samples += await _measure(load, subject, size, number)
                    keep([sample for sample in samples if sample.operation in chosen])
                what = f"round {number + 1} of {rounds}" if number >= 0 else "to become warm"
                _say(f"{what}: {', '.join(load.operations)}: {time.monotonic() - began:.0f} s")
    finally:
        for subject in subjects:
            subject.api.client.close()


async def _measure(load: scenarios.Load, subject: Subject, size: loads.Size, number: int) -> list[Sample]:
    """Return what a load finds; all until then if it fails, which takes nothing from other loads and sides."""
    found: list[Sample] = []
    try:
        async with asyncio.timeout(LONGEST_S):
            async for name, metrics in load.measure(subject, size):
                found.append(Sample(name, subject.name, number, metrics))
    except Exception as exc:  # noqa: BLE001 it is reported
        subject.problems.append(f"{load.operations[len(found)]} was given up: {exc!r}")
    return found


def _say(text: str) -> None:
    print(f"benchmark: {text}", file=sys.stderr, flush=True)
