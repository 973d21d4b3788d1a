"""The loads: reads, lives of fake hardware, lives with simulated agents, heartbeats; and a look at the memory."""

import asyncio
import random
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from benchmarks import agents, figures, processes, wire
from benchmarks.loads import Batch, Found, Item, Load, Size, Step, Subject, repeat

PATHS = {
    "list of 1000": "/v1/nodes?limit=1000",
    "list page by marker": "/v1/nodes?limit=1000&marker={first}",
    "list with fields": "/v1/nodes?limit=1000&fields=uuid,name,provision_state,power_state,traits",
    "filter 100 rows": "/v1/nodes?limit=100&maintenance=false&driver=fake-hardware",
    "detail of 1000": "/v1/nodes/detail?limit=1000",
    "detail of 25 by class": "/v1/nodes/detail?resource_class={group}&limit=25",
    "node": "/v1/nodes/{uuid}",
    "node with fields": "/v1/nodes/{uuid}?fields=uuid,provision_state,power_state",
    "node states": "/v1/nodes/{uuid}/states",
    "filter none found": "/v1/nodes?provision_state=active&limit=1000",
    "GET /": "/",
}


class Reads(Load):
    """Reads a database of many nodes as fast as some clients can."""

    operations = tuple(PATHS)

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self._rows: dict[str, list[dict[str, Any]]] = {}

    async def prepare(self, subject: Subject) -> None:
        query = "fields=uuid,name,resource_class"
        missing = self.size.stock - len(await subject.api.nodes(query))
        properties = {"cpus": 32, "memory_mb": 131072, "local_gb": 960, "cpu_arch": "x86_64", "vendor": "benchmark"}
        await Batch(subject, max(0, missing)).enrol(8, properties=properties, extra={"rack": "12"})
        self._rows[subject.name] = await subject.api.nodes(query)

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        (name,) = portion
        rows = self._rows[subject.name]
        choice = random.Random(1)  # noqa: S311 the same order for all

        async def read() -> wire.Message:
            row = choice.choice(rows)
            words = {"uuid": row["uuid"], "group": row["resource_class"], "first": rows[0]["uuid"]}
            return await subject.api.client.request("GET", PATHS[name].format(**words))

        answer = await read()  # connections are made, what is loaded late is there
        found = await repeat(subject, self.size, read)
        found["bytes"] = len(answer.body)
        found["rows"] = len(answer.json().get("nodes", ()))
        return {name: found}


class FakeLife(Load):
    """Nodes of fake hardware live from their enrolment to their end."""

    VERBS: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fake manage": ("manage", "manageable"),
        "fake provide": ("provide", "available"),
        "fake deploy": ("active", "active"),
        "fake undeploy": ("deleted", "available"),
    }
    operations = ("enrol", *VERBS, "delete")
    in_one_go = True

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        batch = Batch(subject, self.size.nodes)
        found = {"enrol": await batch.enrol(self.size.at_once)}
        for name, (target, state) in self.VERBS.items():
            found[name] = await batch.phase(self.size.at_once, batch.verb(target, state))
        found["delete"] = await batch.delete()
        return found


class AgentBatch(Batch):
    """Nodes that are deployed and cleaned by simulated agents."""

    def __init__(self, subject: Subject, count: int) -> None:
        super().__init__(subject, count)
        self.fleet = agents.Fleet(subject.api)
        self.watcher.observers.append(self.fleet.observe)

    async def begin(self, at_once: int) -> figures.Metrics:
        """Bring the nodes to where they can be deployed; return the metrics of cleaning."""
        await self.fleet.start()
        await self.enrol(
            at_once,
            deploy_interface="direct",
            # With this vendor no conductor sets a boot device, which fake management does not know.
            properties={"vendor": "lenovo", "cpu_arch": "x86_64"},
            # Fake power does not notice that a ramdisk has ended, and a conductor would wait for it.
            driver_info={
                "deploy_forces_oob_reboot": True,
                "deploy_kernel": "file:///kernel",
                "deploy_ramdisk": "file:///ramdisk",
            },
            instance_info=self.fleet.image(),
        )
        for item in self.items:
            self.fleet.add(item.node)
        await self.phase(at_once, self.verb("manage", "manageable"))
        return await self.phase(at_once, self.verb("provide", "available"))

    def fresh(self, step: Step) -> Step:
        """Return a step before which the agent is off and has seen nothing."""

        async def do(item: Item) -> str | None:
            agent = self.fleet.agents[item.node]
            agent.switch_off()
            agent.seen = []
            return await step(item)

        return do

    async def end(self) -> None:
        await self.fleet.stop()
        await self.delete()


