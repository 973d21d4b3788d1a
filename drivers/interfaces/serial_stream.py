"""A machine's serial console as a stream of bytes: what consoles of all kinds are built on, whatever the BMC speaks."""

import abc
import asyncio
import time
from collections.abc import Callable

from oslo_log import log

from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop

LOG = log.getLogger(__name__)

_MOST_SAID = 2**18
_MOST_TYPED = 2**14
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_FAREWELL = 5.0

BREAK = b""
"""Stands for a break among what is typed."""


class StreamTaken(errors.HardwareError):
    """Another client of the BMC has the machine's serial console."""

    template = "The serial console of {what} is not available: {reason}"


class SerialStream(abc.ABC):
    """What a machine says on its serial line, and what is typed there.

    Its coroutines run on the loop of all BMCs: ``bmc_loop.submit(stream.read())`` calls one from a thread, and
    ``asyncio.wrap_future`` waits for that on another loop. A lost connection is opened again and again, until nothing
    has answered for ``patience`` seconds; meanwhile :attr:`trouble` says why.

    :ivar dropped: bytes that the machine has said and that were overwritten before they were read.
    :ivar trouble: why there is no connection now; None: there is one.
    :ivar changed: is called when ``trouble`` has changed.
    :param where: the BMC, for messages.
    :param patience: seconds.
    """

    def __init__(self, where: str, patience: float) -> None:
        self.where = where
        self.dropped = 0
        self.trouble: str | None = "it is not open yet"
        self.changed: Callable[[], object] = lambda: None
        self._patience = patience
        self._said = bytearray()
        self._typed: list[bytes] = []
        self._error: errors.IngotError | None = None
        self._closing = False
        self._has_opened = False
        self._heard = asyncio.Event()  # for the reader: something was said, or the end has come
        self._room = asyncio.Event()  # for the writer
        self._opened = asyncio.Event()
        self._woken = asyncio.Event()  # for the connection: something was typed, or is to be closed; or a packet came
        self._life: asyncio.Task[None] | None = None

    # For those who use it

    async def open(self) -> None:
        """Connect to the console; may be called once.

        :raises StreamTaken: another client has it.
        :raises HardwareError: the BMC refuses, or does not answer in time.
        """
        self._life = asyncio.ensure_future(self._live())
        await self._opened.wait()
        if self._error is not None:
            raise self._error

    async def read(self) -> bytes:
        """Return what the machine has said since the last call, when there is something; b"": the stream was closed.

        :raises StreamTaken: another client has taken the console over.
        :raises HardwareError: the connection is lost for good.
        """
        while not self._said:
            if self._error is not None:
                raise self._error
            if self._closing:
                return b""
            self._heard.clear()
            await self._heard.wait()
        said = bytes(self._said)
        self._said.clear()
        return said

    async def write(self, data: bytes, timeout: float) -> None:
        """Type something; returns when it is buffered.

        :param timeout: seconds to wait for room in the buffer.
        :raises HardwareUnreachable: the BMC has not taken what was typed before.
        """
        await self._put([data] if data else [], timeout)

    async def send_break(self, timeout: float) -> None:
        """Send a break; parameter and errors as those of :meth:`write`."""
        await self._put([BREAK], timeout)

    async def close(self) -> None:
        """Give the console back, in a few seconds whatever the BMC does; may be called again."""
        self._closing = True
        self._woken.set()
        self._heard.set()
        if self._life is not None:
            await asyncio.wait([self._life], timeout=_FAREWELL)
            self._life.cancel()

    # For its kinds

    @abc.abstractmethod
    async def attend(self) -> None:
        """Connect, call :meth:`note_connection`, and carry bytes until :attr:`is_closing`.

        :raises HardwareUnreachable: there is no connection, or not anymore: another one is tried.
        :raises HardwareError: there is to be none.
        """

    @property
    def is_closing(self) -> bool:
        return self._closing

    @property
    def woken(self) -> asyncio.Event:
        """Is set when there is something to send, and when the stream is to end."""
        return self._woken

    @property
    def has_opened(self) -> bool:
        """Whether there was a connection once: what is open at the BMC may be this stream's own."""
        return self._has_opened

    def note_connection(self) -> None:
        self.trouble, self._has_opened = None, True
        self._opened.set()
        self.changed()

    def hear(self, data: bytes) -> None:
        """Take what the machine says; of more than is read in time, the oldest goes."""
        self._said += data
        if (more := len(self._said) - _MOST_SAID) > 0:
            self.dropped += more
            del self._said[:more]
        self._heard.set()

    def take_typed(self, most: int) -> bytes | None:
        """Return the next bytes to send, at most ``most``; BREAK for a break, None when there is nothing."""
        if not self._typed:
            return None
        first = self._typed.pop(0)
        if first[most:]:
            self._typed.insert(0, first[most:])
        self._room.set()
        return first[:most]

    def give_back(self, data: bytes) -> None:
        """Put back what the BMC did not take."""
        self._typed.insert(0, data)

    # Its life

    async def _put(self, parts: list[bytes], timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                while sum(map(len, self._typed)) + len(self._typed) > _MOST_TYPED and self._error is None:
                    self._room.clear()
                    await self._room.wait()
        except TimeoutError:
            reason = f"it has not taken what was typed before ({self.trouble or 'it is slow, or the machine is off'})"
            raise errors.HardwareUnreachable(what=f"The serial console of {self.where}", reason=reason) from None
        if self._error is not None:
            raise self._error
        self._typed += parts
        self._woken.set()

    async def _live(self) -> None:
        try:
            await self._stay_connected()
        except errors.IngotError as exc:
            self._error, self.trouble = exc, exc.message
        except Exception as exc:  # the edge of a task: who reads and writes must learn of it
            LOG.exception("The serial console of %s failed unexpectedly", self.where)
            self._error = errors.unexpected_error(exc)
            self.trouble = self._error.message
        finally:
            for event in (self._opened, self._heard, self._room):
                event.set()

    async def _stay_connected(self) -> None:
        lost_at, pause = time.monotonic(), _FIRST_PAUSE
        while not self._closing:
            try:
                await self.attend()
            except errors.HardwareUnreachable as exc:
                if self.trouble is None:  # there was a connection until now
                    lost_at, pause = time.monotonic(), _FIRST_PAUSE
                self.trouble = exc.message
                if not self._has_opened or time.monotonic() - lost_at > self._patience:
                    raise
                self.changed()
                LOG.warning("The serial console of %s is lost, and is opened again: %s", self.where, exc.message)
                await self._pause(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _pause(self, seconds: float) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(seconds):
                while not self._closing:
                    await self._woken.wait()
                    self._woken.clear()
        except TimeoutError:
            pass


def close_all(streams: list[SerialStream]) -> None:
    """Close streams from a thread, at the end of a process."""

    async def close() -> None:
        await asyncio.gather(*(stream.close() for stream in streams), return_exceptions=True)

    if streams:
        bmc_loop.submit(close()).result(_FAREWELL + 1)
