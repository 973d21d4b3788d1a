"""Allocations by many at once: no node is given twice, nothing is half given."""

import random
import threading
import uuid
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from ingot.common import errors
from ingot.conductor import allocations as finding
from ingot.db import allocations, listing, models, nodes
from tests import database

CLASS = "baremetal"
THREADS = 8


class AllocationsOnSQLite(database.TestCase):
    def machine(self, **values: Any) -> models.Node:
        return database.make_node(self.db, **{"resource_class": CLASS, **values})

    def wish(self, **values: Any) -> str:
        requested = {"uuid": str(uuid.uuid4()), "resource_class": CLASS, "state": allocations.ALLOCATING, **values}
        allocations.create(self.db, requested)
        return str(requested["uuid"])

    def found(self, wish: str) -> models.Node:
        return listing.get(self.db, allocations.SOURCE, wish)

    def together(self, work: Callable[[finding.Allocator], None]) -> None:
        """Do the same in several threads, each with its own connections, as that many conductors would."""
        failures: list[BaseException] = []
        start = threading.Barrier(THREADS)

        def run() -> None:
            db = self.database.another()
            allocator = finding.Allocator(db, "any", lambda _key, job: job(), lambda _key: False, 60)
            try:
                start.wait()
                work(allocator)
            except BaseException as exc:  # noqa: BLE001 - it is raised again below
                failures.append(exc)

        threads = [threading.Thread(target=run) for _each in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def pairs(self) -> set[tuple[str, str]]:
        """Return (allocation, node) as the nodes have it."""
        own = nodes.NODES.c
        with self.db.single() as connection:
            rows = connection.execute(sa.select(own.instance_uuid, own.uuid).where(own.instance_uuid.is_not(None)))
            return {(instance, node) for instance, node in rows}

    def test_twenty_allocations_get_twenty_nodes(self) -> None:
        machines = {self.machine().uuid for _each in range(20)}
        requested = [self.wish() for _each in range(20)]
        self.together(
            lambda allocator: [allocator.notify(wish) for wish in random.sample(requested, len(requested))] and None
        )
        found = [self.found(wish) for wish in requested]
        self.assertEqual({allocations.ACTIVE}, {one.state for one in found}, [one.last_error for one in found])
        self.assertEqual(machines, {one.node_uuid for one in found})
        self.assertEqual({(one.uuid, one.node_uuid) for one in found}, self.pairs())

    def test_of_too_many_allocations_the_others_fail(self) -> None:
        machines = {self.machine().uuid for _each in range(5)}
        requested = [self.wish() for _each in range(12)]
        self.together(lambda allocator: [allocator.notify(wish) for wish in requested] and None)
        found = [self.found(wish) for wish in requested]
        got = [one for one in found if one.state == allocations.ACTIVE]
        self.assertEqual(machines, {one.node_uuid for one in got})
        self.assertEqual(7, sum(one.state == allocations.ERROR for one in found))
        self.assertEqual({(one.uuid, one.node_uuid) for one in got}, self.pairs())

    def test_deleting_while_nodes_are_found_leaves_no_node_behind(self) -> None:
        for _each in range(10):
            self.machine()
        requested = [self.wish() for _each in range(10)]

        def work(allocator: finding.Allocator) -> None:
            for turn, wish in enumerate(random.sample(requested, len(requested))):
                if turn % 2:
                    allocator.notify(wish)
                    continue
                try:
                    allocations.delete(self.db, self.found(wish))
                except (errors.NotFound, errors.ChangedMeanwhile):
                    continue

        self.together(work)
        own = allocations.ALLOCATIONS.c
        with self.db.single() as connection:
            left = connection.execute(
                sa.select(own.uuid, nodes.NODES.c.uuid).join_from(allocations.ALLOCATIONS, nodes.NODES)
            )
            self.assertEqual({(wish, node) for wish, node in left}, self.pairs())

    def test_one_backfill_of_many_gets_the_node(self) -> None:
        node = self.machine(provision_state="active")
        done: list[str] = []

        def work(_allocator: finding.Allocator) -> None:
            requested = {"uuid": str(uuid.uuid4()), "resource_class": CLASS}
            try:
                allocations.backfill(self.db, requested, node)
            except errors.Conflict:
                return
            done.append(requested["uuid"])

        self.together(work)
        self.assertEqual({(done[0], node.uuid)}, self.pairs())
        self.assertEqual((1, allocations.ACTIVE), (len(done), self.found(done[0]).state))
