"""Runs loads on several services in turn: A B A, A B A, ... The last A is the first one again."""

import dataclasses
import sys
from collections.abc import AsyncIterator, Sequence

from benchmarks import loads, report, scenarios
from benchmarks.loads import Subject
from benchmarks.report import Sample


async def compare(subjects: Sequence[Subject], chosen: Sequence[str], size: loads.Size, rounds: int) -> list[Sample]:
    """Measure some operations, and return what was found.

    :param subjects: ours, and the others; ours is measured again after the others, to see what noise does.
    """
    again = dataclasses.replace(subjects[0], name=report.AGAIN)
    everyone = [*subjects, again]
    samples: list[Sample] = []
    try:
        for load in [kind(size) for kind in scenarios.LOADS if set(chosen) & set(kind.operations)]:
            try:
                async for sample in _run(load, load.portions(chosen), everyone, rounds):
                    samples.append(sample)
            except Exception as exc:  # noqa: BLE001 what the other loads find is not lost
                subjects[0].problems.append(f"{type(load).__name__} was given up: {exc!r}")
    finally:
        for subject in everyone:
            subject.api.client.close()
    return [sample for sample in samples if sample.operation in chosen]


async def _run(
    load: loads.Load, portions: Sequence[Sequence[str]], subjects: Sequence[Subject], rounds: int
) -> AsyncIterator[Sample]:
    for subject in subjects:
        _say(f"{', '.join(portions[0])} ...: prepare {subject.name}")
        await load.prepare(subject)
        for portion in portions if subject.name != report.AGAIN else ():
            await load.warm_up(subject, portion)
    for number in range(rounds):
        for portion in portions:
            for subject in subjects:
                found = await load.measure(subject, portion)
                for name, metrics in found.items():
                    yield Sample(name, subject.name, number, metrics)
            _say(f"round {number + 1} of {rounds}: {', '.join(portion)}")
    for subject in subjects:
        await load.finish(subject)


def _say(text: str) -> None:
    print(f"benchmark: {text}", file=sys.stderr, flush=True)
