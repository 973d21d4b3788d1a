"""Serial over LAN (IPMI 2.0 chapter 15): a machine's serial console through a session with its BMC, encrypted.

pyghmi's own ``Console`` waits in a loop that all sessions of a process share, and for as long as the BMC likes. What is
here sends and acknowledges packets in a session of :mod:`ingot.drivers.ipmi.pyghmi_session`, on the loop of all BMCs.
Only the log-in makes other calls to the BMC wait.
"""

import asyncio
import atexit
import time
import weakref
from typing import Any, NamedTuple

from oslo_config import cfg

from ingot.common import errors
from ingot.drivers.interfaces import bmc_loop, serial_stream
from ingot.drivers.ipmi import pyghmi_session, session

_ACTIVATE, _DEACTIVATE, _WHOSE = (0x06, 0x48), (0x06, 0x49), (0x06, 0x4B)
_SERIAL = (1, 1)
"""Type of the payload, and its instance: there is one."""
_PROTECTED = 0xC0  # encrypted and authenticated
_IN_USE = 0x80
_REFUSALS = {
    0x81: "serial over LAN is disabled; enable it in the BMC's settings",
    0x82: "its limit of such sessions is reached",
    0x83: "it cannot encrypt it, and nothing is sent in clear text",
    0x84: "it allows it in clear text only, and nothing is sent so",
}
_PAYLOAD = 1

# Bits of the fourth byte of a packet: what a BMC reports, and what it is asked for
_NACK, _UNAVAILABLE, _ENDED = 0x40, 0x20, 0x10
_BREAK = 0x10

_RESEND, _TRIES, _DOUBTFUL_TRIES = 1.0, 7, 3
_IDLE = 20.0  # seconds; BMCs end a session after sixty
_PATIENCE = 10.0  # seconds for an answer to a question in between
_MOST_PACKETS = 2000  # a second; a line of 115200 baud makes a thousand packets of a dozen bytes
_LARGEST = 200  # bytes
_TRIES_TO_TAKE_OVER = 4


class _Sent(NamedTuple):
    """What was sent and is not acknowledged yet."""

    number: int
    operation: int
    data: bytes


class _Line:
    """One activation: packets in both directions, each acknowledged before the next."""

    def __init__(self, stream: "SerialOverLan", opened: pyghmi_session.Session, largest: int) -> None:
        self._stream, self._session, self._largest = stream, opened, largest
        self._sent: _Sent | None = None
        self._number = self._tries = 0
        self._heard_number = self._heard_length = 0
        self._resend_at = self._not_before = 0.0
        self._heard_at = time.monotonic()
        self._has_ended = False
        opened.sol_handler = self.take

    def run(self) -> None:
        """Carry bytes until the stream is to be closed.

        :raises Unresponsive: the BMC does not answer anymore.
        :raises StreamTaken: the BMC has ended it.
        """
        while not self._stream.is_closing:
            now = time.monotonic()
            if self._sent is not None and now >= self._resend_at:
                self._resend()
            elif self._sent is None and now >= self._not_before:
                self._send_next()
            if now >= self._heard_at + _IDLE:
                self._check_owner()
                self._heard_at = time.monotonic()
            self._session.extend(_PATIENCE)
            self._session.watch(max(0.0, self._find_next_check(now) - now), self._stream.woken, _MOST_PACKETS)
            if self._has_ended:
                reason = "another client of the BMC has taken it over, or the BMC has ended it"
                raise serial_stream.StreamTaken(what=self._stream.where, reason=reason)

    def _check_owner(self) -> None:
        """Ask whose the console is: some BMCs say nothing to a client that loses it. It keeps a session alive, too."""
        self._session.extend(_PATIENCE)
        try:
            owner = self._session.send(*_WHOSE, _SERIAL)[:4]
        except pyghmi_session.RequestRefused:  # not each BMC tells
            return
        if int.from_bytes(owner, "little") != self._session.sessionid:
            self._has_ended = True

    def _find_next_check(self, now: float) -> float:
        """Return when there is something to do, unless something comes before."""
        idle_until = self._heard_at + _IDLE
        if self._sent is not None:
            return min(idle_until, self._resend_at)
        return min(idle_until, self._not_before) if self._not_before > now else idle_until

    def take(self, packet: bytearray) -> None:
        """Handle a packet of the BMC's."""
        if len(packet) < 4:
            return
        self._heard_at = time.monotonic()
        number, acknowledged, count, status = packet[0] & 0x0F, packet[1] & 0x0F, packet[2], packet[3]
        data = bytes(packet[4:])
        if number:
            again = self._heard_length if number == self._heard_number else 0
            self._heard_number, self._heard_length = number, len(data)
            self._transmit(0, number, len(data), 0, b"")
            if data[again:]:
                self._stream.hear(data[again:])
        if self._sent is not None and acknowledged == self._sent.number:
            self._note_taken(self._sent, count, status)
        self._has_ended |= bool(status & _ENDED)

    def _note_taken(self, sent: _Sent, count: int, status: int) -> None:
        self._sent = None
        if count < len(sent.data):
            self._stream.give_back(sent.data[count:])
        if status & (_NACK | _UNAVAILABLE):  # the machine is off, or its line is busy
            self._not_before = time.monotonic() + _RESEND

    def _send_next(self) -> None:
        data = self._stream.take_typed(self._largest)
        if data is None:
            return
        self._number = self._number % 15 + 1
        self._sent = _Sent(self._number, _BREAK if data == serial_stream.BREAK else 0, data)
        self._tries = 0
        self._resend()

    def _resend(self) -> None:
        """
        :raises Unresponsive: it was sent often enough.
        """
        sent = self._sent
        if sent is None:
            return
        if self._tries >= _TRIES:
            raise pyghmi_session.Unresponsive(0)
        if self._tries == _DOUBTFUL_TRIES:
            self._check_owner()
        self._tries += 1
        self._resend_at = time.monotonic() + _RESEND
        self._transmit(sent.number, 0, 0, sent.operation, sent.data)

    def _transmit(self, number: int, acknowledged: int, count: int, operation: int, data: bytes) -> None:
        head = (number, acknowledged, count & 0xFF, operation)
        self._session.send_payload(bytearray(head) + data, payload_type=_PAYLOAD, retry=False)


