"""Calls to BMCs over IPMI 2.0 with pyghmi: one at a time for each BMC, and each ends in time whatever the BMC does.

pyghmi has two implementations of a session. The usual one runs all sessions of a process through a loop of its own,
where a second session with one BMC, or a BMC that falls silent at the wrong moment, blocks callers for minutes.
The *simple* one, used here, has a socket of its own and is driven by whoever calls: :mod:`ingot.drivers.ipmi_loop`.
What it lacks is retransmission and a deadline; :class:`_Session` adds both. A session is opened for each call and
closed after it: BMCs have few of them, and one costs less than a millisecond of processor time.
"""

import asyncio
import contextlib
import socket
import struct
import time
import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from pyghmi import exceptions
from pyghmi.ipmi.private import simplesession

from ingot.common import errors
from ingot.drivers import ipmi_loop

_RETRANSMIT = 1.0
_MAX_PACKET = 3000

_MEANS_THE_NAME = 3
"""A BMC that falls silent so often when it is told the user's name does not know it. Once, and the packet may have been
lost, or this process was stopped in between."""

_RMCP = (0x06, 0xFF, 0x07)
"""Bytes 0, 2 and 3 of each packet that is IPMI."""

# Completion codes of IPMI 2.0 table 5-2: busy; took too long; cannot answer at this moment
_TRY_LATER = frozenset((0xC0, 0xC3, 0xCE))

# What pyghmi runs into when a packet is not what it takes it for.
_GARBLED = (struct.error, IndexError, KeyError, TypeError, ValueError)


class Address(NamedTuple):
    """A BMC and how to log in.

    :param kg: the BMC's key, if it has one.
    :param privilege: IPMI level, 2 user, 3 operator, 4 administrator; None: administrator, else operator.
    """

    host: str
    port: int
    username: str
    password: str
    kg: bytes | None = None
    privilege: int | None = None

    def __repr__(self) -> str:
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Request(NamedTuple):
    """An IPMI request: network function, command and data."""

    netfn: int
    command: int
    data: tuple[int, ...] = ()


class _Silence(Exception):
    """The deadline passed without the answer; the argument is how often the BMC fell silent when it got the user's
    name, and answered all before."""


class _Nameless(Exception):
    """Name servers did not answer in time."""


class _Session(simplesession.Session):
    """Waits until a deadline, not longer, and sends again what may have been lost.

    pyghmi calls :meth:`wait_for_rsp` while it logs in and :meth:`awaitresponse` for a command.

    :param places: where the BMC may be; the place that the first answer comes from is the BMC's.
    """

    lastpayload: Any  # what was sent last and is not answered yet

    def __init__(self, address: Address, places: Sequence[Any], deadline: float) -> None:
        self._deadline = deadline
        self._places = places
        self._silent_to_name = 0
        login = (address.host, address.username, address.password, address.port, address.kg)
        try:
            super().__init__(*login, privlevel=address.privilege)
        except BaseException:
            self.close()
            raise

    def _send_rakp3(self) -> None:
        self._silent_to_name = 0
        super()._send_rakp3()

    def wait_for_rsp(self, timeout: float | None = None, callout: bool = True) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _Silence(self._silent_to_name)
        if ipmi_loop.readable(self.socket, min(left, _RETRANSMIT)):
            self.process_pktqueue()
        elif self.lastpayload:
            self._silent_to_name += self.sessioncontext == "EXPECTINGRAKP2"
            self._again()

    def _again(self) -> None:
        if self.sessioncontext in ("EXPECTINGRAKP2", "EXPECTINGRAKP4"):
            # a BMC takes these messages of a log-in once only
            self._relog()
        elif self.sessioncontext == "OPENSESSION":
            self.lastpayload = None
            self._open_rmcpplus_request()
        else:
            self.send_payload()

    def process_pktqueue(self) -> None:
        """All packets that are there; pyghmi's own asks ``select``, which knows no more than 1024 sockets."""
        with contextlib.suppress(BlockingIOError):
            while True:
                packet, sender = self.socket.recvfrom(_MAX_PACKET, socket.MSG_DONTWAIT)
                if len(packet) > len(_RMCP) and (packet[0], *packet[2:4]) == _RMCP:
                    self._handle_ipmi_packet(bytearray(packet), sockaddr=sender)

    def _xmit_packet(self, *args: Any, **kwargs: Any) -> None:
        """pyghmi's own looks names up, for which all talks would wait."""
        if self.sockaddr:
            super()._xmit_packet(*args, **kwargs)
        else:
            for place in self._places:
                self.socket.sendto(self.netpacket, place)

    def awaitresponse(self, retry: bool) -> None:
        while retry and self.lastresponse is None and self.logged:
            self.wait_for_rsp()

    def close(self) -> None:
        """Logs out if there is a log-in, and gives the socket back."""
        with contextlib.suppress(exceptions.IpmiException, OSError, _Silence):
            self.logout()
        simplesession.Session.keepalive_sessions.pop(self, None)
        if self.socket is not None:
            self.socket.close()


