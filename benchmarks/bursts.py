"""What a burst does: ``devstack/services.py run -- python -m benchmarks.bursts``.

A thousand deployments are requested at once, by as many connections to one API; a thousand agents look up their nodes
and send a heartbeat when the power of their racks comes back; streams of events follow while machines are deployed.
A reader looks at one node after the other before and meanwhile. Nothing may be refused or lost.
"""

import argparse
import asyncio
import contextlib
import itertools
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from benchmarks import figures, processes, report, stock, wire
from benchmarks.api import FAILURES, PATIENCE_S, Api
from benchmarks.loads import Subject
from ingot.common import states
from ingot.db import nodes as node_rows
from ingot.db.engine import Database

_PAUSE_S = 0.01
_QUIET_S = 5.0

Row = dict[str, Any]


@dataclass
class Reader:
    """What a user notices who looks at one node after the other."""

    times: list[float] = field(default_factory=list)
    refused: int = 0


@contextlib.asynccontextmanager
async def reading(subject: Subject, nodes: Sequence[str]) -> AsyncIterator[Reader]:
    """Read nodes as long as the block lasts."""
    found = Reader()
    api = Api(subject.api.url, subject.api.client.headers)

    async def read() -> None:
        for node in itertools.cycle(nodes):
            began = time.perf_counter()
            try:
                await api.read(f"/v1/nodes/{node}")
            except FAILURES:
                found.refused += 1
            found.times.append(time.perf_counter() - began)
            await asyncio.sleep(_PAUSE_S)

    task = asyncio.create_task(read())
    try:
        yield found
    finally:
        task.cancel()


async def deploy(subject: Subject, db: Database, given: argparse.Namespace) -> Row:
    """Request the deployment of many nodes in one moment and wait for their ends."""
    nodes = stock.fill_ready(db, given.nodes)
    async with reading(subject, nodes) as quiet:
        await asyncio.sleep(_QUIET_S)
    memory = processes.memory(subject.pids)
    client = wire.Client(subject.api.url, subject.api.client.headers, PATIENCE_S)
    answered: list[tuple[str, int]] = []

    async def request(node: str) -> None:
        answer = await client.request("PUT", f"/v1/nodes/{node}/states/provision", {"target": "active"})
        answered.append((node, answer.status))

    async with reading(subject, nodes) as meanwhile:
        began = time.perf_counter()
        await asyncio.gather(*(request(node) for node in nodes))
        accepted = time.perf_counter() - began
        before, during = (figures.latency(reader.times)["p99_ms"] for reader in (quiet, meanwhile))
        seconds = await wait_until_active(db, nodes, began)
    return {
        "requests": len(nodes),
        "refused": Counter(status for _node, status in answered if status != 202),
        "lost": len(nodes) - stock.count_active(db, nodes),
        "seconds until all are accepted": accepted,
        "seconds until all are deployed": seconds,
        "reads refused": meanwhile.refused,
        "read p99 before, ms": before,
        "read p99 meanwhile, ms": during,
        "times longer": during / before,
        **fairness([node for node, _status in answered], _in_order(db, nodes)),
        **_grown(memory, subject),
    }


async def wait_until_active(db: Database, nodes: Sequence[str], began: float) -> float:
    """Return the seconds until all nodes are deployed, or until patience ends."""
    while time.perf_counter() - began < PATIENCE_S:
        if await asyncio.to_thread(stock.count_active, db, nodes) == len(nodes):
            break
        await asyncio.sleep(0.25)
    return time.perf_counter() - began


def _in_order(db: Database, nodes: Sequence[str]) -> list[str]:
    """Return nodes in the order in which they have reached their states."""
    columns = node_rows.NODES.c
    return db.read_column(sa.select(columns.uuid).where(columns.uuid.in_(nodes)).order_by(columns.provision_updated_at))


