"""One machine's serial console, for any number of readers of whom one may type. All of it runs on the loop of BMCs."""

import abc
import asyncio
import contextlib
import functools
import time
from collections.abc import Callable
from typing import Literal

from oslo_config import cfg
from oslo_log import log

from ingot.common import console_frames as frames
from ingot.common import errors
from ingot.drivers.interfaces import console_logs
from ingot.drivers.interfaces.serial_stream import SerialStream, StreamTaken

LOG = log.getLogger(__name__)

MakeStream = Callable[[bool], SerialStream]
"""Returns a new stream to a machine's console, given whether it is taken from another client of the BMC."""

_OPENED_WITHIN_S = 50.0
"""Seconds after which who starts it waits no more, which is sooner than a client of RPC gives up."""

_TYPED_WITHIN_S = 5.0
_ENDED_WITHIN_S = 3.0
"""Seconds in which what has read a stream ends, when the stream is closed."""

_AT_ONCE = 64
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 10.0, 300.0


class Options:
    """What all consoles of a conductor share."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.most_said: int = conf.console.scrollback_size * 1024
        self.linger: float = conf.console.linger_time
        self.logs = console_logs.ConsoleLogs(conf.console.log_directory)
        self.turns = asyncio.Semaphore(_AT_ONCE)
        """For opening: however many there are to be, others call their BMCs meanwhile."""


class Reader(abc.ABC):
    """Who reads a console.

    :param user: who it is, for other readers.
    :param types: whether it is to type.
    """

    def __init__(self, user: str, types: bool) -> None:
        self.user = user
        self.types = types

    @abc.abstractmethod
    def hear(self, said: bytes) -> None:
        """Take what the machine says."""

    @abc.abstractmethod
    def tell(self, status: frames.Status) -> None:
        """Take note of the console's state."""

    @abc.abstractmethod
    def end(self, code: frames.End, reason: str) -> None:
        """Leave: there is nothing more to read."""


