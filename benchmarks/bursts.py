"""What a burst does: ``devstack/services.py run -- python -m benchmarks.bursts``.

A thousand deployments are requested at once, by as many connections to one API; a thousand agents look up their nodes
and send a heartbeat when the power of their racks comes back; streams of events follow while machines are deployed.
A reader looks at one node after the other before and meanwhile. Nothing may be refused or lost.
"""

import argparse
import asyncio
import contextlib
import pathlib
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from benchmarks import figures, findings, processes, report, servers, sides, stock, wire
from benchmarks.loads import Subject
from ingot.common import states
from ingot.db.engine import Database

PATIENCE_S = 300.0
_PAUSE_S = 0.01


class Reader:
    """Looks at one node after the other, as a user does, and notes how long each answer takes."""

    def __init__(self, subject: Subject, nodes: Sequence[str]) -> None:
        self._client = wire.Client(subject.api.url, subject.api.client.headers)
        self._nodes = nodes
        self.times: list[float] = []
        self.refused = 0

    async def read(self) -> None:
        """Read until cancelled."""
        number = 0
        while True:
            began = time.perf_counter()
            answer = await self._client.request("GET", f"/v1/nodes/{self._nodes[number % len(self._nodes)]}")
            self.times.append(time.perf_counter() - began)
            self.refused += answer.status != 200
            number += 1
            await asyncio.sleep(_PAUSE_S)


@contextlib.asynccontextmanager
async def reading(subject: Subject, nodes: Sequence[str]) -> AsyncIterator[Reader]:
    """Read nodes as long as the block lasts."""
    reader = Reader(subject, nodes)
    task = asyncio.create_task(reader.read())
    try:
        yield reader
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def idle(subject: Subject, nodes: Sequence[str], seconds: float = 5.0) -> list[float]:
    """Return how long reads take when nothing else is asked."""
    async with reading(subject, nodes) as reader:
        await asyncio.sleep(seconds)
    return reader.times


async def deploy(subject: Subject, db: Database, number: int) -> dict[str, Any]:
    """Request the deployment of many nodes in one moment and wait for their ends."""
    nodes = stock.fill(db, number)
    quiet = figures.latency(await idle(subject, nodes))
    memory = processes.memory(subject.pids)["rss_mib"]
    client = wire.Client(subject.api.url, subject.api.client.headers, PATIENCE_S)
    answered: list[tuple[str, int]] = []

    async def request(node: str) -> None:
        answer = await client.request("PUT", f"/v1/nodes/{node}/states/provision", {"target": "active"})
        answered.append((node, answer.status))

    async with reading(subject, nodes) as reader:
        began = time.perf_counter()
        await asyncio.gather(*(request(node) for node in nodes))
        accepted = time.perf_counter() - began
        meanwhile = figures.latency(reader.times)
        seconds = await ended(db, nodes, began)
    return {
        "requests": number,
        "refused": dict(Counter(status for _node, status in answered if status != 202)),
        "lost": number - stock.states_of(db, nodes).get(states.ACTIVE, 0),
        "seconds until all are accepted": round(accepted, 1),
        "seconds until all are deployed": round(seconds, 1),
        "reads refused": reader.refused,
        "read p99 before, ms": round(quiet["p99_ms"], 1),
        "read p99 meanwhile, ms": round(meanwhile["p99_ms"], 1),
        "times longer": round(meanwhile["p99_ms"] / quiet["p99_ms"], 1),
        **fairness([node for node, _status in answered], stock.ended_in_order(db, nodes)),
        "memory before, MiB": round(memory),
        "memory after, MiB": round(processes.memory(subject.pids)["rss_mib"]),
    }


async def ended(db: Database, nodes: list[str], began: float) -> float:
    """Return the seconds until all nodes are deployed, or until patience ends."""
    while time.perf_counter() - began < PATIENCE_S:
        found = await asyncio.to_thread(stock.states_of, db, nodes)
        if found.get(states.ACTIVE, 0) == len(nodes):
            break
        await asyncio.sleep(0.25)
    return time.perf_counter() - began


def fairness(accepted: list[str], ended: list[str]) -> dict[str, float]:
    """Return how many places nodes have moved between being accepted and being deployed."""
    place = {node: number for number, node in enumerate(ended)}
    moved = [abs(place[node] - number) for number, node in enumerate(accepted)]
    return {"places moved, median": statistics.median(moved), "places moved, p99": figures.percentile(moved, 0.99)}


