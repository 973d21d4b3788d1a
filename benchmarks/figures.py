"""What is done with figures: percentiles of a sample, the spread of some rounds, the factor between two sides."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

Metrics = dict[str, float]


class Spread(NamedTuple):
    """The least, the middle and the greatest of some figures."""

    least: float
    median: float
    most: float

    def __str__(self) -> str:
        if self.least == self.most:
            return number(self.median)
        return " / ".join(map(number, self))


def spread(values: Sequence[float]) -> Spread | None:
    """Return the spread of figures, None of none."""
    return Spread(min(values), statistics.median(values), max(values)) if values else None


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, between two of them if need be."""
    ordered = sorted(values)
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def latency(seconds: Sequence[float]) -> Metrics:
    """Return the percentiles of times, in milliseconds."""
    if not seconds:
        return {}
    shares = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
    return {name: percentile(seconds, share) * 1e3 for name, share in shares.items()}


def factors(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[float]:
    """Return how many times more the others took in each round that both sides have."""
    return [theirs[number] / ours[number] for number in sorted(ours) if theirs.get(number) and ours[number]]


def number(value: float) -> str:
    """Return a figure with three digits that matter."""
    if value and abs(value) < 0.01:
        return f"{value:.1g}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
