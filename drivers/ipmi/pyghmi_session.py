"""A session with a BMC that ends in time, sends again what was lost and blocks no other: all use of pyghmi is here.

pyghmi has two implementations of a session. The usual one runs all sessions of a process through a loop of its own,
where a second session with one BMC, or a BMC that stops answering at the wrong moment, blocks callers for minutes.
The *simple* one, used here, has a socket of its own and is driven by its caller. What it lacks is retransmission and a
deadline, and it has no public way to add them: :class:`Session` overrides and calls private methods. So setup.cfg
has an upper bound for pyghmi, and ``tests.unit.drivers.test_pyghmi_session`` compares each method that is relied on
with the one that was tested.

To do without, ``pyghmi.ipmi.private.simplesession`` would have to be public and to offer: a deadline and retransmission
(as ``private.session`` has it); one method for every wait for a packet, instead of three calls of ``select``; the BMC's
addresses as an argument, instead of a look-up at each packet; an error that tells "no answer to the user's name" from
"no answer"; and a way to close the socket.
"""

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyghmi import exceptions
from pyghmi.ipmi.private import simplesession

from ingot.drivers.interfaces import bmc_loop

_RETRANSMIT = 1.0
_MAX_PACKET = 3000
_AT_ONCE = 32  # packets
_MOST_PACKETS = 1000  # in one session; most need a dozen

_APPLICATION, _SEND_MESSAGE, _TRACKED = 0x06, 0x34, 0x40
_BMC = 0x20

_HASHES = {17: 256, 3: 1}
"""Cipher suite -> pyghmi's number of its hash."""

_RMCP = (0x06, 0xFF, 0x07)
"""Bytes 0, 2 and 3 of each packet that is IPMI."""

SocketAddress = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]

LoginError = exceptions.IpmiException

# What pyghmi runs into when a packet is not what it takes it for.
GARBLED = (struct.error, ArithmeticError, AttributeError, LookupError, NotImplementedError, TypeError, ValueError)


class Hop(NamedTuple):
    """A controller on the way of a bridged request: its address on a channel of the one before."""

    channel: int
    address: int


async def _wait_readable(sock: socket.socket, timeout: float, readable: asyncio.Event | None = None) -> bool:
    """Return whether there is something to read within ``timeout`` seconds, or ``readable`` is set by others."""
    events, readable = asyncio.get_running_loop(), readable or asyncio.Event()
    events.add_reader(sock, readable.set)
    try:
        async with asyncio.timeout(timeout):
            return await readable.wait()
    except TimeoutError:
        return False
    finally:
        events.remove_reader(sock)


class Unresponsive(Exception):
    """The deadline passed without an answer.

    :ivar at_user_name: how often the BMC did not answer the user's name, after it had answered all before.
    """

    def __init__(self, at_user_name: int) -> None:
        super().__init__()
        self.at_user_name = at_user_name


class NoAnswers(Exception):
    """What was sent back was no answer, or so much that no BMC would send it.

    :ivar packets: how many there were.
    """

    def __init__(self, packets: int) -> None:
        super().__init__()
        self.packets = packets


class RequestRefused(Exception):
    """The BMC answered with a completion code other than 0; the text is pyghmi's.

    :ivar request: network function and command.
    """

    def __init__(self, request: str, code: int, text: str) -> None:
        super().__init__(text)
        self.request, self.code = request, code


