"""One call to a BMC at a time, over IPMI 2.0 with pyghmi, that ends in time whatever the BMC does.

pyghmi has two implementations of a session. The usual one runs all sessions of a process through one event loop,
where a second session with one BMC, or a BMC that falls silent at the wrong moment, blocks callers for minutes.
The *simple* one, used here, has a socket of its own and is driven by the thread that calls. What it lacks is
retransmission and a deadline; :class:`_Session` adds both. A session is opened for each call and closed after it:
BMCs have few of them, and one costs milliseconds.
"""

import contextlib
import select
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyghmi import exceptions
from pyghmi.ipmi.private import simplesession

from ingot.common import errors

_RETRANSMIT = 1.0

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
    """The deadline passed without the answer; the argument is whether the BMC talked until it got the user's name."""


class _Session(simplesession.Session):
    """Waits until a deadline, not longer, and sends again what may have been lost.

    pyghmi calls :meth:`wait_for_rsp` while it logs in and :meth:`awaitresponse` for a command.
    """

    lastpayload: Any  # what was sent last and is not answered yet

    def __init__(self, address: Address, deadline: float) -> None:
        self._deadline = deadline
        self._name_unanswered = False
        login = (address.host, address.username, address.password, address.port, address.kg)
        try:
            super().__init__(*login, privlevel=address.privilege)
        except BaseException:
            self.close()
            raise

    def _send_rakp1(self) -> None:
        self._name_unanswered = True
        super()._send_rakp1()

    def _send_rakp3(self) -> None:
        self._name_unanswered = False
        super()._send_rakp3()

    def wait_for_rsp(self, timeout: float | None = None, callout: bool = True) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _Silence(self._name_unanswered)
        if select.select([self.socket], [], [], min(left, _RETRANSMIT))[0]:
            self.process_pktqueue()
        elif self.lastpayload:
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


_locks: dict[tuple[str, int], threading.Lock] = {}
_locks_guard = threading.Lock()


@contextlib.contextmanager
def _alone(address: Address, deadline: float) -> Iterator[None]:
    """One call to a BMC at a time: they are small computers."""
    with _locks_guard:
        lock = _locks.setdefault((address.host, address.port), threading.Lock())
    if not lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
        raise errors.HardwareUnreachable(
            what=f"BMC {address.where}", reason="other calls to it have taken all the time; is it silent?"
        )
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
    deadline = time.monotonic() + timeout
    with _alone(address, deadline), _explained(address, timeout):
        session = _Session(address, deadline)
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
        if exc.args[0]:
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
    except exceptions.IpmiException as exc:
        reason = str(exc)
        if "transmit" in reason:
            raise errors.HardwareUnreachable(
                what=bmc, reason="its name has no address; check driver_info ipmi_address"
            ) from exc
        if "password" in reason.lower() or "name" in reason.lower():
            reason += "; check driver_info ipmi_username and ipmi_password"
        raise errors.HardwareError(what=f"Logging in to {bmc}", reason=reason) from exc
    except OSError as exc:
        raise errors.HardwareUnreachable(what=bmc, reason=str(exc)) from exc
    except _GARBLED as exc:
        raise errors.HardwareError(what=f"Talking to {bmc}", reason=f"its answer is not IPMI 2.0 ({exc!r})") from exc