class SharedConsole:
    """
    :param node: its uuid.
    :param forget: is called when the console is closed since it has no readers.
    :ivar said: what the machine has said since it was switched on.
    :ivar readers: those who read it now.
    :ivar writer: which of them may type.
    """

    def __init__(self, node: str, options: Options, forget: "Callable[[SharedConsole], None]") -> None:
        self.node = node
        self.said = bytearray()
        self.readers: list[Reader] = []
        self.writer: Reader | None = None
        self.state: frames.State = "closed"
        self._reason: str | None = None
        self._options = options
        self._forget = forget
        self._is_kept = False
        self._is_ending = False
        self._pause = _FIRST_PAUSE_S
        self._not_before = 0.0
        self._stream: SerialStream | None = None
        self._life: asyncio.Task[None] | None = None
        self._turn: asyncio.Future[Literal[True]] | None = None
        self._opened: asyncio.Future[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._farewell: asyncio.Task[None] | None = None

    # Its stream

    @property
    def is_running(self) -> bool:
        """Whether it is open, or is being opened."""
        return self._life is not None and not self._is_ending

    @property
    def is_ready_to_open(self) -> bool:
        """Whether it is to be opened if it is kept: it is not open, and the pause since it has failed is over."""
        return not self.is_running and time.monotonic() >= self._not_before

    async def start(self, make: MakeStream) -> None:
        """Open it, and keep it open; see :meth:`ingot.drivers.interfaces.consoles.Consoles.start`."""
        try:
            async with asyncio.timeout(_OPENED_WITHIN_S):
                await asyncio.shield(self._open(make, False))
        except TimeoutError:
            self._leave_alone()
            reason = f"it is not open after {_OPENED_WITHIN_S:.0f} s"
            raise errors.HardwareUnreachable(what="The serial console", reason=reason) from None
        self._is_kept = True

    def keep(self, make: MakeStream) -> None:
        """Do the same without waiting, and not too soon after it has failed; each pause in a row is twice as long."""
        self._is_kept = True
        self._stay()
        if self.is_ready_to_open:
            self._open(make, False)

    async def release(self) -> None:
        """Keep it open no longer than it is read."""
        self._is_kept = False
        self._leave_alone()

    def _open(self, make: MakeStream, take_over: bool) -> "asyncio.Future[None]":
        """Open it, unless it is open or about to be; return what is done when it is open."""
        self._stay()
        if self._life is None or self._is_ending or self._opened is None:
            self._is_ending = False
            self.state, self._reason = "connecting", None
            self._opened = asyncio.get_running_loop().create_future()
            self._opened.add_done_callback(_ignore)
            self._stream = stream = make(take_over)
            stream.changed = functools.partial(self._follow, stream)
            self._life = asyncio.ensure_future(self._live(stream, self._opened, self._life))
        return self._opened

    async def _live(
        self, stream: SerialStream, opened: "asyncio.Future[None]", before: "asyncio.Task[None] | None"
    ) -> None:
        error: errors.IngotError | None = None
        try:
            if before is not None:  # BMCs have one session for it
                await asyncio.wait([before])
            await self._open_in_turn(stream)
            if stream.has_opened:
                opened.set_result(None)
                self._pause = _FIRST_PAUSE_S
                LOG.info("Node %s: its serial console is open, at %s", self.node, stream.where)
            while said := await stream.read():
                self._hear(said)
        except errors.IngotError as exc:
            error = exc
        except Exception as exc:  # the edge of a task
            LOG.exception("Node %s: its serial console failed unexpectedly", self.node)
            error = errors.unexpected_error(exc)
        finally:
            if self._stream is stream:
                self._stream = None
            await stream.close()
            self._end_life(error, opened)

    async def _open_in_turn(self, stream: SerialStream) -> None:
        """Open a stream, unless it is to be closed before its turn has come: many BMCs may be asked before."""
        if stream.is_closing:
            return
        self._turn = turn = asyncio.ensure_future(self._options.turns.acquire())
        try:
            await asyncio.wait([turn])
            if not turn.cancelled():
                await stream.open()
        finally:
            if not turn.cancel() and not turn.cancelled():
                self._options.turns.release()

    def _end_life(self, error: errors.IngotError | None, opened: "asyncio.Future[None]") -> None:
        is_last = opened is self._opened
        if is_last:
            self._life = None
        if isinstance(error, StreamTaken):
            error = errors.ConsoleTaken(error.message)
        if not opened.done():
            reason = "it was closed meanwhile"
            opened.set_exception(error or errors.HardwareError(what="Opening the serial console", reason=reason))
        if error is None or not is_last:
            return
        LOG.warning("Node %s: its serial console is not available: %s", self.node, error.message)
        self._not_before = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE_S)
        is_taken = isinstance(error, errors.ConsoleTaken)
        self._change("taken" if is_taken else "lost", error.message)
        self._end_readers(frames.End.TAKEN if is_taken else frames.End.FAILED, error.message)
        self._leave_alone()

    def _follow(self, stream: SerialStream) -> None:
        if self._stream is stream:
            self._change("lost" if stream.trouble else "open", stream.trouble)

    def _hear(self, said: bytes) -> None:
        self.said += said
        if (more := len(self.said) - self._options.most_said) > 0:
            del self.said[:more]
        self._options.logs.add(self.node, said)
        for reader in list(self.readers):
            reader.hear(said)

    async def note_boot(self) -> None:
        """Forget what the machine has said."""
        self.said.clear()

    async def close(self, code: frames.End, reason: str) -> None:
        """Give it back to the BMC, in a few seconds whatever the BMC does; readers learn the reason."""
        self._is_kept = False
        self._stay()
        self._change("closed", reason)
        self._end_readers(code, reason)
        life, self._is_ending = self._life, True
        if self._turn is not None:
            self._turn.cancel()
        if self._stream is not None:
            LOG.info("Node %s: its serial console is closed: %s", self.node, reason)
            await self._stream.close()
        if life is not None:
            await asyncio.wait([life], timeout=_ENDED_WITHIN_S)
            life.cancel()
        if self._is_ending:
            self._forget(self)

    # Its readers

    def attend(self, reader: Reader, make: MakeStream, take_over: bool) -> None:
        """Have a reader read from now on, beginning with what was said before.

        :param take_over: whether the reader types in place of another one, and of another client of the BMC.
        """
        if reader.types and self.writer is not None and not take_over:
            reader.end(frames.End.TAKEN, f"{self.writer.user} types here; send take_over=true, or mode=read")
            return
        before, reason = self.writer, None
        if reader.types:
            if before is not None:
                before.types = False
                reason = f"{reader.user} types now instead of {before.user}"
                LOG.info("Node %s: %s on its serial console", self.node, reason)
            self.writer = reader
        self.readers.append(reader)
        self._open(make, take_over)
        if self.said:
            reader.hear(bytes(self.said))
        self._tell(reason)

    def leave(self, reader: Reader) -> None:
        """Have a reader read no more; safe to repeat."""
        with contextlib.suppress(ValueError):
            self.readers.remove(reader)
            if self.writer is reader:
                self.writer = None
            self._tell()
        self._leave_alone()

    async def type(self, reader: Reader, typed: bytes) -> None:
        """Type something, or a break if it is nothing; a reader who may not type learns the reason."""
        if reader is not self.writer:
            whose = f"{self.writer.user} types here" if self.writer else "this reader only reads"
            reader.tell(self._describe(reader, f"nothing is typed: {whose}"))
        elif self._stream is not None:
            try:
                if typed:
                    await self._stream.write(typed, _TYPED_WITHIN_S)
                else:
                    await self._stream.send_break(_TYPED_WITHIN_S)
            except errors.IngotError as exc:
                reader.tell(self._describe(reader, exc.message))

    def _end_readers(self, code: frames.End, reason: str) -> None:
        for reader in list(self.readers):
            reader.end(code, reason)
        self.readers.clear()
        self.writer = None

    def _leave_alone(self) -> None:
        """Close it after a while, unless there is a new reader."""
        if self.readers or self._is_kept or self._expiry is not None:
            return
        self._expiry = asyncio.get_running_loop().call_later(self._options.linger, self._expire)

    def _expire(self) -> None:
        self._farewell = asyncio.ensure_future(self._close_after(self._expiry))

    async def _close_after(self, expiry: asyncio.TimerHandle | None) -> None:
        """Close it, unless someone has come between the end of the time and now."""
        if self._expiry is expiry:
            await self.close(frames.End.DONE, "no one reads it")

    def _stay(self) -> None:
        """Have it stay open, although it was left alone."""
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    # What readers learn

    def _change(self, state: frames.State, reason: str | None = None) -> None:
        self.state, self._reason = state, reason
        self._tell()

    def _tell(self, reason: str | None = None) -> None:
        for reader in list(self.readers):
            reader.tell(self._describe(reader, reason or self._reason))

    def _describe(self, reader: Reader, reason: str | None) -> frames.Status:
        return {
            "type": "status",
            "state": self.state,
            "reason": reason,
            "mode": "write" if reader is self.writer else "read",
            "writer": self.writer.user if self.writer else None,
            "readers": len(self.readers),
        }


def _ignore(opened: "asyncio.Future[None]") -> None:
    """See an error that no caller may wait for."""
    if not opened.cancelled():
        opened.exception()
