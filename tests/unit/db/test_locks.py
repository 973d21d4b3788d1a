"""The lock of a node as many conductors see it that take it, write, give it back, and steal it from each other."""

import collections
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import testtools

from ingot.common import errors
from ingot.db import models, nodes
from tests import database, linearizability
from tests.linearizability import Operation

HOSTS = tuple(f"conductor-{number}" for number in range(6))
ROUNDS = 12
REFUSED = "refused"


class Lock(NamedTuple):
    """:param epoch: grows whenever the lock is taken."""

    holder: str | None = None
    epoch: int = 0


def model(lock: Lock, operation: Operation) -> Iterator[Lock]:
    """Yield the states that an operation may leave a lock in: see ``linearizability.Model``.

    A conductor that takes it learns so by a second read, and is refused too if it was stolen in between.

    Who takes it learns so by a second look, and is refused too if it was stolen in between.
    """
    what, host, about = operation.done
    taken = Lock(host, lock.epoch + 1)
    if what == "take":
        free = lock.holder is None or lock.holder in about
        if free and operation.seen in (taken.epoch, REFUSED):
            yield taken
        if not free and operation.seen == REFUSED:
            yield lock
    elif (lock == Lock(host, about)) == (operation.seen != REFUSED):
        yield Lock(None, lock.epoch) if what == "release" and operation.seen != REFUSED else lock


class TestModel(testtools.TestCase):
    def explained(self, last: Lock, *history: Operation) -> bool:
        return linearizability.explains(model, Lock(), last, history)

    def test_one_after_the_other(self) -> None:
        history = (
            Operation(0, 1, ("take", "a", ()), 1),
            Operation(2, 3, ("take", "b", ()), REFUSED),
            Operation(4, 5, ("release", "a", 1), None),
            Operation(6, 7, ("take", "b", ()), 2),
            Operation(8, 9, ("write", "a", 1), REFUSED),
        )
        self.assertTrue(self.explained(Lock("b", 2), *history))
        self.assertFalse(self.explained(Lock(None, 2), *history), "it was not released")
        self.assertFalse(self.explained(Lock("b", 2), *history[:2], *history[3:]), "two have it at a time")
        late = history[-1]._replace(seen=None)
        self.assertFalse(self.explained(Lock("b", 2), *history[:-1], late), "who lost it has written")

    def test_at_the_same_time(self) -> None:
        ours, theirs = Operation(0, 9, ("take", "a", ()), 2), Operation(1, 8, ("take", "b", ()), 1)
        given_back = Operation(2, 3, ("release", "b", 1), None)
        self.assertTrue(self.explained(Lock("a", 2), ours, theirs, given_back))
        self.assertFalse(self.explained(Lock("a", 2), ours, theirs, given_back._replace(began=10, ended=11)))


class LocksOnSQLite(database.TestCase):
    def test_can_be_explained_by_one_order_of_what_was_done(self) -> None:
        node = database.make_node(self.db)
        history: list[Operation] = []
        failures: list[BaseException] = []
        start = threading.Barrier(len(HOSTS))

        def conduct(host: str) -> None:
            try:
                start.wait()
                _Conductor(self.db, node, host, history.append).work()
            except BaseException as exc:  # noqa: BLE001 - it is raised in the test's own thread
                failures.append(exc)

        threads = [threading.Thread(target=conduct, args=(host,)) for host in HOSTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures)
        end = nodes.get(self.db, node.uuid)
        last = Lock(end.reservation, end.lock_epoch)
        history.sort(key=lambda operation: operation.began)
        self.assertTrue(linearizability.explains(model, Lock(), last, history), history)
        seen = collections.Counter((done[0], seen == REFUSED) for _began, _ended, done, seen in history)
        self.assertGreater(seen["take", False], 0, seen)


class _Conductor:
    """Takes the lock, works under it, gives it back; sometimes it takes others for dead who are not."""

    def __init__(self, db: Any, node: models.Node, host: str, note: Callable[[Operation], None]) -> None:
        self._db, self._node, self._host, self._note = db, node, host, note
        self._chance = random.Random(host)  # noqa: S311 - no secret

    def work(self) -> None:
        for _round in range(ROUNDS):
            dead = tuple(host for host in HOSTS if host != self._host and self._chance.random() < 0.1)
            epoch = self._did(("take", self._host, dead), lambda dead=dead: self._take(dead))
            if epoch is not None:
                for what, values in (("write", {"last_error": self._host}), ("release", nodes.UNLOCKED)):
                    self._did((what, self._host, epoch), lambda values=values: self._write(values))

    def _take(self, dead: tuple[str, ...]) -> int:
        self._locked = nodes.lock(self._db, self._node.uuid, self._host, "a test", dead)
        return int(self._locked.lock_epoch)

    def _write(self, values: Any) -> None:
        nodes.write_locked(self._db, self._locked, values)

    def _did(self, done: tuple[str, str, Any], call: Callable[[], Any]) -> Any:
        began = time.monotonic_ns()
        try:
            seen = call()
        except (errors.NodeLocked, errors.LockLost):
            seen = REFUSED
        self._note(Operation(began, time.monotonic_ns(), done, seen))
        return None if seen == REFUSED else seen
