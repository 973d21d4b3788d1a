"""The loads: reads, lives of fake hardware, lives with simulated agents; and a look at the memory."""

import abc
import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Any

from benchmarks import agents, figures, processes
from benchmarks.loads import Batch, Item, Size, Step, Subject, repeat
from benchmarks.operations import OPERATIONS

Found = AsyncIterator[tuple[str, figures.Metrics]]
"""Operations with their metrics, each as soon as it is measured."""


class Load(abc.ABC):
    """One sort of load.

    :ivar operations: what it measures.
    """

    operations: Sequence[str]

    @abc.abstractmethod
    def measure(self, subject: Subject, size: Size) -> Found:
        """Measure a service; yield each operation when it is done."""


class Read(Load):
    """Reads a database of many nodes as fast as some clients can."""

    def __init__(self, name: str) -> None:
        self.operations = (name,)
        self._path = OPERATIONS[name].path

    async def measure(self, subject: Subject, size: Size) -> Found:
        rows = await self._stock(subject, size.stock)
        choice = random.Random(1)  # noqa: S311 the same order for all
        body: Any = None

        async def read() -> None:
            nonlocal body
            row = choice.choice(rows)
            words = {"uuid": row["uuid"], "group": row["resource_class"], "first": rows[0]["uuid"]}
            body = await subject.api.read(self._path.format(**words))

        await read()  # connections are made, what is loaded late is there
        found = await repeat(subject, size, read)
        yield self.operations[0], {**found, "bytes": len(body)}

    async def _stock(self, subject: Subject, number: int) -> list[dict[str, Any]]:
        """Return the nodes that are there to be read; enroll those that are missing."""
        query = "fields=uuid,resource_class"
        while number > len(rows := await subject.api.nodes(query)):
            properties = {"cpus": 32, "memory_mb": 131072, "local_gb": 960, "cpu_arch": "x86_64", "vendor": "benchmark"}
            await Batch(subject, number - len(rows), 8).enrol(properties=properties, extra={"rack": "12"})
        return rows


class FakeLife(Load):
    """Nodes of fake hardware live from their enrolment to their end."""

    operations = ("enrol", "fake manage", "fake provide", "fake deploy", "fake undeploy", "delete")

    async def measure(self, subject: Subject, size: Size) -> Found:
        batch = Batch(subject, size.nodes, size.at_once)
        yield "enrol", await batch.enrol()
        yield "fake manage", await batch.phase(batch.verb("manage", "manageable"))
        yield "fake provide", await batch.phase(batch.verb("provide", "available"))
        yield "fake deploy", await batch.phase(batch.verb("active", "active"))
        yield "fake undeploy", await batch.phase(batch.verb("deleted", "available"))
        yield "delete", await batch.delete()


class AgentLife(Load):
    """Nodes are cleaned, deployed by agents with steps of their own, and undeployed.

    Then they are deployed once more, by agents that never end to write the image: these send heartbeats, and look their
    nodes up.
    """

    operations = ("agent clean", "agent deploy", "agent undeploy", "heartbeat", "lookup")
    QUIET_S = 0.7

    async def measure(self, subject: Subject, size: Size) -> Found:
        batch = Batch(subject, size.nodes, size.at_once)
        fleet = agents.Fleet(subject.api)
        batch.watcher.observers.append(fleet.observe)
        try:
            await self._enroll(batch, fleet)
            yield "agent clean", await batch.phase(batch.verb("provide", "available"))
            fleet.reads = fleet.heartbeats = 0
            deploy = await batch.phase(self._afresh(fleet, batch.verb("active", "active")))
            count = max(1, len(batch.items))
            deploy |= {"agent_reads_per_op": fleet.reads / count, "heartbeats_per_op": fleet.heartbeats / count}
            orders = [fleet.agents[item.node].seen for item in batch.items]
            if other := [order for order in orders if order != agents.DEPLOYED]:
                subject.problems.append(f"another order of commands: {other[0]}")
            yield "agent deploy", deploy
            yield "agent undeploy", await batch.phase(self._afresh(fleet, batch.verb("deleted", "available")))
            await batch.phase(self._afresh(fleet, self._until_writing(batch, fleet)))
            if not batch.items:
                raise RuntimeError(f"no agent writes its image: {subject.problems[-1:]}")
            turns = deque(fleet.agents[item.node] for item in batch.items)
            for agent in turns:
                agent.stop_heartbeats()
            await self._settle(fleet)
            for name in ("heartbeat", "lookup"):
                yield name, await self._repeat(subject, size, fleet, turns, name)
        finally:
            await fleet.stop()
            await batch.delete()

    async def _enroll(self, batch: Batch, fleet: agents.Fleet) -> None:
        await fleet.start()
        await batch.enrol(
            deploy_interface="direct",
            # With this vendor no conductor sets a boot device, which fake management does not know.
            properties={"vendor": "lenovo", "cpu_arch": "x86_64"},
            # Fake power does not notice that a ramdisk has ended, and a conductor would wait for it.
            driver_info={
                "deploy_forces_oob_reboot": True,
                "deploy_kernel": "file:///kernel",
                "deploy_ramdisk": "file:///ramdisk",
            },
            instance_info=fleet.image(),
        )
        for item in batch.items:
            fleet.add(item.node)
        await batch.phase(batch.verb("manage", "manageable"))

    def _afresh(self, fleet: agents.Fleet, step: Step) -> Step:
        """Return a step before which the agent is off and has seen nothing."""

        async def do(item: Item) -> str | None:
            agent = fleet.agents[item.node]
            agent.switch_off()
            agent.seen = []
            return await step(item)

        return do

    def _until_writing(self, batch: Batch, fleet: agents.Fleet) -> Step:
        async def do(item: Item) -> str | None:
            agent = fleet.agents[item.node]
            agent.endless = "write_image"
            again = [{"op": "add", "path": "/instance_info", "value": fleet.image()}]  # the undeployment removed it
            await batch.subject.api.insist("PATCH", f"/v1/nodes/{item.node}", again)
            await batch.subject.api.provision(item.node, "active")
            for _ in range(600):
                if "write_image" in agent.seen:
                    return None
                # In vain, but it keeps the watcher looking.
                problem = await batch.watcher.reach(item.group, item.node, "active", limit=0.25)
                if problem and "not active" not in problem:
                    return problem
            return f"it does not write its image: {agent.seen}"

        return do

    async def _settle(self, fleet: agents.Fleet) -> None:
        """Wait until conductors do not ask agents any more."""
        reads = -1
        while reads != fleet.reads:
            reads = fleet.reads
            await asyncio.sleep(self.QUIET_S)

    async def _repeat(
        self, subject: Subject, size: Size, fleet: agents.Fleet, turns: deque[agents.Agent], name: str
    ) -> figures.Metrics:
        async def work() -> None:
            turns.rotate(-1)
            await (turns[0].heartbeat() if name == "heartbeat" else turns[0].lookup())

        reads = fleet.reads
        found = await repeat(subject, size, work, lambda: self._settle(fleet))
        return {**found, "agent_reads_per_op": (fleet.reads - reads) / max(1.0, found["requests"])}


class Memory(Load):
    """Looks at the memory of the processes; after all that was done to them."""

    operations = ("memory",)

    async def measure(self, subject: Subject, size: Size) -> Found:
        yield "memory", processes.memory(subject.pids)


LOADS: Sequence[Load] = (
    *(Read(name) for name, operation in OPERATIONS.items() if operation.path),
    *(FakeLife(), AgentLife(), Memory()),
)
"""In the order in which they run."""
