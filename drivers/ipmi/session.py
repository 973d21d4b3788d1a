"""Calls to BMCs over IPMI 2.0: one at a time for each BMC, and each ends in time whatever the BMC does.

A session is opened for each call and closed after it: BMCs have few of them, and one costs less than a millisecond of
processor time. Calls to all BMCs share the thread of :mod:`ingot.drivers.interfaces.bmc_loop`.
"""

import asyncio
import contextlib
import socket
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import NamedTuple, TypeVar

from ingot.common import errors, metrics
from ingot.drivers.interfaces import bmc_loop
from ingot.drivers.ipmi import pyghmi_session

_MEANS_THE_NAME = 3
"""A BMC that does not answer so often when it is given the user's name does not know it. Once, and the packet may have
been lost, or this process was stopped in between."""

# Completion codes of IPMI 2.0 table 5-2: busy; took too long; cannot answer at this moment
_TRY_LATER = frozenset((0xC0, 0xC3, 0xCE))

_SECONDS = metrics.BMC_CALL_SECONDS.labels("ipmi")

_FAREWELL = 2.0  # seconds for the end of a session that goes on

Answer = TypeVar("Answer")


class Address(NamedTuple):
    """A BMC and how to log in.

    :param kg: the BMC's key, if it has one.
    :param privilege: IPMI level, 2 user, 3 operator, 4 administrator; None: administrator, else operator.
    :param route: the controllers that requests are bridged through.
    :param suites: the cipher suites to try, of 17 (SHA-256) and 3 (SHA-1), the best first.
    """

    host: str
    port: int
    username: str
    password: str
    kg: bytes | None = None
    privilege: int | None = None
    suites: tuple[int, ...] = (17, 3)
    route: tuple[pyghmi_session.Hop, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.where}>"

    @property
    def where(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Request(NamedTuple):
    """An IPMI request: network function, command and data.

    :param least: bytes that the data of its answer has.
    """

    netfn: int
    command: int
    data: tuple[int, ...] = ()
    least: int = 0


_locks: weakref.WeakValueDictionary[tuple[str, int], asyncio.Lock] = weakref.WeakValueDictionary()
"""Of each BMC that is being called. Only the loop's thread touches them."""


@contextlib.asynccontextmanager
async def _hold_lock(address: Address, deadline: float) -> AsyncIterator[None]:
    """Allow one call to a BMC at a time: they are small computers."""
    lock = _locks.setdefault((address.host, address.port), asyncio.Lock())
    try:
        async with asyncio.timeout_at(deadline):
            await lock.acquire()
    except TimeoutError:
        raise errors.HardwareUnreachable(
            what=f"BMC {address.where}", reason="other calls to it have taken all the time; is it unresponsive?"
        ) from None
    try:
        yield
    finally:
        lock.release()


def call(address: Address, timeout: float, *requests: Request) -> list[bytes]:
    """Send requests to a BMC in one session, in order; return the data of each answer.

    :param timeout: seconds for all of it, waiting for other calls to the same BMC included.
    :raises HardwareUnreachable: it does not answer in time; the message has address and port.
    :raises HardwareError: it refuses the log-in or a request; requests after that one were not sent.
    """
    return bmc_loop.submit(call_async(address, timeout, *requests)).result()


async def call_async(address: Address, timeout: float, *requests: Request) -> list[bytes]:
    """Do the same as :func:`call`, on the loop of all BMCs: for reading many machines at once."""
    return await _converse(address, timeout, lambda session: [session.send(*request) for request in requests])


def converse(address: Address, timeout: float, work: Callable[[pyghmi_session.Session], Answer]) -> Answer:
    """Return what ``work`` returns, which sends requests of its own choice in one session; as :func:`call`."""
    return bmc_loop.submit(_converse(address, timeout, work)).result()


async def _converse(address: Address, timeout: float, work: Callable[[pyghmi_session.Session], Answer]) -> Answer:
    deadline = time.monotonic() + timeout
    with _SECONDS.time(), _translate_errors(address, timeout):
        async with _hold_lock(address, deadline):
            places = await _resolve(address, deadline)

            def exchange() -> Answer:
                with contextlib.closing(_open(address, places, deadline)) as session:
                    return work(session)

            return await bmc_loop.run_in_loop(exchange)


async def attend(address: Address, timeout: float, work: Callable[[pyghmi_session.Session], None]) -> None:
    """Call ``work`` in a session, for as long as it goes on and extends the session; as :func:`call`.

    Other calls to the BMC wait only until it has begun.

    :param timeout: seconds for the log-in and the first answer.
    """
    deadline = time.monotonic() + timeout
    with _translate_errors(address, timeout):
        async with _hold_lock(address, deadline):
            places = await _resolve(address, deadline)
            opened = await bmc_loop.run_in_loop(lambda: _open(address, places, deadline))
        try:
            await bmc_loop.run_in_loop(lambda: work(opened))
        finally:
            opened.extend(_FAREWELL)
            await bmc_loop.run_in_loop(opened.close)


def _open(address: Address, places: list[pyghmi_session.SocketAddress], deadline: float) -> pyghmi_session.Session:
    login = (address.host, address.username, address.password, address.port, address.kg)
    return pyghmi_session.Session(login, (address.privilege, address.suites), address.route, places, deadline)


async def _resolve(address: Address, deadline: float) -> list[pyghmi_session.SocketAddress]:
    """Return the addresses that a BMC's name has, as pyghmi's sockets need them: of IPv6 wherever there is IPv6."""
    family, mapped = socket.AF_INET, 0
    if socket.has_dualstack_ipv6():
        family, mapped = socket.AF_INET6, socket.AI_V4MAPPED | socket.AI_ALL
    host, port, numeric = address.host, address.port, mapped | socket.AI_NUMERICHOST
    try:  # an address needs no name server, and must not wait behind those that do
        found = socket.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM, flags=numeric)
    except socket.gaierror:
        try:
            async with asyncio.timeout_at(deadline):
                look_up = asyncio.get_running_loop().getaddrinfo
                found = await look_up(host, port, family=family, type=socket.SOCK_DGRAM, flags=mapped)
        except TimeoutError:
            raise socket.gaierror("name servers did not answer in time") from None
    except UnicodeError as exc:
        raise socket.gaierror(f"that is no name ({exc})") from None
    return [place[-1] for place in found]