def fairness(accepted: Sequence[str], ended: Sequence[str]) -> Row:
    """Return how many places nodes have moved between being accepted and being deployed."""
    place = {node: number for number, node in enumerate(ended)}
    moved = [abs(place[node] - number) for number, node in enumerate(accepted)]
    return {"places moved, median": statistics.median(moved), "places moved, p99": figures.percentile(moved, 0.99)}


def _grown(before: figures.Metrics, subject: Subject) -> Row:
    after = processes.memory(subject.pids)
    return {f"memory {word}, MiB": found["rss_mib"] for word, found in (("before", before), ("after", after))}


async def power_returns(subject: Subject, db: Database, given: argparse.Namespace) -> Row:
    """Have agents look up their nodes and send a heartbeat, all within some seconds."""
    nodes = stock.fill(db, given.nodes, provision_state=states.CLEANWAIT)
    api = Api(subject.api.url, subject.api.client.headers)
    times: list[float] = []
    refused: Counter[str] = Counter()

    async def boot(index: int, node: str) -> None:
        await asyncio.sleep(given.seconds * index / len(nodes))
        began = time.perf_counter()
        try:
            found = await api.call("GET", f"/v1/lookup?node_uuid={node}")
            token = found["config"]["agent_token"]
            body = {"callback_url": "http://127.0.0.1:9", "agent_token": token, "agent_version": "11.0.0"}
            await api.call("POST", f"/v1/heartbeat/{node}", body)
        except FAILURES as exc:
            refused[str(exc)[:60]] += 1
        times.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(boot(index, node) for index, node in enumerate(nodes)))
    return {
        "agents": len(nodes),
        "within, s": given.seconds,
        "refused": refused,
        "seconds until all are served": time.perf_counter() - began,
        "lookup and heartbeat p99, ms": figures.latency(times)["p99_ms"],
    }


async def follow(subject: Subject, db: Database, given: argparse.Namespace) -> Row:
    """Have clients follow the events while nodes are deployed; each must see each node become active."""
    nodes = stock.fill_ready(db, given.nodes)
    seen = [0] * given.streams
    headers = "".join(f"{name}: {value}\r\n" for name, value in subject.api.client.headers.items())
    host, _, port = subject.api.url.rpartition("//")[2].partition(":")
    open_now = asyncio.Semaphore(0)

    async def listen(index: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=wire.LARGEST)
        writer.write(f"GET /ingot/v1/events HTTP/1.1\r\n{headers}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " in head.partition(b"\r\n")[0]:
            open_now.release()
        while seen[index] < len(nodes) and (line := await reader.readline()):
            seen[index] += b'"provision_state":"active"' in line.replace(b" ", b"")
        writer.close()

    listeners = [asyncio.create_task(listen(index)) for index in range(given.streams)]
    for _ in listeners:
        await asyncio.wait_for(open_now.acquire(), 60)
    memory = processes.memory(subject.pids)
    began = time.perf_counter()
    await wire.each(nodes, 50, lambda node: subject.api.provision(node, "active"))
    deployed = await wait_until_active(db, nodes, began)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*listeners), 60)
    return {
        "streams": given.streams,
        "nodes": len(nodes),
        "events that a stream missed": len(nodes) - min(seen),
        "seconds until all are deployed": deployed,
        "seconds until all streams have all": time.perf_counter() - began,
        **_grown(memory, subject),
    }


BURSTS = {
    "deployments at once": deploy,
    "the power of a rack returns": power_returns,
    "streams of events": follow,
}


def main() -> None:
    parser = stock.parser("benchmarks.bursts", __doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10, help="in which all agents boot")
    given = parser.parse_args()
    facts = report.circumstances()
    found: dict[str, Row] = {}
    for name, burst in BURSTS.items():
        with stock.service(given.driver, {"api": {"max_event_streams": given.streams}}) as (subject, db):
            found[name] = asyncio.run(burst(subject, db, given))
        report.finish("bursts", facts, found)


if __name__ == "__main__":
    main()
