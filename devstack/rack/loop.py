"""What all machines of one rack share: its settings, the event loop's thread pools and the limits of both.

The rack is one asyncio loop. A waiting machine (a boot delay, the pause between two heartbeats, an open
connection) is a timer or a coroutine and costs no thread; only work that blocks borrows one:

* ``quick``: short requests (boot script, lookup, heartbeat), so that a long image never delays a heartbeat;
* ``heavy``: downloading, converting, writing and erasing.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ingot.rack.config import RackConfig

Result = TypeVar("Result")

QUICK_THREADS = 32
HEAVY_THREADS = 8
POOL_PREFIX = "rack-pool"


def _pool(size: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=size, thread_name_prefix=f"{POOL_PREFIX}-{name}")


@dataclass
class Site:
    """One rack's settings and thread pools."""

    config: RackConfig
    quick: ThreadPoolExecutor = field(default_factory=lambda: _pool(QUICK_THREADS, "quick"))
    heavy: ThreadPoolExecutor = field(default_factory=lambda: _pool(HEAVY_THREADS, "heavy"))

    @property
    def state_dir(self) -> Path:
        return self.config.state_dir

    def close(self) -> None:
        """Let no new work start; threads finish what they do (image writers notice their machine's power)."""
        self.quick.shutdown(wait=False, cancel_futures=True)
        self.heavy.shutdown(wait=False, cancel_futures=True)


async def in_thread(pool: Executor, function: Callable[..., Result], *args: Any) -> Result:
    """Run a blocking function on ``pool`` and wait for it without blocking the loop."""
    return await asyncio.get_running_loop().run_in_executor(pool, function, *args)


class LoopThread:
    """An asyncio event loop in a thread of its own, to be called from other threads."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rack-loop", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, function: Callable[..., Result], *args: Any, timeout: float = 10.0) -> Result:
        """Call ``function(*args)`` on the loop's thread and return its result.

        Machines are only ever changed there, which is why they need no locks.
        :raises TimeoutError: when the loop did not get to it within ``timeout`` seconds.
        """

        async def _call() -> Result:
            return function(*args)

        return self.run(_call(), timeout)

    def run(self, work: Coroutine[Any, Any, Result], timeout: float = 10.0) -> Result:
        """Run a coroutine on the loop's thread and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(timeout)

    def stop(self) -> None:
        """Cancel every task, let each of them end, and stop the thread."""
        self.run(self._cancel_tasks())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)
        self.loop.close()

    async def _cancel_tasks(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
