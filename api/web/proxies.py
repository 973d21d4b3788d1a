"""Where a request comes from when proxies stand before the API: what headers say of it, if a trusted proxy says it.

As oslo.middleware's ``http_proxy_to_wsgi`` this corrects the environment of a request, so that everything behind it has
the client's address, scheme and host. It believes proxies in ``[api] trusted_proxies`` and no other client: a chain of
addresses is read from its end, up to the first that is no proxy.
"""

import ipaddress
import urllib.request
from collections.abc import Sequence
from typing import Any, NamedTuple

from oslo_config import cfg
from oslo_log import log

from ingot.common import errors, networks

LOG = log.getLogger(__name__)

UNKNOWN = ""
"""The address of a client of which none is known."""

HIDDEN = "ingot.client_is_hidden"
"""Key of the environment of a request that a proxy seems to pass on, of which it is not known for whom."""

HEADERS = frozenset(("HTTP_FORWARDED", *(f"HTTP_X_FORWARDED_{name}" for name in ("FOR", "PROTO", "HOST", "PREFIX"))))
"""Of a proxy, in the words of WSGI."""

_MOST_WARNINGS = 100


class _Route(NamedTuple):
    """How a request came here, by the headers of one kind, in the order of the proxies that it has passed.

    :param addresses: of whom each proxy had the request from.
    """

    addresses: Sequence[str]
    schemes: Sequence[str]
    hosts: Sequence[str]


def _parse_address(given: str) -> str | None:
    """Return an address as headers have it, with a port perhaps; None if it is none (``unknown``, a name)."""
    text = given
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    return str(getattr(address, "ipv4_mapped", None) or address)


class ProxyHeaders:
    """Corrects the environment of requests that have come by way of proxies.

    :param conf: [oslo_middleware] enable_proxy_headers_parsing and [api] trusted_proxies.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._parses: bool = conf.oslo_middleware.enable_proxy_headers_parsing
        self._trusted: Sequence[networks.Network] = conf.api.trusted_proxies
        self._warned: set[str] = set()

    def correct(self, environ: dict[str, Any]) -> None:
        """Correct the environment of a request with :data:`HEADERS`, or from an address of IPv4 written as one of IPv6.

        One client has one address, however a server listens.
        """
        peer = environ.get("REMOTE_ADDR", UNKNOWN)
        peer = environ["REMOTE_ADDR"] = _parse_address(peer) or peer
        routes = _read_routes(environ)
        if not routes and "HTTP_X_FORWARDED_PREFIX" not in environ:
            return
        if not self._parses or (peer != UNKNOWN and not networks.contain(self._trusted, peer)):
            environ[HIDDEN] = True
            self._warn(
                peer, "count for nothing: see [oslo_middleware] enable_proxy_headers_parsing, [api] trusted_proxies"
            )
            return
        found = [(route, *self._follow(peer, route)) for route in routes]
        if len({client for _route, client, _passed in found}) > 1:
            # A client can send the one that its proxy does not set.
            environ[HIDDEN] = True
            self._warn(peer, "are Forwarded and X-Forwarded-For that contradict each other: let it remove one")
            return
        for route, client, passed in found[:1]:
            environ["REMOTE_ADDR"] = client
            if (scheme := _pick(route.schemes, passed)) in ("http", "https"):
                environ["wsgi.url_scheme"] = scheme
            if host := _pick(route.hosts, passed):
                environ["HTTP_HOST"] = host
        prefix = environ.get("HTTP_X_FORWARDED_PREFIX", "").rstrip("/")
        if prefix.startswith("/"):
            environ["SCRIPT_NAME"] = prefix + environ.get("SCRIPT_NAME", "")

    def _follow(self, peer: str, route: _Route) -> tuple[str, int]:
        """Return the client's address, and how many proxies have passed its request on."""
        client, passed = peer, 0
        for given in reversed(route.addresses):
            address = _parse_address(given)
            if address is None:
                break
            client, passed = address, passed + 1
            if not networks.contain(self._trusted, client):
                break
        return client, max(passed, 1)

    def _warn(self, peer: str, why: str) -> None:
        if peer not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(peer)
            LOG.warning("Headers of a proxy at %s %s", peer or "the unix socket", why)


def _read_routes(environ: dict[str, Any]) -> list[_Route]:
    """Return what the headers of RFC 7239, and those that were there before, say."""
    routes = []
    if forwarded := environ.get("HTTP_FORWARDED"):
        hops = [_parse_hop(hop) for hop in urllib.request.parse_http_list(forwarded)]
        routes.append(_Route(*([hop.get(name, "") for hop in hops] for name in ("for", "proto", "host"))))
    named = (environ.get(f"HTTP_X_FORWARDED_{name}", "") for name in ("FOR", "PROTO", "HOST"))
    older = [[part.strip() for part in value.split(",") if part.strip()] for value in named]
    return [*routes, _Route(*older)] if any(older) else routes


def _parse_hop(hop: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in hop.split(";"))
    return {name.strip().lower(): value.strip().strip('"') for name, _, value in pairs}


def _pick(values: Sequence[str], passed: int) -> str:
    """Return what the proxy nearest to the client has said; proxies that add nothing leave the list shorter."""
    return values[-min(passed, len(values))] if values else ""


def check_machine(conf: cfg.ConfigOpts, path: str, address: str, peer: str | None) -> None:
    """Refuse a client that is no machine, as far as networks tell.

    :param path: of the route.
    :param address: of the client.
    :param peer: where the request came from at last.
    :raises Forbidden: its address is in none of those of machines.
    """
    permitted = conf.api.machine_networks
    if permitted and not networks.contain(permitted, address):
        known = address or f"an unknown address, by way of {peer or 'the unix socket'}"
        LOG.warning("%s is refused to %s, which is in no network of [api] machine_networks", path, known)
        raise errors.Forbidden("Machines and their agents are answered on their networks only.")
