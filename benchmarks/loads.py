"""How a service is loaded and metered: requests again and again, and batches of nodes that live together."""

import asyncio
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from benchmarks import figures, processes, wire
from benchmarks.api import FAILURES, Api, Watcher

GROUP = 25
"""Nodes of one resource class."""


@dataclass(frozen=True)
class Size:
    """How much is done.

    :param stock: nodes in the database when lists are read.
    :param nodes: nodes that live through one measurement.
    :param at_once: how many of them at the same time.
    :param seconds: of each measurement of a read or a heartbeat.
    :param connections: clients that read at the same time.
    """

    stock: int = 1000
    nodes: int = 40
    at_once: int = 20
    seconds: float = 4.0
    connections: int = 4


QUICK = Size(stock=100, nodes=10, at_once=10, seconds=1.0)
WARM = Size(nodes=8, at_once=8, seconds=0.3)


@dataclass
class Subject:
    """A running service, as the loads and the meter see it.

    :param pids: its processes.
    :param database_pids: those of its database server.
    :param count: returns the counters of the database server.
    :param problems: what went wrong under load.
    """

    name: str
    api: Api
    pids: Sequence[int]
    database_pids: Sequence[int] = ()
    count: Callable[[], Mapping[str, int]] = dict
    problems: list[str] = field(default_factory=list)


class Meter:
    """Measures what a service, its database server and this process use in a ``with`` block."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __enter__(self) -> "Meter":
        self._counted = self._subject.count()
        self._used = self._cpu()
        self._own = time.process_time()
        self._began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._began
        self.own = time.process_time() - self._own
        self.used = processes.cpu_between(self._used, self._cpu())
        after = self._subject.count()
        self.counted = {name: after[name] - before for name, before in self._counted.items()}

    def _cpu(self) -> dict[int, float]:
        return processes.cpu([*self._subject.pids, *self._subject.database_pids])

    def per_operation(self, operations: int) -> figures.Metrics:
        found = {"client_core_share": self.own / self.wall}
        if operations:
            found["server_cpu_per_op_ms"] = 1e3 * self.used / operations
            found |= {f"{name}_per_op": value / operations for name, value in self.counted.items()}
        return found


Found = dict[str, figures.Metrics]


class Load:
    """One sort of load.

    :cvar operations: what it measures.
    :cvar in_one_go: each of them follows from the one before.
    """

    operations: ClassVar[Sequence[str]]
    in_one_go: ClassVar[bool] = False

    def __init__(self, size: Size) -> None:
        self.size = size

    def portions(self, chosen: Sequence[str]) -> list[list[str]]:
        """Return what is measured at a time, if any of it was chosen."""
        found = [name for name in self.operations if name in chosen]
        if self.in_one_go and found:
            return [list(self.operations)]
        return [[name] for name in found]

    async def prepare(self, subject: Subject) -> None:
        """Bring a service to where it can be measured."""

    async def warm_up(self, subject: Subject, portion: Sequence[str]) -> None:
        """Do a little of it: what is loaded, connected or compiled at first is no part of an operation."""
        size, self.size = self.size, WARM
        try:
            await self.measure(subject, portion)
        finally:
            self.size = size

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        """Return the metrics of some operations."""
        raise NotImplementedError

    async def finish(self, subject: Subject) -> None:
        """Remove what :meth:`prepare` made."""


async def repeat(
    subject: Subject,
    size: Size,
    work: Callable[[], Awaitable[wire.Message | None]],
    settle: Callable[[], Awaitable[None]] | None = None,
) -> figures.Metrics:
    """Do something again and again, by some clients at once, and return the metrics.

    :param settle: waits until what was accepted is done; that it costs, too, belongs to the operation.
    """
    times: list[float] = []
    errors = 0

    async def client(until: float) -> None:
        nonlocal errors
        while (began := time.perf_counter()) < until:
            try:
                answer = await work()
            except FAILURES as exc:
                errors += 1
                subject.problems.append(str(exc))
                await asyncio.sleep(0.01)
                continue
            if answer is not None and answer.status != 200:
                errors += 1
                subject.problems.append(answer.first)
            else:
                times.append(time.perf_counter() - began)

    with Meter(subject) as meter:
        until = time.perf_counter() + size.seconds
        await asyncio.gather(*(client(until) for _ in range(size.connections)))
        took = time.perf_counter() - until + size.seconds
        if settle:
            await settle()
    rate = {"requests_per_s": len(times) / took, "errors": errors}
    return {**rate, **figures.latency(times), **meter.per_operation(len(times))}


class Item(NamedTuple):
    """A node of a batch, by its uuid, with its resource class."""

    node: str
    group: str


Step = Callable[[Item], Awaitable[str | None]]
"""Does one thing to one node, and returns what went wrong."""


class Batch:
    """Nodes that are made for one measurement.

    :ivar items: those with which nothing went wrong so far.
    """

    def __init__(self, subject: Subject, count: int) -> None:
        self.subject = subject
        self.watcher = Watcher(subject.api)
        run = f"benchmark-{secrets.token_hex(4)}"
        self.items = [Item(str(uuid.uuid4()), f"{run}-{index // GROUP}") for index in range(count)]
        self._all = tuple(self.items)

    async def enrol(self, at_once: int, **fields: Any) -> figures.Metrics:
        """Create the nodes."""

        async def create(item: Item) -> None:
            name = f"benchmark-{item.node}"
            await self.subject.api.enrol(uuid=item.node, name=name, resource_class=item.group, **fields)

        return await self.phase(at_once, create)

    async def phase(self, at_once: int, step: Step) -> figures.Metrics:
        """Do a step to each node that is left; those with which something goes wrong are left no more."""
        times: list[float] = []
        good: list[Item] = []

        async def do(item: Item) -> None:
            began = time.perf_counter()
            try:
                problem = await step(item)
            except FAILURES as exc:
                problem = str(exc)
            if problem:
                self.subject.problems.append(problem)
            else:
                times.append(time.perf_counter() - began)
                good.append(item)

        with Meter(self.subject) as meter:
            await wire.each(self.items, at_once, do)
        rate = {"nodes_per_s": len(times) / meter.wall, "errors": len(self.items) - len(times)}
        self.items = good
        return {**rate, **figures.latency(times), **meter.per_operation(len(times))}

    def verb(self, target: str, state: str) -> Step:
        """Return the step that sends a verb and waits for a state."""

        async def do(item: Item) -> str | None:
            await self.subject.api.provision(item.node, target)
            problem = await self.watcher.reach(item.group, item.node, state)
            return problem and f"{target}: {problem}"

        return do

    async def delete(self) -> figures.Metrics:
        """Delete all nodes, also those with which something went wrong."""

        async def delete(item: Item) -> None:
            await self.subject.api.delete(item.node)

        self.items = list(self._all)
        return await self.phase(8, delete)
