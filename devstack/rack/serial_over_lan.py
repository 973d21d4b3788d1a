"""Serial over LAN in the rack's BMCs (IPMI 2.0 chapter 15): a machine's console, for one client at a time.

pyghmi's own ``ServerConsole`` waits for acknowledgements in a loop that would keep all machines of the rack waiting.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

OK, IN_USE, DISABLED = 0x00, 0x80, 0x81
_NOT_ACTIVE = 0x80
_SERIAL = (1, 1)
_PAYLOAD = 1
_NACK, _UNAVAILABLE, _ENDED = 0x40, 0x20, 0x10
_BREAK = 0x10
_LARGEST = 128
_BUFFER = 2**16
_RESEND, _TRIES = 0.5, 10


class Console(Protocol):
    """The serial console of a machine."""

    console_hooks: list[Callable[[bytes], None]]

    @property
    def powered(self) -> bool: ...
    def feed(self, data: bytes) -> bool: ...
    def send_break(self) -> None: ...


class SerialOverLan:
    """The console of one machine and the session that has it."""

    def __init__(self, console: Console, port: Callable[[], int]) -> None:
        self._console, self._port = console, port
        self._session: Any = None
        self._said: deque[int] = deque(maxlen=_BUFFER)
        self._sent: tuple[int, bytes] | None = None
        self._number = self._tries = 0
        self._heard_number = 0
        self._timer: asyncio.TimerHandle | None = None
        console.console_hooks.append(self._hear)

    def activate(self, session: Any, data: bytes) -> tuple[int, bytes]:
        """Return the completion code and the data of the answer to Activate Payload."""
        if tuple(data[:2]) != _SERIAL:
            return DISABLED, b""
        if self._session is not None:
            return IN_USE, b""
        self._session = session
        session.sol_handler = self._take
        self._said.clear()
        self._sent, self._number, self._heard_number = None, 0, 0
        return OK, struct.pack("<IHHHH", 0, _LARGEST, _LARGEST, self._port(), 0xFFFF)

    def deactivate(self, session: Any) -> tuple[int, bytes]:
        """Do the same for Deactivate Payload, which any session may send; the one that has the console is informed."""
        if self._session is None:
            return _NOT_ACTIVE, b""
        if session is not self._session:
            self._transmit(0, 0, 0, _ENDED, b"")
        self.end()
        return OK, b""

    def tell_owner(self) -> bytes:
        """Return the data of the answer to Get Payload Instance Info: the session that has the console, or none."""
        owner = bytes(self._session.managedsessionid) if self._session is not None else bytes(4)
        return owner + bytes(8)

    def end(self, session: Any = None) -> None:
        """Forget the client, or a certain one only."""
        if self._session is None or session not in (None, self._session):
            return
        self._session.sol_handler = None
        self._session = None
        if self._timer is not None:
            self._timer.cancel()

    def _hear(self, data: bytes) -> None:
        if self._session is not None:
            self._said.extend(data)
            self._send_next()

    def _take(self, packet: bytearray) -> None:
        number, acknowledged, _count, operation = packet[0] & 0x0F, packet[1] & 0x0F, packet[2], packet[3]
        data = bytes(packet[4:])
        if self._sent is not None and acknowledged == self._sent[0]:
            self._sent = None
        if number:
            self._answer(number, data, operation)
        self._send_next()

    def _answer(self, number: int, data: bytes, operation: int) -> None:
        """Give what was typed to the machine, once, and acknowledge it."""
        if number == self._heard_number:  # sent again, because the acknowledgement was lost
            self._transmit(0, number, len(data), 0, b"")
            return
        if not self._console.powered:
            self._transmit(0, number, 0, _NACK | _UNAVAILABLE, b"")
            return
        self._heard_number = number
        if operation & _BREAK:
            self._console.send_break()
        self._transmit(0, number, len(data), 0, b"")
        self._console.feed(data)

    def _send_next(self) -> None:
        if self._session is None or self._sent is not None or not self._said:
            return
        data = bytes(self._said.popleft() for _ in range(min(len(self._said), _LARGEST - 4)))
        self._number = self._number % 15 + 1
        self._sent, self._tries = (self._number, data), 0
        self._resend()

    def _resend(self) -> None:
        if self._session is None or self._sent is None:
            return
        if self._tries >= _TRIES:
            self.end()
            return
        self._tries += 1
        self._transmit(self._sent[0], 0, 0, 0, self._sent[1])
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(_RESEND, self._resend)

    def _transmit(self, number: int, acknowledged: int, count: int, status: int, data: bytes) -> None:
        head = bytearray((number, acknowledged, count, status))
        self._session.send_payload(head + data, payload_type=_PAYLOAD, retry=False)