async def power_returns(subject: Subject, db: Database, number: int, within: float) -> dict[str, Any]:
    """Have agents look up their nodes and send a heartbeat, all within some seconds."""
    nodes = stock.fill(db, number, provision_state=states.CLEANWAIT)
    client = wire.Client(subject.api.url, subject.api.client.headers, PATIENCE_S)
    times: list[float] = []
    failures: Counter[str] = Counter()

    async def boot(index: int, node: str) -> None:
        await asyncio.sleep(within * index / number)
        began = time.perf_counter()
        answer = await client.request("GET", f"/v1/lookup?node_uuid={node}")
        if answer.status != 200:
            failures[f"lookup {answer.status}"] += 1
            return
        token = answer.json()["config"]["agent_token"]
        body = {"callback_url": "http://127.0.0.1:9", "agent_token": token, "agent_version": "11.0.0"}
        answer = await client.request("POST", f"/v1/heartbeat/{node}", body)
        if answer.status != 202:
            failures[f"heartbeat {answer.status}"] += 1
        times.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(boot(index, node) for index, node in enumerate(nodes)))
    return {
        "agents": number,
        "within, s": within,
        "refused": dict(failures),
        "seconds until all are served": round(time.perf_counter() - began, 1),
        "lookup and heartbeat p99, ms": round(figures.latency(times)["p99_ms"]),
    }


async def follow(subject: Subject, db: Database, streams: int, number: int) -> dict[str, Any]:
    """Have clients follow the events while nodes are deployed; each must see each node become active."""
    nodes = stock.fill(db, number)
    seen = [0] * streams
    headers = "".join(f"{name}: {value}\r\n" for name, value in subject.api.client.headers.items())
    host, _, port = subject.api.url.rpartition("//")[2].partition(":")
    open_now = asyncio.Semaphore(0)

    async def listen(index: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port), limit=wire.LARGEST)
        writer.write(f"GET /ingot/v1/events HTTP/1.1\r\n{headers}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " in head.partition(b"\r\n")[0]:
            open_now.release()
        while seen[index] < number and (line := await reader.readline()):
            seen[index] += b'"provision_state":"active"' in line.replace(b" ", b"")
        writer.close()

    listeners = [asyncio.create_task(listen(index)) for index in range(streams)]
    for _ in listeners:
        await asyncio.wait_for(open_now.acquire(), 60)
    memory = processes.memory(subject.pids)["rss_mib"]
    began = time.perf_counter()
    verb = {"target": "active"}
    await wire.each(nodes, 50, lambda node: _put(subject, f"/v1/nodes/{node}/states/provision", verb))
    await ended(db, nodes, began)
    deployed = time.perf_counter() - began
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*listeners), 60)
    return {
        "streams": streams,
        "nodes": number,
        "events that a stream missed": number - min(seen),
        "seconds until all are deployed": round(deployed, 1),
        "seconds until all streams have all": round(time.perf_counter() - began, 1),
        "memory before, MiB": round(memory),
        "memory after, MiB": round(processes.memory(subject.pids)["rss_mib"]),
    }


async def _put(subject: Subject, path: str, body: Any) -> None:
    await subject.api.call("PUT", path, body)


async def _measure(subject: Subject, config: pathlib.Path, given: argparse.Namespace) -> dict[str, Any]:
    db = stock.connect(str(config))
    found: dict[str, Any] = {}
    bursts: dict[str, Callable[[], Awaitable[dict[str, Any]]]] = {
        "deployments at once": lambda: deploy(subject, db, given.nodes),
        "the power of a rack returns": lambda: power_returns(subject, db, given.nodes, given.seconds),
        "streams of events": lambda: follow(subject, db, given.streams, given.nodes),
    }
    for name, burst in bursts.items():
        found[name] = await burst()
        stock.empty(db)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bursts", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10, help="in which all agents boot")
    given = parser.parse_args()
    facts = report.circumstances()
    mariadb = servers.MariaDB()
    with tempfile.TemporaryDirectory(prefix="ingot-bursts-") as directory:
        place = pathlib.Path(directory)
        more: sides.Options = {"api": {"max_event_streams": given.streams}}
        site = sides.Site(sides.SETUPS["cluster"], place, stock.create(mariadb), more=more)
        with sides.run(sides.SIDES["ingot"], site, mariadb) as subject:
            found = asyncio.run(_measure(subject, site.config, given))
    findings.keep("bursts", found, facts)


if __name__ == "__main__":
    main()
