"""Connections to the embedded server: how many there may be, and how much and how slowly may arrive on each.

Neither a connection nor a part of a request costs a thread, so that slow and silent clients keep nobody waiting.
"""

import asyncio
import collections
import contextlib
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple, cast

import httptools
from oslo_log import log
from uvicorn.protocols.http import httptools_impl

from ingot.api import bridge
from ingot.api.web import faults
from ingot.common import errors, networks

LOG = log.getLogger(__name__)

_HANDSHAKE_S = 10
"""Seconds within which a client must have agreed on TLS."""


class RequestRefused(errors.IngotError):
    """A request that is no HTTP, or that is too large or too slow to be one."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.code = status


class Limits(NamedTuple):
    """
    :param head: bytes of the URL and the headers of a request.
    :param arrival: seconds within which a request must have arrived.
    :param from_address: connections from one address.
    :param at_all: connections.
    :param unlimited: networks from which there may be any number.
    """

    head: int
    arrival: float
    from_address: int
    at_all: int
    unlimited: Sequence[networks.Network]


class Guests:
    """All connections of a server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._by_address: dict[str, set[Door]] = collections.defaultdict(set)
        self._count = 0

    def admit(self, door: "Door") -> bool:
        """Make room for one more, if need be at the cost of the one that has been idle for longest.

        :returns: whether it may come in.
        """
        same, limits = self._by_address[door.address], self._limits
        is_limited = door.address != "" and not networks.contain(limits.unlimited, door.address)
        if is_limited and len(same) >= limits.from_address and not _close_idlest(same):
            LOG.debug("A connection from %s is refused: there are %d ([api] max_connections_per_address)", *_name(same))
            return False
        everyone = (one for doors in self._by_address.values() for one in doors)
        if self._count >= limits.at_all and not _close_idlest(everyone):
            LOG.warning("A connection from %s is refused: there are %d, and none is idle", door.address, self._count)
            return False
        same.add(door)
        self._count += 1
        return True

    def leave(self, door: "Door") -> None:
        """Forget a connection that is closed."""
        same = self._by_address[door.address]
        if door in same:
            same.remove(door)
            self._count -= 1
        if not same:
            del self._by_address[door.address]