@contextlib.contextmanager
def _translate_errors(address: Address, timeout: float) -> Iterator[None]:
    """Turn what can go wrong in pyghmi and on the wire into errors that say what to check."""
    bmc = f"BMC {address.where}"
    try:
        yield
    except pyghmi_session.RequestRefused as exc:
        error_class = errors.HardwareUnreachable if exc.code in _TRY_LATER else errors.HardwareError
        raise error_class(what=f"IPMI request {exc.request} to {bmc}", reason=str(exc)) from None
    except pyghmi_session.Unresponsive as exc:
        if exc.at_user_name >= _MEANS_THE_NAME:
            raise errors.HardwareError(
                what=f"Logging in to {bmc}",
                reason="it answers, but not to this user; check driver_info ipmi_username (many BMCs do not answer "
                "an unknown one)",
            ) from exc
        raise errors.HardwareUnreachable(
            what=bmc,
            reason=f"no answer within {timeout:g} s ([ipmi] command_retry_timeout); check driver_info ipmi_address and "
            "ipmi_port, and the network between",
        ) from exc
    except pyghmi_session.NoAnswers as exc:
        raise errors.HardwareError(
            what=f"Calling {bmc}",
            reason=f"it sent {exc.packets} packets without serving the request; check driver_info ipmi_address and "
            "ipmi_port: is a BMC there?",
        ) from exc
    except socket.gaierror as exc:
        raise errors.HardwareUnreachable(
            what=bmc, reason="its name has no address; check driver_info ipmi_address"
        ) from exc
    except pyghmi_session.LoginError as exc:
        reason = str(exc)
        if "password" in reason.lower() or "name" in reason.lower():
            reason += "; check driver_info ipmi_username and ipmi_password"
        raise errors.HardwareError(what=f"Logging in to {bmc}", reason=reason) from exc
    except OSError as exc:
        raise errors.HardwareUnreachable(what=bmc, reason=str(exc)) from exc
    except pyghmi_session.GARBLED as exc:
        raise errors.HardwareError(what=f"Calling {bmc}", reason=f"its answer is not IPMI 2.0 ({exc!r})") from exc
