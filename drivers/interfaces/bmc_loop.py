"""One thread runs the exchanges with all BMCs: while one waits for a packet, the others go on.

What the libraries do with a session (pyghmi, sushy) is written as if it had a thread: it sends, and waits for what
comes back. Here each exchange runs in a greenlet, and waiting means that asyncio's loop goes on with other exchanges. A
thousand unresponsive BMCs cost a thousand timers and no thread, and what is written for one session at a time stays as
it is. Measured for IPMI with 1,000 BMCs of which 100 are unresponsive: the last other one is read after 0.9 s; with 100
threads, each with its own session, after 20 s, with 8 after 240 s, and for about the same processor time. Redfish with
TLS costs as much as IPMI once sessions are open (``python -m benchmarks.bmcs``).
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent import futures
from typing import TypeVar

import greenlet

Answer = TypeVar("Answer")

_guard = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
"""The loop, once there is something to do; it ends with the process."""


def submit(coroutine: Coroutine[object, None, Answer]) -> "futures.Future[Answer]":
    """Have the loop run a coroutine; return at once. Not for the loop's own thread."""
    with _guard:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="bmcs", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(coroutine, _loops[0])


async def run_in_loop(exchange: Callable[[], Answer]) -> Answer:
    """Return what ``exchange`` returns; wherever it calls :func:`wait`, the loop goes on with others."""
    part = greenlet.greenlet(exchange)
    outcome = part.switch()
    while not part.dead:
        awaited = asyncio.ensure_future(outcome)
        try:
            await asyncio.wait([awaited])
        except asyncio.CancelledError as exc:
            awaited.cancel()
            outcome = part.throw(exc)
        else:
            outcome = part.switch(awaited)
    answer: Answer = outcome
    return answer


def wait(awaitable: Awaitable[Answer]) -> Answer:
    """Wait, inside an exchange; return what is awaited, or raise what it raises."""
    awaited: asyncio.Future[Answer] = greenlet.getcurrent().parent.switch(awaitable)
    return awaited.result()
