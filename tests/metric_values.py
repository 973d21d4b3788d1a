"""Reads metrics as Prometheus would: in this process, or from what another one serves."""

from typing import NamedTuple

from prometheus_client import parser

from ingot.common import metrics


class Sample(NamedTuple):
    """One series.

    :param name: of a histogram, with ``_bucket``, ``_sum`` or ``_count``.
    """

    name: str
    labels: dict[str, str]
    value: float


def parse(text: str) -> list[Sample]:
    """Return all series of an answer of ``GET /metrics``."""
    return [
        Sample(sample.name, sample.labels, sample.value)
        for family in parser.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    ]


def read(name: str, **labels: str) -> float:
    """Return the value of a series in this process; 0 if there is none yet."""
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def list_series(name: str) -> list[dict[str, str]]:
    """Return the labels of all series of a metric in this process."""
    return [sample.labels for sample in parse(metrics.render(metrics.Part.ALL).decode()) if sample.name == name]
