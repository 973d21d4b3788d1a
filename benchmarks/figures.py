"""What is done with figures: percentiles of a sample, the spread of some rounds, factors, slopes."""

import statistics
from collections.abc import Mapping, Sequence

Metrics = dict[str, float]


def spread(values: Sequence[float]) -> str:
    """Return the least, the middle and the greatest of some figures; one, if they are the same; a dash of none."""
    if not values:
        return "-"
    texts = [number(value) for value in (min(values), statistics.median(values), max(values))]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


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


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return by how much a cost grows with each thousand of what it grows with: the line through all points."""
    return 1000 * statistics.linear_regression(sizes, costs).slope if len(set(sizes)) > 1 else 0.0


def number(value: float) -> str:
    """Return a figure with three digits that matter."""
    if value and abs(value) < 0.01:
        return f"{value:.1g}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
