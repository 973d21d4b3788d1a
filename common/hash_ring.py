"""Which conductor owns which node: a consistent hash ring on tooz (used by api through rpcapi, and by conductor).

Members of a ring are the online conductors of a conductor group that have the node's driver enabled, a hardware type
or a classic driver; the key is the node's uuid. Rings are built from rows of the database and are cheap to keep:
rebuilding happens only when the membership differs from what it was.
"""

import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tooz import hashring

from ingot.common import errors


class Member(NamedTuple):
    """A conductor that may own nodes of a driver in its group."""

    hostname: str
    conductor_group: str
    driver: str


class Rings:
    """The rings of all (conductor group, driver) pairs.

    :param members: returns the members that are online now; called at most every ``reset_interval`` seconds.
    :param clock: monotonic seconds.
    :param reset_interval: seconds for which an answer of ``members`` is used.
    :param partition_exponent: 2**n points per member; more spread better and build slower.
    """

    def __init__(
        self,
        members: Callable[[], Iterable[Member]],
        clock: Callable[[], float],
        reset_interval: float,
        partition_exponent: int,
    ) -> None:
        self._members = members
        self._clock = clock
        self._reset_interval = reset_interval
        self._partitions = 2**partition_exponent
        self._lock = threading.Lock()
        self._known: frozenset[Member] | None = None
        self._rings: dict[tuple[str, str], hashring.HashRing] = {}
        self._read_at = float("-inf")

    def owner(self, node_uuid: str, group: str, driver: str) -> str:
        """The hostname of the conductor that owns a node.

        :raises NoConductor: no online conductor of the group has the driver enabled.
        """
        ring = self._current().get((group, driver))
        if ring is None:  # perhaps somebody joined since the last look
            ring = self._current(forced=True).get((group, driver))
        if ring is None:
            raise errors.NoConductor(driver=driver, group=group)
        return next(iter(ring.get_nodes(node_uuid.encode(), replicas=1)))

    def forget(self) -> None:
        """Look at the membership again at the next question."""
        with self._lock:
            self._read_at = float("-inf")

    def _current(self, forced: bool = False) -> dict[tuple[str, str], hashring.HashRing]:
        with self._lock:
            if forced or self._clock() - self._read_at >= self._reset_interval:
                members = frozenset(self._members())
                if members != self._known:
                    self._rings = self._build(members)
                    self._known = members
                self._read_at = self._clock()
            return self._rings

    def _build(self, members: frozenset[Member]) -> dict[tuple[str, str], hashring.HashRing]:
        hosts: dict[tuple[str, str], set[str]] = {}
        for member in members:
            hosts.setdefault((member.conductor_group, member.driver), set()).add(member.hostname)
        return {key: hashring.HashRing(sorted(names), partitions=self._partitions) for key, names in hosts.items()}
