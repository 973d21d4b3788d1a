"""Counts of requests for Prometheus: by route, method and class of the status."""

from prometheus_client import Counter, Histogram

from ingot.common import metrics

_METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))


class _Tallies(dict[tuple[str, str, int], tuple[Counter, Histogram]]):
    """What counts requests and measures them, by method, path of the route, and hundreds of the status.

    What a client has made up is no key: there is no such route, or no such method.
    """

    def __missing__(self, key: tuple[str, str, int]) -> tuple[Counter, Histogram]:
        method, route, hundreds = key
        labels = method if method in _METHODS else metrics.OTHER, route or "none"
        pair = metrics.API_REQUESTS.labels(*labels, f"{hundreds}xx"), metrics.API_REQUEST_SECONDS.labels(*labels)
        if method in _METHODS:
            self[key] = pair
        return pair


TALLIES = _Tallies()
