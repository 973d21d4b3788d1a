"""Boot media whose files come from servers that users name, and that mean no good."""

import asyncio
import concurrent.futures
import gzip
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import testtools

from ingot.api.web.streams import Reading
from ingot.common import errors
from tests import http_handler, patience
from tests.unit.api import test_boot_media

MIB = 1024 * 1024


class HostileMedia(test_boot_media.MediaCase):
    sizes: ClassVar[tuple[str, ...]] = ("9" * 5000, "\xb2", "-1", "")

    def serve(self, answer: Callable[[http_handler.Handler], None]) -> str:
        return self.useFixture(http_handler.FunctionServer(answer)).url

    def drip(self, handler: http_handler.Handler) -> None:
        """Answer the question for the size at once, and then byte by byte."""
        first, _, last = handler.headers["Range"].removeprefix("bytes=").partition("-")
        length = int(last) + 1 - int(first)
        handler.answer(206, **{"Content-Length": str(length), "Content-Range": f"bytes {first}-{last}/{4 * MIB}"})
        for _ in range(length):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.05)

    def test_what_arrives_byte_by_byte_is_not_read_for_ever(self) -> None:
        self.conf.set_override("webserver_connection_timeout", 1)
        path = self.link(image=self.serve(self.drip))
        for part in ("bytes=0-65535", f"bytes=0-{2 * MIB}"):
            began = time.monotonic()
            failed = self.assertRaises(errors.ImageError, self.fetch, path, Range=part)
            self.assertIn("while it was read", failed.message)
            self.assertLess(time.monotonic() - began, patience.seconds(5))

    def test_what_is_packed_stays_so(self) -> None:
        packed = gzip.compress(bytes(MIB))

        def answer(handler: http_handler.Handler) -> None:
            handler.answer(200, packed, **{"Content-Encoding": "gzip"})

        self.assertEqual(packed, self.read(self.link(image=self.serve(answer))))

    def test_a_size_that_there_is_not_is_an_error_of_its_server(self) -> None:
        for size in self.sizes:
            for status, headers in ((206, {"Content-Range": f"bytes 0-0/{size}"}), (200, {"Content-Length": size})):

                def answer(
                    handler: http_handler.Handler, status: int = status, headers: dict[str, str] = headers
                ) -> None:
                    handler.answer(status, **headers)

                found = self.api("GET", self.link(image=self.serve(answer)))
                self.assertEqual(503, found.status, (status, size))
                self.assertIn("does not say how large it is", found.message)

    def test_no_more_is_laid_out_than_a_medium_holds(self) -> None:
        url = self.serve(lambda handler: handler.answer(206, **{"Content-Range": f"bytes 0-0/{10**15}"}))
        found = self.api("GET", self.link(kernel=url))
        self.assertEqual(503, found.status)
        self.assertIn("/boot/kernel has 1000000000000000 bytes", found.message)

    def test_a_slow_server_keeps_few_threads_however_many_ask(self) -> None:
        goes_on, asked = threading.Event(), threading.Semaphore(0)
        self.addCleanup(goes_on.set)

        def answer(handler: http_handler.Handler) -> None:
            asked.release()
            goes_on.wait(patience.seconds(30))
            handler.answer(206, **{"Content-Range": "bytes 0-0/1000"})

        path = self.link(image=self.serve(answer))
        with concurrent.futures.ThreadPoolExecutor(2) as clients:
            first = [clients.submit(self.api, "HEAD", path) for _ in range(2)]
            for _ in first:
                self.assertTrue(asked.acquire(timeout=patience.seconds(20)))
            refused = self.api("GET", path)
            self.assertEqual(503, refused.status)
            self.assertIn("2 others wait for it already", refused.message)
            goes_on.set()
            self.assertEqual([200, 200], [one.result().status for one in first])
        self.assertEqual(200, self.api("HEAD", path).status)


class Turns(testtools.TestCase):
    def test_readers_of_a_medium_keep_one_thread_also_when_they_have_gone(self) -> None:
        running, most, goes_on = [0], [0], threading.Event()

        def make() -> Iterator[bytes]:
            running[0] += 1
            most[0] = max(most[0], running[0])
            goes_on.wait(patience.seconds(20))
            running[0] -= 1
            yield b"a part"

        async def read(turn: asyncio.Lock) -> list[bytes]:
            return [part async for part in Reading(make(), turn).blocks()]

        async def run() -> None:
            turn = asyncio.Lock()
            for _ in range(5):
                gone = asyncio.create_task(read(turn))
                await asyncio.sleep(0.05)
                gone.cancel()
                await asyncio.wait([gone])
            others = [asyncio.create_task(read(turn)) for _ in range(3)]
            await asyncio.sleep(0.1)
            goes_on.set()
            self.assertEqual([[b"a part"]] * 3, await asyncio.gather(*others))

        asyncio.run(run())
        self.assertEqual(1, most[0])