class Session(simplesession.Session):
    """Waits until a deadline, not longer, and sends again what may have been lost.

    pyghmi calls :meth:`wait_for_rsp` while it logs in and :meth:`awaitresponse` for a command.

    :param login: host, user name, password, port and key Kg.
    :param terms: the IPMI level, None for administrator, else operator; and the cipher suites to try, the best first.
    :param route: the controllers that requests are bridged through; the last one serves them. Empty: the BMC does.
    :param addresses: where the BMC may be; the one that the first answer comes from is the BMC's.
    :param deadline: on the clock of ``time.monotonic``.
    :ivar place: name, port and route, which tell one controller from another.
    :raises Unresponsive: also from all methods.
    :raises LoginError: the BMC refuses the log-in.
    """

    attemptedhash: int
    sessionid: int  # of the BMC
    lastpayload: object  # what was sent last and is not answered yet

    def __init__(
        self,
        login: tuple[str, str, str, int, bytes | None],
        terms: tuple[int | None, tuple[int, ...]],
        route: tuple[Hop, ...],
        addresses: Sequence[SocketAddress],
        deadline: float,
    ) -> None:
        privilege, self._suites = terms
        self._route = route
        self.place = (login[0], login[3], route)
        self._bridges = False
        self._deadline = deadline
        self._addresses = addresses
        self._unanswered_names = 0
        self.most_packets = _MOST_PACKETS
        self._heard = self._useless = 0  # packets, and those since one that was an answer
        self._counted_since = time.monotonic()
        try:
            super().__init__(*login, privlevel=privilege)
        except BaseException:
            self.close()
            raise

    def send(self, netfn: int, command: int, data: Sequence[int], least: int = 0) -> bytes:
        """Send a request and return the data of its answer.

        :raises RequestRefused: the BMC answers with an error.
        :raises ValueError: the answer has fewer bytes than ``least``.
        """
        answer = self.request(netfn, command, data)
        if "error" in answer:
            raise RequestRefused(f"{netfn:#x}/{command:#x}", answer["code"], answer["error"])
        found = bytes(answer["data"])
        if len(found) < least:
            raise ValueError(f"{len(found)} bytes for {netfn:#x}/{command:#x}")
        return found

    def request(self, netfn: int, command: int, data: Sequence[int]) -> dict[str, Any]:
        """Send a request along the route and return pyghmi's form of its answer."""
        self._bridges = bool(self._route)
        try:
            answer: dict[str, Any] = self.raw_command(netfn=netfn, command=command, data=data)
        finally:
            self._bridges = False
        return answer

    def _make_ipmi_payload(self, netfn: int, command: int, bridge_request: object = None, data: bytes = b"",
                           rslun: int = 0) -> bytearray:  # fmt: skip
        """Wrap a request for each controller on its route; pyghmi can do that for one, with addresses of its own."""
        plain: bytearray = super()._make_ipmi_payload(netfn, command, bridge_request, data, rslun)
        if not self._bridges:
            return plain
        place = self.seqlun << 2
        message = _build_message((self._route[-1].address, netfn << 2 | rslun), (_BMC, place, command, *data))
        for number in reversed(range(len(self._route))):
            receiver = self._route[number - 1].address if number else _BMC
            sender = _BMC if number else self.rqaddr
            body = (sender, place, _SEND_MESSAGE, _TRACKED | self._route[number].channel, *message)
            message = _build_message((receiver, _APPLICATION << 2), body)
        # Each controller says that it has passed the message on; what the last one answers comes after that.
        self._add_request_entry((_APPLICATION + 1, self.seqlun, _SEND_MESSAGE))
        return message

    @property
    def servers(self) -> tuple[int, ...]:
        """Addresses of the controllers whose sensors this session reaches: the BMC, or the last of the route."""
        return (_BMC, *(hop.address for hop in self._route[-1:]))

    def extend(self, seconds: float) -> None:
        """Have the session go on until ``seconds`` from now, for work that has no end of its own."""
        now = time.monotonic()
        self._deadline = now + seconds
        if now >= self._counted_since + 1.0:
            self._counted_since, self._heard, self._useless = now, 0, 0

    def watch(self, timeout: float, woken: asyncio.Event, most: int) -> None:
        """Wait for packets, for ``woken`` or until ``timeout`` seconds are over; handle what has come.

        :param most: packets in a second.
        :raises NoAnswers: there were more.
        """
        bmc_loop.wait(_wait_readable(self.socket, timeout, woken))
        woken.clear()
        self.process_pktqueue()
        if self._heard > most:
            raise NoAnswers(self._heard)

    def close(self) -> None:
        """Log out if there is a log-in, and close the socket."""
        with contextlib.suppress(LoginError, OSError, Unresponsive, NoAnswers):
            self.logout()
        simplesession.Session.keepalive_sessions.pop(self, None)
        if self.socket is not None:
            self.socket.close()

    def _open_rmcpplus_request(self) -> None:
        """Propose a cipher suite: pyghmi begins with SHA-256 and tries SHA-1 when that is refused."""
        if self.attemptedhash == _HASHES[17] and 17 not in self._suites:
            self.attemptedhash = _HASHES[3]
        if self.attemptedhash == _HASHES[3] and 3 not in self._suites:
            raise LoginError("the BMC refuses cipher suite 17, and no other is allowed (driver_info ipmi_cipher_suite, "
                             "[ipmi] cipher_suite_versions)")  # fmt: skip
        super()._open_rmcpplus_request()

    def _get_session_challenge(self) -> None:
        """Refuse what pyghmi would do with a BMC that has no IPMI 2.0."""
        raise LoginError("the BMC has IPMI 1.5 only, which sends commands and consoles in clear text; nothing was sent")

    def _send_rakp3(self) -> None:
        self._unanswered_names = 0
        super()._send_rakp3()

    def wait_for_rsp(self, timeout: float | None = None, callout: bool = True) -> None:
        left = self._deadline - time.monotonic()
        if self._heard > self.most_packets or (left <= 0 and self._useless > 1):
            raise NoAnswers(self._heard)
        if left <= 0:
            raise Unresponsive(self._unanswered_names)
        if bmc_loop.wait(_wait_readable(self.socket, min(left, _RETRANSMIT))):
            self.process_pktqueue()
        elif self.lastpayload and self.sessioncontext in ("EXPECTINGRAKP2", "EXPECTINGRAKP4"):
            self._unanswered_names += self.sessioncontext == "EXPECTINGRAKP2"
            self._relog()  # a BMC accepts these messages of a log-in only once
        elif self.lastpayload and self.sessioncontext == "OPENSESSION":
            self.lastpayload = None
            self._open_rmcpplus_request()
        elif self.lastpayload:
            self.send_payload()

    def process_pktqueue(self) -> None:
        """Read the packets that are there, some at a time: other BMCs and the deadline come in between.

        pyghmi's own asks ``select``, which is limited to 1024 sockets.
        """
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                packet, sender = self.socket.recvfrom(_MAX_PACKET, socket.MSG_DONTWAIT)
                self._heard += 1
                self._useless += 1
                if len(packet) > len(_RMCP) and (packet[0], *packet[2:4]) == _RMCP:
                    before = _read_place(self)
                    self._handle_ipmi_packet(bytearray(packet), sockaddr=sender)
                    if _read_place(self) != before:
                        self._useless = 0

    def _xmit_packet(self, retry: bool = True, delay_xmit: float | None = None, timeout: float | None = None) -> None:
        """Send a packet; pyghmi's own resolves the BMC's name, for which all exchanges would wait."""
        if self.sockaddr:
            super()._xmit_packet(retry, delay_xmit, timeout)
        else:
            for address in self._addresses:
                self.socket.sendto(self.netpacket, address)

    def awaitresponse(self, retry: bool) -> None:
        while retry and self.lastresponse is None and self.logged:
            self.wait_for_rsp()


def _build_message(header: tuple[int, ...], body: tuple[int, ...]) -> bytearray:
    """Return a message with the checksums of its two parts (IPMI 2.0 figure 13-4)."""
    return bytearray((*header, -sum(header) & 0xFF, *body, -sum(body) & 0xFF))


def _read_place(session: simplesession.Session) -> tuple[object, ...]:
    """Return what every answer changes in a session."""
    last = getattr(session, "lastresponse", None)
    return session.sessioncontext, session.rmcptag, session.seqlun, session.logged, id(last)
