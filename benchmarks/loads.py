"""How a service is loaded and metered: requests again and again, and batches of nodes that live together."""

import asyncio
import dataclasses
import pathlib
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks import figures, processes, wire
from benchmarks.api import FAILURES, Api, Watcher

GROUP = 25
"""Nodes of one resource class."""

SERVERS = ("database", "broker")
"""Parts of a site that are no processes of the service."""


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

    def little(self) -> "Size":
        """Return how much makes a service warm: what is loaded, connected or compiled at first belongs to nothing."""
        return dataclasses.replace(self, nodes=8, at_once=8, seconds=0.3)


QUICK = Size(stock=100, nodes=10, at_once=10, seconds=1.0)


@dataclass
class Subject:
    """A running service, as the loads and the meter see it.

    :param parts: the processes of the service and of the servers that it uses, by what they are.
    :param count: returns the counters of the database server.
    :param problems: what went wrong under load.
    :param config: its file of options.
    """

    name: str
    api: Api
    parts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    count: Callable[[], Mapping[str, int]] = dict
    problems: list[str] = field(default_factory=list)
    config: pathlib.Path = pathlib.Path()

    @property
    def pids(self) -> list[int]:
        """The service's own processes."""
        return [pid for part, pids in self.parts.items() if part not in SERVERS for pid in pids]


class Meter:
    """Measures what a service, the servers that it uses and this process spend in a ``with`` block.

    :ivar used: seconds of processor time by part.
    :ivar counted: statements of the database.
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def __enter__(self) -> "Meter":
        self._before = self._subject.count(), self._cpu()
        self._own, self._began = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall = time.perf_counter() - self._began
        self.own = time.process_time() - self._own
        counted, used = self._before
        self.used = {part: processes.cpu_between(used[part], now) for part, now in self._cpu().items()}
        self.counted = {name: value - counted[name] for name, value in self._subject.count().items()}

    def _cpu(self) -> dict[str, dict[int, float]]:
        return {part: processes.cpu(pids) for part, pids in self._subject.parts.items()}

    @property
    def server(self) -> float:
        """Seconds of the service and of the database, by which services are compared."""
        return sum(seconds for part, seconds in self.used.items() if part != "broker")

    def per_operation(self, operations: float) -> figures.Metrics:
        found = {"client_core_share": self.own / self.wall}
        if operations:
            found["server_cpu_per_op_ms"] = 1e3 * self.server / operations
            found |= {f"{part}_cpu_per_op_ms": 1e3 * seconds / operations for part, seconds in self.used.items()}
            found |= {f"{name}_per_op": value / operations for name, value in self.counted.items()}
        return found


async def repeat(
    subject: Subject,
    size: Size,
    work: Callable[[], Awaitable[object]],
    settle: Callable[[], Awaitable[None]] | None = None,
) -> figures.Metrics:
    """Do something again and again, by some clients at once, and return the metrics.

    :param settle: waits until what was accepted is done; what that costs belongs to the operation, too.
    """
    times: list[float] = []
    errors = 0

    async def client(until: float) -> None:
        nonlocal errors
        while (began := time.perf_counter()) < until:
            try:
                await work()
            except FAILURES as exc:
                errors += 1
                subject.problems.append(str(exc))
                await asyncio.sleep(0.01)
            else:
                times.append(time.perf_counter() - began)

    with Meter(subject) as meter:
        until = time.perf_counter() + size.seconds
        await asyncio.gather(*(client(until) for _ in range(size.connections)))
        took = time.perf_counter() - until + size.seconds
        if settle:
            await settle()
    rate = {"requests": len(times), "requests_per_s": len(times) / took, "errors": errors}
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

    def __init__(self, subject: Subject, count: int, at_once: int) -> None:
        self.subject = subject
        self.watcher = Watcher(subject.api)
        self._at_once = at_once
        run = f"benchmark-{secrets.token_hex(4)}"
        self.items = [Item(str(uuid.uuid4()), f"{run}-{index // GROUP}") for index in range(count)]
        self._all = tuple(self.items)

    async def enrol(self, **fields: Any) -> figures.Metrics:
        """Create the nodes."""

        async def create(item: Item) -> None:
            name = f"benchmark-{item.node}"
            await self.subject.api.enrol(uuid=item.node, name=name, resource_class=item.group, **fields)

        return await self.phase(create)

    async def phase(self, step: Step) -> figures.Metrics:
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
            await wire.each(self.items, self._at_once, do)
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

        self.items, self._at_once = list(self._all), min(self._at_once, 8)
        return await self.phase(delete)
