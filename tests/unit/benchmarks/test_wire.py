"""The HTTP of the load: bodies of every kind, connections that are kept, and such as are gone."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import testtools

from benchmarks import wire


def answer_once(*parts: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """Return a server's behaviour: it answers one request of a connection with some bytes and closes it."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError):
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
        writer.close()

    return converse


class WireTest(testtools.TestCase):
    def ask(self, server: Any, *requests: tuple[Any, ...]) -> list[wire.Message]:
        async def ask() -> list[wire.Message]:
            running = await server
            host, port = running.sockets[0].getsockname()
            client = wire.Client(f"http://{host}:{port}", {"X-Own": "1"}, timeout=10)
            answers = [await client.request(*request) for request in requests]
            client.close()
            running.close()
            return answers

        return asyncio.run(ask())

    def test_requests_arrive_and_answers_return(self) -> None:
        seen: list[Any] = []

        def handle(method: str, path: str, body: Any) -> wire.Answer:
            seen.append((method, path, body))
            return (200, b"\0\1") if method == "GET" else (409, {"is": body})

        raw, refused = self.ask(wire.serve(handle), ("GET", "/a?b=c"), ("PUT", "/d", {"e": 1}))
        self.assertEqual([("GET", "/a?b=c", None), ("PUT", "/d", {"e": 1})], seen)
        self.assertEqual((200, b"\0\1", 409, {"is": {"e": 1}}), (raw.status, raw.body, refused.status, refused.json()))

    def test_a_connection_is_used_again(self) -> None:
        """The server answers each connection once, without saying so: the second request takes a fresh one."""
        server = asyncio.start_server(answer_once(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7"), "127.0.0.1", 0)
        self.assertEqual([7, 7], [answer.json() for answer in self.ask(server, ("GET", "/"), ("GET", "/"))])

    def test_a_broken_answer_is_an_error_of_its_own(self) -> None:
        for answer in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"):
            server = asyncio.start_server(answer_once(answer), "127.0.0.1", 0)
            error = self.assertRaises(wire.WireError, lambda made=server: self.ask(made, ("GET", "/x"))[0].status)
            self.assertIn("GET /x", str(error))

    def test_work_is_done_by_as_many_as_allowed(self) -> None:
        at_work: list[int] = []
        most: list[int] = []

        async def work(item: int) -> None:
            at_work.append(item)
            most.append(len(at_work))
            await asyncio.sleep(0)
            at_work.remove(item)

        asyncio.run(wire.each(range(9), 3, work))
        self.assertEqual((9, 3), (len(most), max(most)))
