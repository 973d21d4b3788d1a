"""Many requests at once: who is served when, and that none is lost."""

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import testtools

from ingot.api import bridge
from tests import patience

PATIENCE = patience.seconds(60)
THREADS = 4
MANY = 200


class _Client:
    """A connection that stays open."""

    gone = False
    sender = None

    def abort(self) -> None:
        """Do nothing: it is never slow."""

    def gather(self) -> None:
        """Do nothing: what is sent is not written."""


class Bursts(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.begun: list[str] = []
        self.threads: set[int] = set()
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)
        self.bridge = self.start_bridge(THREADS)

    def start_bridge(self, threads: int) -> bridge.Bridge:
        started = bridge.Bridge(self.answer, threads, lambda _path: 1024, PATIENCE)
        started.start()
        self.addCleanup(started.stop)
        return started

    def answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer as a slow application: what changes something takes until the test goes on."""
        self.begun.append(environ["PATH_INFO"])
        self.threads.add(threading.get_ident())
        if environ["REQUEST_METHOD"] == "PUT":
            self.go_on.wait(PATIENCE)
        start_response("200 OK", [])
        return [environ["PATH_INFO"].encode()]

    async def ask(self, method: str, path: str) -> str:
        """Send a request to the bridge and return the body of the answer."""
        scope = {
            **{"type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b""},
            **{"headers": [], "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 9), "http_version": "1.1"},
            **{"scheme": "http", bridge.CONNECTION: _Client(), bridge.WRITES: _Client()},
        }
        got: list[bytes] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            got.append(message.get("body", b""))

        async with asyncio.timeout(PATIENCE):
            await self.bridge(scope, receive, send)
        return b"".join(got).decode()

    async def wait_until_begun(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.begun) < number:
                await asyncio.sleep(0.01)

    def test_reads_and_heartbeats_do_not_wait_for_a_thousand_changes(self) -> None:
        """Deployments keep their threads until agents have called."""

        async def burst() -> list[str]:
            changes = [asyncio.create_task(self.ask("PUT", f"/{number}")) for number in range(MANY)]
            await self.wait_until_begun(THREADS - THREADS // 4)
            for method, path in (("GET", "/read"), ("POST", "/v1/heartbeat/n1")):
                self.assertEqual(path, await self.ask(method, path))
            self.go_on.set()
            return list(await asyncio.gather(*changes))

        self.assertEqual([f"/{number}" for number in range(MANY)], asyncio.run(burst()))

    def test_changes_are_begun_in_order_of_arrival(self) -> None:
        self.bridge = self.start_bridge(1)  # of several threads that have got a request, one may run much later
        paths = [f"/{number}" for number in range(MANY)]

        async def burst() -> None:
            changes = [asyncio.create_task(self.ask("PUT", path)) for path in paths]
            await self.wait_until_begun(1)
            self.go_on.set()
            await asyncio.gather(*changes)

        asyncio.run(burst())
        self.assertEqual(paths, self.begun)

    def test_the_thread_that_was_busy_just_now_serves_the_next(self) -> None:
        async def ask_often() -> None:
            for number in range(MANY):
                await self.ask("GET", f"/{number}")

        asyncio.run(ask_often())
        # Two: one may still be on its way back.
        self.assertLessEqual(len(self.threads), 2)

    def test_one_call_wakes_the_event_loop_for_several_answers(self) -> None:
        calls: list[Any] = []

        async def burst() -> None:
            loop = asyncio.get_running_loop()
            call = loop.call_soon_threadsafe

            def note(*given: Any) -> asyncio.Handle:
                calls.append(given)
                return call(*given)

            loop.call_soon_threadsafe = note  # type: ignore[method-assign]
            reads = [asyncio.create_task(self.ask("GET", f"/{number}")) for number in range(THREADS)]
            await asyncio.sleep(0)  # they are given to threads
            until = time.monotonic() + PATIENCE
            while len(self.bridge._answers) < THREADS and time.monotonic() < until:
                time.sleep(0.01)  # the loop is busy
            await asyncio.gather(*reads)

        asyncio.run(burst())
        self.assertEqual(1, len(calls))

    def test_what_waits_at_the_stop_is_still_served(self) -> None:
        async def burst() -> list[str]:
            changes = [asyncio.create_task(self.ask("PUT", f"/{number}")) for number in range(MANY)]
            await self.wait_until_begun(THREADS - THREADS // 4)
            self.bridge.stop()
            self.go_on.set()
            return list(await asyncio.gather(*changes))

        self.assertEqual(MANY, len(set(asyncio.run(burst()))))
