"""Finds nodes for allocations, at a wake-up or when a sweep has found one that waits.

An allocation in state ``allocating`` is the work. Reconciling it again does no harm: a node is given in one
transaction, so a conductor that dies leaves the allocation either as it was or with its node.
"""

import functools
import random
from collections.abc import Callable

from oslo_log import log

from ingot.common import errors
from ingot.db import allocations, models
from ingot.db.engine import Database
from ingot.rpcapi import client

LOG = log.getLogger(__name__)

_MOST = 200  # candidates that are read together
_ROUNDS = 10
_SWEEP_LIMIT = 1000


class Allocator:
    """The part of a conductor that finds nodes.

    :param host: its name.
    :param submit: runs a job on a worker, one at a time for each key.
    :param is_busy: whether a job of a key waits or runs.
    :param timeout: seconds without a heartbeat after which a conductor counts as dead.
    """

    def __init__(
        self,
        db: Database,
        host: str,
        submit: Callable[[str, Callable[[], None]], object],
        is_busy: Callable[[str], bool],
        timeout: float,
    ) -> None:
        self._db = db
        self._host = host
        self._submit = submit
        self._is_busy = is_busy
        self._timeout = timeout

    def notify(self, uuid: str) -> None:
        """Wake up for an allocation."""
        key = f"allocation {uuid}"
        if not self._is_busy(key):
            self._submit(key, functools.partial(self._reconcile, uuid))

    def sweep(self) -> None:
        """Find the allocations that wait for a node: their wake-up was lost, or all nodes that fit were locked."""
        waiting = allocations.list_waiting(self._db, _SWEEP_LIMIT)
        if not waiting:
            return
        hosts = client.hosts_serving(self._db, self._timeout, "process_allocation")
        for uuid in waiting:
            if client.choose_host(uuid, hosts) == self._host:
                self.notify(uuid)

    def _reconcile(self, uuid: str) -> None:
        try:
            self._process(uuid)
        except errors.ChangedMeanwhile as exc:
            LOG.debug("%s", exc)  # deleted, or another conductor found a node; the sweep comes by if not
        except errors.ServiceUnavailable as exc:  # the database, which has logged the cause
            LOG.debug("A node for allocation %s is found later: %s", uuid, exc.message)
        except Exception:  # the edge of a worker: the allocation goes on waiting, and the sweep comes back to it
            LOG.exception("Finding a node for allocation %s failed unexpectedly", uuid)

    def _process(self, uuid: str) -> None:
        allocation = allocations.find_waiting(self._db, uuid)
        if allocation is None:
            return
        for _round in range(_ROUNDS):
            found = allocations.list_candidates(self._db, allocation, _MOST)
            if not found:
                allocations.fail(self._db, allocation, self._none_message(allocation))
                return
            free = [node for node in found if node.free]
            if not free or self._take_one(allocation, free):
                return  # with none free the sweep comes back: no node is locked for ever

    def _take_one(self, allocation: models.Allocation, free: list[allocations.Candidate]) -> bool:
        """Try the node of the allocation's name, then others by lot: searches at the same time try different ones.

        :returns: whether there is nothing more to do.
        """
        first = free[:1] if allocation.name is not None and free[0].name == allocation.name else []
        rest = free[len(first) :]
        random.shuffle(rest)
        for node in first + rest:
            try:
                if allocations.assign(self._db, allocation, node):
                    LOG.info("Allocation %s has node %s", allocation.uuid, node.uuid)
                    return True
            except errors.ChangedMeanwhile:
                raise
            except errors.Conflict as exc:
                allocations.fail(self._db, allocation, exc.message)
                return True
        return False

    def _none_message(self, allocation: models.Allocation) -> str:
        every, unused = allocations.count_matching(self._db, allocation)
        criteria = {
            "traits": ", ".join(allocation.traits),
            "candidate nodes": ", ".join(allocation.candidate_nodes),
            "owner": allocation.owner,
        }
        also = "".join(f", {name} {value}" for name, value in criteria.items() if value)
        return (
            f"Failed to process allocation {allocation.uuid}: no available nodes match resource class "
            f"{allocation.resource_class}{also}. Nodes with this resource class: {every}; of these available, without "
            f"instance, not in maintenance and in a known power state: {unused}."
        )
