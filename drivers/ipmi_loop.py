"""One thread carries on the talks with all BMCs: where a talk waits for a packet, the others go on.

What pyghmi does with a session is written as if it had a thread: it sends, and waits for what comes back. Here each
talk runs in a greenlet, and waiting means that asyncio's loop goes on with other talks. A thousand silent BMCs cost a
thousand timers and no thread, and what is written for one session at a time stays as it is. Measured with 1,000 BMCs
of which 100 are silent: the last live one is read after 0.9 s; with 100 threads, each driving its own session, after
20 s, with 8 after 240 s, and for about the same processor time (``python -m tests.scale.bmcs``).
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent import futures
from typing import Any, TypeVar

import greenlet

Answer = TypeVar("Answer")

_guard = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
"""The loop, once there is something to do; it ends with the process."""


def begin(talk: Coroutine[Any, Any, Answer]) -> "futures.Future[Answer]":
    """Has the loop carry on a coroutine; returns at once. Not for the loop's own thread."""
    with _guard:
        if not _loops:
            _loops.append(asyncio.new_event_loop())
            threading.Thread(target=_loops[0].run_forever, name="ipmi", daemon=True).start()
    return asyncio.run_coroutine_threadsafe(talk, _loops[0])


async def carried_on(talk: Callable[[], Answer]) -> Answer:
    """What ``talk`` returns; wherever it calls :func:`readable`, the loop goes on with others."""
    part = greenlet.greenlet(talk)
    answer: Any = part.switch()
    while not part.dead:
        answer = part.switch(await _readable(*answer))
    said: Answer = answer
    return said


def readable(sock: socket.socket, timeout: float) -> bool:
    """Inside a talk: waits until there is something to read, ``timeout`` seconds at most; whether there is."""
    return bool(greenlet.getcurrent().parent.switch((sock, timeout)))


async def _readable(sock: socket.socket, timeout: float) -> bool:
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sock, there.set)
    try:
        async with asyncio.timeout(timeout):
            return await there.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(sock)
