"""The serial consoles that a conductor has open: one for each machine, for all its readers.

Threads call :class:`Consoles`. What it does with a console takes place on the loop of all BMCs.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar, get_args

from oslo_config import cfg

from ingot.common import console_frames as frames
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.interfaces.shared_console import MakeStream, Options, Reader, SharedConsole

Answer = TypeVar("Answer")

_CLOSED_WITHIN_S = 10.0


class Consoles:
    """Of all nodes, by uuid."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._options = Options(conf)
        self._consoles: dict[str, SharedConsole] = {}

    # For threads

    def start(self, node: str, make: MakeStream) -> None:
        """Open the console of a node and keep it open until :meth:`stop`; return when it is open.

        :raises ConsoleTaken: another client of the BMC has it.
        :raises HardwareError: the BMC refuses, or does not answer in time.
        """

        async def start() -> None:
            await self._get(node).start(make)

        bmc_loop.submit(start()).result()

    def keep(self, node: str, make: MakeStream) -> None:
        """Do the same without waiting, and whatever the outcome: the next call tries again."""

        async def keep() -> None:
            self._get(node).keep(make)

        bmc_loop.submit(keep()).result()

    def release(self, node: str) -> None:
        """Keep it open no longer than it is read: it is not enabled anymore."""

        async def release() -> None:
            if node in self._consoles:
                self._consoles[node].release()

        bmc_loop.submit(release()).result()

    def stop(self, node: str, reason: str, code: frames.End = frames.End.RELEASED) -> None:
        """Give the console of a node back to its BMC, if it is open; its readers learn the reason."""

        async def stop() -> None:
            if node in self._consoles:
                await self._consoles[node].close(code, reason)

        if node in self._consoles:
            bmc_loop.submit(stop()).result(_CLOSED_WITHIN_S)

    def stop_all(self, reason: str) -> None:
        """Do so with all of them, at the end of the process."""
        for node in self.list_nodes():
            self.stop(node, reason, frames.End.STOPS)

    def note_boot(self, node: str) -> None:
        """Forget what the machine has said: it is switched on, or reset."""

        async def note() -> None:
            if node in self._consoles:
                self._consoles[node].note_boot()

        if node in self._consoles:
            bmc_loop.submit(note()).result()

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