_locks: weakref.WeakValueDictionary[tuple[str, int], asyncio.Lock] = weakref.WeakValueDictionary()
"""Of each BMC that somebody talks to. Only the loop's thread touches them."""


@contextlib.asynccontextmanager
async def _alone(address: Address, deadline: float) -> AsyncIterator[None]:
    """One call to a BMC at a time: they are small computers."""
    lock = _locks.setdefault((address.host, address.port), asyncio.Lock())
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            await lock.acquire()
    except TimeoutError:
        raise errors.HardwareUnreachable(
            what=f"BMC {address.where}", reason="other calls to it have taken all the time; is it silent?"
        ) from None
    try:
        yield
    finally:
        lock.release()


def call(address: Address, timeout: float, *requests: Request) -> list[bytes]:
    """Sends requests to a BMC in one session, in order; returns the data of each answer.

    :param timeout: seconds for all of it, waiting for other calls to the same BMC included.
    :raises HardwareUnreachable: it does not answer in time; the message has address and port.
    :raises HardwareError: it refuses the log-in or a request; requests after that one were not sent.
    """
    return ipmi_loop.begin(answers(address, timeout, *requests)).result()


async def answers(address: Address, timeout: float, *requests: Request) -> list[bytes]:
    """As :func:`call`, on the loop of :mod:`ingot.drivers.ipmi_loop`: for asking many machines at a time."""
    deadline = time.monotonic() + timeout
    with _explained(address, timeout):
        async with _alone(address, deadline):
            places = await _places(address, deadline)
            return await ipmi_loop.carried_on(lambda: _talk(address, places, deadline, requests))


async def _places(address: Address, deadline: float) -> list[Any]:
    """The addresses that a BMC's name has, as pyghmi's sockets take them: of IPv6 wherever there is IPv6."""
    family, mapped = socket.AF_INET, 0
    if socket.has_dualstack_ipv6():
        family, mapped = socket.AF_INET6, socket.AI_V4MAPPED | socket.AI_ALL
    about = {"family": family, "type": socket.SOCK_DGRAM}
    try:  # an address is nothing to ask name servers for, nor to wait behind those that do
        found = socket.getaddrinfo(address.host, address.port, **about, flags=mapped | socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await _asked(address, deadline, **about, flags=mapped)
    return [place[-1] for place in found]


async def _asked(address: Address, deadline: float, **about: Any) -> list[Any]:
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            return await asyncio.get_running_loop().getaddrinfo(address.host, address.port, **about)
    except TimeoutError:
        raise _Nameless from None


def _talk(address: Address, places: Sequence[Any], deadline: float, requests: Sequence[Request]) -> list[bytes]:
    session = _Session(address, places, deadline)
    try:
        return [_answer(session, address, request) for request in requests]
    finally:
        session.close()


def _answer(session: _Session, address: Address, request: Request) -> bytes:
    answer: dict[str, Any] = session.raw_command(netfn=request.netfn, command=request.command, data=request.data)
    if "error" in answer:
        kind = errors.HardwareUnreachable if answer["code"] in _TRY_LATER else errors.HardwareError
        raise kind(
            what=f"IPMI request {request.netfn:#x}/{request.command:#x} to BMC {address.where}",
            reason=answer["error"],
        )
    return bytes(answer["data"])


@contextlib.contextmanager
def _explained(address: Address, timeout: float) -> Iterator[None]:
    """Turns what can go wrong in pyghmi and on the wire into errors that say what to check."""
    bmc = f"BMC {address.where}"
    try:
        yield
    except _Silence as exc:
        if exc.args[0] >= _MEANS_THE_NAME:
            raise errors.HardwareError(
                what=f"Logging in to {bmc}",
                reason="it answers, but not to this user; check driver_info ipmi_username (many BMCs do not answer "
                "an unknown one)",
            ) from exc
        raise errors.HardwareUnreachable(
            what=bmc,
            reason=f"nothing came back for {timeout:g} s ([ipmi] command_retry_timeout); check driver_info "
            "ipmi_address and ipmi_port, and the network between",
        ) from exc
    except (socket.gaierror, _Nameless) as exc:
        raise errors.HardwareUnreachable(
            what=bmc, reason="its name has no address; check driver_info ipmi_address"
        ) from exc
    except exceptions.IpmiException as exc:
        reason = str(exc)
        if "password" in reason.lower() or "name" in reason.lower():
            reason += "; check driver_info ipmi_username and ipmi_password"
        raise errors.HardwareError(what=f"Logging in to {bmc}", reason=reason) from exc
    except OSError as exc:
        raise errors.HardwareUnreachable(what=bmc, reason=str(exc)) from exc
    except _GARBLED as exc:
        raise errors.HardwareError(what=f"Talking to {bmc}", reason=f"its answer is not IPMI 2.0 ({exc!r})") from exc
