"""One service under load: what a client asks of it, and how it waits for many nodes with few requests."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import wire

VERSION = "1.115"
"""The microversion of all requests; both sides know it."""

FAKE = {
    "driver": "fake-hardware",
    **{f"{kind}_interface": "fake" for kind in ("power", "management", "boot", "deploy")},
    **{f"{kind}_interface": "noop" for kind in ("network", "storage")},
    **{f"{kind}_interface": f"no-{kind}" for kind in ("raid", "bios", "console", "inspect", "rescue", "vendor")},
    "firmware_interface": "no-firmware",
}
"""A node without hardware. Each interface is named: the defaults of two sides may differ."""

FAILED = frozenset(("error", *(f"{word} failed" for word in ("deploy", "clean", "inspect", "adopt", "service"))))
BUSY = (409, 503)
"""Answers after which a client tries again: the node is locked, the conductor has no free thread."""

PATIENCE_S = 300.0
LOOK_LEAST_S, LOOK_MOST_S = 0.02, 0.25


class ApiError(Exception):
    """A request was refused."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text[:300]}")
        self.status = status


FAILURES = (ApiError, wire.WireError)


class Api:
    """The API of one service.

    :ivar retries: how many answers said that the service was busy.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self.client = wire.Client(url, {"X-OpenStack-Ironic-API-Version": VERSION, **(headers or {})})
        self.retries = 0

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the decoded body of the answer.

        :raises ApiError: the answer is no success.
        """
        return (await self._send(method, path, body)).json()

    async def read(self, path: str) -> bytes:
        """Return the body of an answer as it came, which costs the client nothing.

        :raises ApiError: the answer is no success.
        """
        return (await self._send("GET", path, None)).body

    async def _send(self, method: str, path: str, body: Any) -> wire.Message:
        answer = await self.client.request(method, path, body)
        if not 200 <= answer.status < 300:
            raise ApiError(answer.status, answer.body.decode(errors="replace"))
        return answer

    async def insist(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request as :meth:`call` does, again and again while the service is busy."""
        until = time.monotonic() + PATIENCE_S
        pause = 0.1
        while True:
            try:
                return await self.call(method, path, body)
            except ApiError as exc:
                if exc.status not in BUSY or time.monotonic() > until:
                    raise
            self.retries += 1
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, 1.0)

    async def enrol(self, **fields: Any) -> str:
        """Create a node of fake hardware and return its uuid."""
        body = {"uuid": str(uuid.uuid4()), **FAKE, **fields}
        await self.call("POST", "/v1/nodes", body)
        return str(body["uuid"])

    async def provision(self, node: str, target: str) -> None:
        await self.insist("PUT", f"/v1/nodes/{node}/states/provision", {"target": target})

    async def delete(self, node: str) -> None:
        """Delete a node, whatever state it is in."""
        try:
            await self.call("DELETE", f"/v1/nodes/{node}")
        except ApiError as exc:
            if exc.status == 404:
                return
            await self.insist("PUT", f"/v1/nodes/{node}/maintenance", {"reason": "the benchmark removes it"})
            await self.insist("DELETE", f"/v1/nodes/{node}")

    async def nodes(self, query: str) -> list[dict[str, Any]]:
        """Return all nodes that a query finds, page by page."""
        found: list[dict[str, Any]] = []
        marker = ""
        while True:
            page = (await self.call("GET", f"/v1/nodes?limit=1000&{query}{marker}"))["nodes"]
            found += page
            if len(page) < 1000:
                return found
            marker = f"&marker={page[-1]['uuid']}"


Row = Mapping[str, Any]
Goal = tuple["asyncio.Future[Row]", str, float]


class Watcher:
    """Waits for the states of nodes that are in groups, each with a resource class of its own.

    It lists the groups in which there is something to wait for, then rests three times as long as that took: a small
    load on a slow service as on a fast one.

    :ivar observers: called with each row that was seen.
    """

    FIELDS = "uuid,provision_state,target_provision_state,last_error,reservation"

    def __init__(self, api: Api) -> None:
        self._api = api
        self._goals: dict[str, dict[str, Goal]] = {}
        self._task: asyncio.Task[None] | None = None
        self.observers: list[Callable[[Row], None]] = []

    async def reach(self, group: str, node: str, state: str, limit: float = PATIENCE_S) -> str | None:
        """Wait until a node is in a state; return what went wrong instead, if something did."""
        future: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
        self._goals.setdefault(group, {})[node] = (future, state, time.monotonic())
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            row = await asyncio.wait_for(future, limit)
        except TimeoutError:
            return f"not {state} after {limit:.0f} s"
        finally:
            del self._goals[group][node]
        return None if row["provision_state"] == state else f"{row['provision_state']}: {row['last_error']}"

    async def _watch(self) -> None:
        while any(self._goals.values()):
            began = time.monotonic()
            for group in [name for name, goals in self._goals.items() if goals]:
                with contextlib.suppress(*FAILURES):  # it may be busy, and is asked again
                    await self._look(group)
            took = time.monotonic() - began
            await asyncio.sleep(min(max(3 * took, LOOK_LEAST_S), LOOK_MOST_S))

    async def _look(self, group: str) -> None:
        asked = time.monotonic()
        for row in await self._api.nodes(f"resource_class={group}&fields={self.FIELDS}"):
            for observer in self.observers:
                observer(row)
            future, state, since = self._goals[group].get(row["uuid"], (None, "", 0.0))
            # What was asked for before the verb was sent may be older than the verb.
            if future and not future.done() and since < asked and _is_settled(row, state):
                future.set_result(row)


def _is_settled(row: Row, goal: str) -> bool:
    """Return whether a node is where it should be, or will not come there any more."""
    state = row["provision_state"]
    back = state == "enroll" and row["last_error"] and not row["target_provision_state"]
    return bool(state == goal or state in FAILED or back)
