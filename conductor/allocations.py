"""Finds nodes for allocations: answers a bell, or what a sweep found.

An allocation in state ``allocating`` is the work. Looking at it again does no harm: a node is given in one transaction,
so whoever dies leaves the allocation either as it was or with its node.
"""

import functools
import random
from collections.abc import Callable
from typing import Any

from oslo_log import log

from ingot.common import errors
from ingot.db import allocations, records
from ingot.db.engine import Database
from ingot.rpcapi import sharing

LOG = log.getLogger(__name__)

_MOST = 200  # candidates that are looked at together
_ROUNDS = 10
_SWEEP_LIMIT = 1000


class Allocator:
    """The part of a conductor that finds nodes.

    :param host: its name.
    :param submit: runs a job on a worker, one at a time for each key.
    :param is_busy: whether a job of a key waits or runs.
    :param timeout: seconds of silence after which a conductor counts as dead.
    """

    def __init__(
        self,
        db: Database,
        host: str,
        submit: Callable[[str, Callable[[], None]], Any],
        is_busy: Callable[[str], bool],
        timeout: float,
    ) -> None:
        self._db = db
        self._host = host
        self._submit = submit
        self._is_busy = is_busy
        self._timeout = timeout

    def ring(self, uuid: str) -> None:
        """Somebody must look at an allocation."""
        key = f"allocation {uuid}"
        if not self._is_busy(key):
            self._submit(key, functools.partial(self._look, uuid))

    def sweep(self) -> None:
        """Looks at the allocations that wait for a node: their bell was not heard, or all that fits was worked on."""
        waiting = allocations.waiting(self._db, _SWEEP_LIMIT)
        if not waiting:
            return
        hosts = sharing.hosts(self._db, self._timeout, "process_allocation")
        for uuid in waiting:
            if sharing.chosen(uuid, hosts) == self._host:
                self.ring(uuid)

    def _look(self, uuid: str) -> None:
        try:
            self._process(uuid)
        except errors.ChangedMeanwhile as exc:
            LOG.debug("%s", exc)  # deleted, or somebody else found a node; the sweep comes by if not
        except Exception:  # the edge of a worker: the allocation goes on waiting, and the sweep comes back to it
            LOG.exception("Looking for a node for allocation %s failed unexpectedly", uuid)

    def _process(self, uuid: str) -> None:
        allocation = allocations.find(self._db, uuid)
        if allocation is None:
            return
        for _round in range(_ROUNDS):
            found = allocations.candidates(self._db, allocation, _MOST)
            if not found:
                allocations.fail(self._db, allocation, self._why_none(allocation))
                return
            free = [node for node in found if node.free]
            if not free or self._take_one(allocation, free):
                return  # with none free the sweep comes back: nobody works on a node for ever

    def _take_one(self, allocation: records.Record, free: list[records.Record]) -> bool:
        """
        :returns: whether there is nothing more to do.
        """
        for node in _shuffled(allocation, free):
            try:
                if not allocations.take(self._db, allocation, node):
                    continue
            except errors.ChangedMeanwhile:
                raise
            except errors.Conflict as exc:
                allocations.fail(self._db, allocation, exc.message)
                return True
            LOG.info("Allocation %s has node %s", allocation.uuid, node.uuid)
            return True
        return False

    def _why_none(self, allocation: records.Record) -> str:
        every, unused = allocations.counted(self._db, allocation)
        wishes = {
            "traits": ", ".join(allocation.traits),
            "candidate nodes": ", ".join(allocation.candidate_nodes),
            "owner": allocation.owner,
        }
        also = "".join(f", {name} {value}" for name, value in wishes.items() if value)
        return (
            f"Failed to process allocation {allocation.uuid}: no available nodes match resource class "
            f"{allocation.resource_class}{also}. Nodes with this resource class: {every}; of these available, without "
            f"instance, not in maintenance and in a known power state: {unused}."
        )


def _shuffled(allocation: records.Record, free: list[records.Record]) -> list[records.Record]:
    """The nodes in the order in which they are tried: the one of the allocation's name, then by lot, so that many who
    search at once do not all try the same."""
    first = free[:1] if allocation.name is not None and free[0].name == allocation.name else []
    rest = free[len(first) :]
    random.shuffle(rest)
    return first + rest
