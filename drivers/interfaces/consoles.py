"""The serial consoles that a conductor has open: one for each machine, for all its readers.

Threads call :class:`Consoles`. What it does with a console takes place on the loop of all BMCs.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import get_args

from oslo_config import cfg
from oslo_log import log

from ingot.common import console_frames as frames
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.interfaces.shared_console import MakeStream, Options, Reader, SharedConsole

LOG = log.getLogger(__name__)

_DONE_WITHIN_S = 10.0


class Consoles:
    """Of all nodes, by uuid."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._options = Options(conf)
        self._consoles: dict[str, SharedConsole] = {}

    # For threads

    def start(self, node: str, make: MakeStream) -> None:
        """Open the console of a node and keep it open until :meth:`stop`; return when it is open.

        :raises ConsoleTaken: another client of the BMC has it.
        :raises HardwareError: the BMC refuses.
        :raises HardwareUnreachable: it does not answer, or it is not open in time.
        """

        async def start() -> None:
            await self._get(node).start(make)

        bmc_loop.submit(start()).result()

    def keep(self, node: str, make: MakeStream) -> None:
        """Do the same without waiting, and whatever the outcome: the next call tries again."""

        async def keep() -> None:
            self._get(node).keep(make)

        _wait("Keeping a serial console open", keep())

    def release(self, node: str) -> None:
        """Keep it open no longer than it is read: it is not enabled anymore."""
        self._on_loop([node], "Releasing serial consoles", SharedConsole.release)

    def stop(self, node: str, reason: str, code: frames.End = frames.End.RELEASED) -> None:
        """Give the console of a node back to its BMC, if it is open; its readers learn the reason."""
        self._on_loop([node], "Closing serial consoles", lambda console: console.close(code, reason))

    def stop_all(self, reason: str) -> None:
        """Do so with all of them, at the end of the process."""
        close = functools.partial(SharedConsole.close, code=frames.End.STOPS, reason=reason)
        self._on_loop(self.list_nodes(), "Closing serial consoles", close)

    def note_boot(self, node: str) -> None:
        """Forget what the machine has said: it is switched on, or reset."""
        self._on_loop([node], "Forgetting what machines have said", SharedConsole.note_boot)

    def _on_loop(self, nodes: Iterable[str], what: str, work: Callable[[SharedConsole], Awaitable[None]]) -> None:
        """Have something done with the consoles of nodes, as far as there are any, at once; see :func:`_wait`."""
        known = [node for node in nodes if node in self._consoles]

        async def run() -> None:
            found = [self._consoles[node] for node in known if node in self._consoles]
            outcomes = await asyncio.gather(*map(work, found), return_exceptions=True)
            for console, outcome in zip(found, outcomes, strict=True):
                if outcome is not None:
                    LOG.error("Node %s: %s failed unexpectedly", console.node, what.lower(), exc_info=outcome)

        if known:
            _wait(what, run())

    def read(self, node: str) -> bytes | None:
        """Return what the machine has said since it was switched on; None: its console is not open."""
        console = self._consoles.get(node)
        return None if console is None else bytes(console.said)

    def find_writer(self, node: str) -> str | None:
        """Return who may type."""
        console = self._consoles.get(node)
        return None if console is None or console.writer is None else console.writer.user

    def is_running(self, node: str) -> bool:
        """Return whether the console of a node is open, or is being opened."""
        console = self._consoles.get(node)
        return console is not None and console.is_running

    def is_ready_to_open(self, node: str) -> bool:
        """Return whether :meth:`keep` would open the console of a node now."""
        console = self._consoles.get(node)
        return console is None or console.is_ready_to_open

    def list_nodes(self) -> list[str]:
        """Return the nodes whose console is open, or is to be."""
        return list(self._consoles)

    def count(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return how many consoles are in each state, and how many readers read and write."""
        states, modes = dict.fromkeys(get_args(frames.State), 0), {"read": 0, "write": 0}
        for console in list(self._consoles.values()):
            states[console.state] += 1
            modes["write"] += console.writer is not None
            modes["read"] += len(console.readers) - (console.writer is not None)
        return states, modes

    # On the loop

    def attend(self, node: str, make: MakeStream, reader: Reader, take_over: bool) -> SharedConsole:
        """Have a reader read the console of a node, which is opened for that if it is not open."""
        console = self._get(node)
        console.attend(reader, make, take_over)
        return console

    def _get(self, node: str) -> SharedConsole:
        if node not in self._consoles:
            self._consoles[node] = SharedConsole(node, self._options, self._forget(node))
        return self._consoles[node]

    def _forget(self, node: str) -> Callable[[SharedConsole], None]:
        def forget(console: SharedConsole) -> None:
            if self._consoles.get(node) is console:
                del self._consoles[node]

        return forget


def _wait(what: str, work: Coroutine[object, None, None]) -> None:
    """Have the loop do something. What takes too long goes on there: the caller has other work, or other nodes."""
    try:
        bmc_loop.submit(work).result(_DONE_WITHIN_S)
    except TimeoutError:
        LOG.warning("%s has not ended within %.0f s, and goes on", what, _DONE_WITHIN_S)