class SerialOverLan(serial_stream.SerialStream):
    """The serial console of a machine whose BMC speaks IPMI 2.0; one at a time for each BMC.

    :param address: as :func:`ingot.drivers.ipmi.base.read_address` returns it.
    :param conf: has ``[ipmi] command_retry_timeout``, in which a BMC must have opened it.
    :param take_over: whether a console that another client has open is taken from it.
    """

    def __init__(self, address: session.Address, conf: cfg.ConfigOpts, take_over: bool = False) -> None:
        super().__init__(f"BMC {address.where}", conf.ipmi.serial_reconnect_timeout)
        self._address = address._replace(route=())
        self._timeout: float = conf.ipmi.command_retry_timeout
        self._take_over = take_over

    async def open(self) -> None:
        place = (self._address.host, self._address.port)
        if place in _open:
            reason = "this process has it open already; close that stream first"
            raise serial_stream.StreamTaken(what=self.where, reason=reason)
        _open[place] = self
        try:
            await super().open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await super().close()
        place = (self._address.host, self._address.port)
        if _open.get(place) is self:
            del _open[place]

    async def attend(self) -> None:
        await session.attend(self._address, self._timeout, self._carry)

    def _carry(self, opened: pyghmi_session.Session) -> None:
        line = _Line(self, opened, _activate(opened, self.where, self._take_over or self.has_opened))
        self.note_connection()
        line.run()


_open: weakref.WeakValueDictionary[tuple[str, int], SerialOverLan] = weakref.WeakValueDictionary()
"""Those of this process. Only the loop's thread changes it."""


@atexit.register
def _close_all() -> None:
    serial_stream.close_all(list(_open.values()))


def _activate(opened: pyghmi_session.Session, where: str, take_over: bool) -> int:
    """Begin; return how many bytes a packet to the BMC may have.

    :raises StreamTaken: another client has it.
    :raises HardwareError: the BMC refuses.
    """
    answer = _ask(opened, _ACTIVATE)
    tries = _TRIES_TO_TAKE_OVER if take_over else 0
    while answer["code"] == _IN_USE and tries:
        _ask(opened, _DEACTIVATE)
        bmc_loop.wait(asyncio.sleep(0.2))
        answer = _ask(opened, _ACTIVATE)
        tries -= 1
    code, data = answer["code"], bytes(answer["data"])
    if code == _IN_USE:
        raise serial_stream.StreamTaken(what=where, reason="another client of the BMC has it open")
    if code:
        reason = _REFUSALS.get(code) or answer.get("error") or f"completion code {code:#x}"
        raise errors.HardwareError(what=f"Opening the serial console of {where}", reason=reason)
    largest = int.from_bytes(data[4:6], "little") - 4
    return min(largest, _LARGEST) if largest > 0 else 1


def _ask(opened: pyghmi_session.Session, request: tuple[int, int]) -> dict[str, Any]:
    flags = (_PROTECTED,) if request == _ACTIVATE else (0,)
    return {"code": 0, **opened.request(*request, (*_SERIAL, *flags, 0, 0, 0))}