class AgentLife(Load):
    """Nodes are cleaned, deployed by agents with steps of their own, and undeployed."""

    operations = ("agent clean", "agent deploy", "agent undeploy")
    in_one_go = True

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        size = self.size
        batch = AgentBatch(subject, size.nodes)
        fleet = batch.fleet
        try:
            found = {"agent clean": await batch.begin(size.at_once)}
            fleet.reads = fleet.heartbeats = 0
            deploy = await batch.phase(size.at_once, batch.fresh(batch.verb("active", "active")))
            count = max(1, len(batch.items))
            deploy |= {"agent_reads_per_op": fleet.reads / count, "heartbeats_per_op": fleet.heartbeats / count}
            orders = [fleet.agents[item.node].seen for item in batch.items]
            deploy["order_wrong"] = sum(order != agents.DEPLOYED for order in orders)
            if deploy["order_wrong"]:
                subject.problems.append(f"another order of commands: {agents.describe(orders)}")
            undeploy = await batch.phase(size.at_once, batch.fresh(batch.verb("deleted", "available")))
            return {**found, "agent deploy": deploy, "agent undeploy": undeploy}
        finally:
            await batch.end()


class Heartbeats(Load):
    """Agents that write their images send heartbeats, and look their nodes up."""

    operations = ("heartbeat", "lookup")
    QUIET_S = 0.7

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self._batches: dict[str, AgentBatch] = {}

    async def prepare(self, subject: Subject) -> None:
        batch = self._batches[subject.name] = AgentBatch(subject, self.size.nodes)
        await batch.begin(self.size.at_once)
        await batch.phase(self.size.at_once, batch.fresh(self._until_writing(batch)))
        if not batch.items:
            raise RuntimeError(f"no agent of {subject.name} writes its image: {subject.problems[-3:]}")
        for agent in batch.fleet.agents.values():
            agent.stop_heartbeats()
        await self._settle(batch.fleet)

    def _until_writing(self, batch: AgentBatch) -> Step:
        async def do(item: Item) -> str | None:
            agent = batch.fleet.agents[item.node]
            agent.endless = "write_image"
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

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        (name,) = portion
        batch = self._batches[subject.name]
        turns = deque(batch.fleet.agents[item.node] for item in batch.items)

        async def work() -> None:
            agent = turns[0]
            turns.rotate(-1)
            await (agent.heartbeat() if name == "heartbeat" else agent.lookup())

        reads = batch.fleet.reads
        found = await repeat(subject, self.size, work, lambda: self._settle(batch.fleet))
        sent = max(1.0, found["requests_per_s"] * self.size.seconds)
        return {name: {**found, "agent_reads_per_op": (batch.fleet.reads - reads) / sent}}

    async def finish(self, subject: Subject) -> None:
        await self._batches[subject.name].end()


class Memory(Load):
    """Looks at the memory of the processes; after all that was done to them."""

    operations = ("memory",)

    async def measure(self, subject: Subject, portion: Sequence[str]) -> Found:
        return {"memory": processes.memory(subject.pids)}


LOADS: Sequence[type[Load]] = (Reads, FakeLife, AgentLife, Heartbeats, Memory)
"""In the order in which they run."""
