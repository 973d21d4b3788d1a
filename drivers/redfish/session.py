"""What is known of a BMC between two operations, above all its session, and requests that bear with a busy BMC.

A session is used again until it has been idle for some minutes, and deleted then, or when the process ends. Everything
here belongs to the thread of :mod:`ingot.drivers.interfaces.bmc_loop`.
"""

import asyncio
import base64
import collections
import contextlib
import itertools
import json
import urllib.parse
import weakref
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from oslo_log import log

from ingot.common import errors
from ingot.drivers.redfish import fields
from ingot.drivers.redfish.address import PORTS, Address
from ingot.drivers.redfish.http import LARGEST, Connection, Dropped, NotHttp, Response

LOG = log.getLogger(__name__)

_IDLE = 300.0
"""Seconds after which a session is given back; reading power states keeps it in use."""

_LONGEST_CLOSE = 5.0
_REDIRECTS = 3
_MESSAGES = 5  # of an answer that are read
_LARGEST_ROOT = 2**17  # bytes; the root is kept for each BMC, and has two thousand
_IN_PATHS = "/%:@!$&'()*+,;=~"  # characters that need no quoting

_REFUSED, _FORBIDDEN, _NO_ETAG_MATCH = 401, 403, (412, 428)
_BUSY = frozenset((429, 503))
_FAILED = frozenset((500, 502, 504))
_CONFLICTS = frozenset((400, 409))

_TRY_LATER = frozenset(
    (
        *("ServiceTemporarilyUnavailable", "ResourceInStandby", "ServiceInUnknownState", "ServiceShuttingDown"),
        *("ActionParameterValueConflict", "InvalidOperationForSystemState", "SYS518", "SYS428", "RAC0679"),
    )
)
"""Last parts of the ids of messages that say "not now" with a status that says "no"."""

Json = dict[str, Any]


class Limits(NamedTuple):
    """How long an operation may take, and how it bears with failures.

    :param total: seconds for all of it, waiting for other operations on the same BMC included.
    :param connect: seconds for TCP and TLS.
    :param attempts: how often a request is sent that a BMC fails at.
    :param longest_pause: seconds between two attempts, at most, where the BMC does not say how long.
    """

    total: float
    connect: float
    attempts: int
    longest_pause: float


class Session:
    """A BMC as one user of it knows it.

    :ivar root: its service root; empty before the first operation.
    :ivar system: path of its only machine, once that was asked for.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self.root: Json = {}
        self.system: str | None = None
        self.headers: dict[str, str] = {}  # with which requests prove who sends them
        self.path: str | None = None
        self.expiry: asyncio.TimerHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent without logging in first."""
        return bool(self.headers) or (self.address.username is None and bool(self.root))

    def forget(self) -> None:
        """Forget a session that the BMC does not know anymore."""
        self.headers, self.path = {}, None


def read_messages(response: Response) -> list[tuple[str, str]]:
    """Return id and text of each message of an answer's ``@Message.ExtendedInfo``; wherever it stands in practice."""
    document = response.read_object()
    error = document.get("error")
    error = error if isinstance(error, dict) else document
    infos = error.get("@Message.ExtendedInfo") or document.get("@Message.ExtendedInfo") or []
    found = fields.parts({"all": [infos] if isinstance(infos, dict) else infos}, "all")
    texts = [(fields.text(one, "MessageId") or "", fields.text(one, "Message") or "") for one in found[:_MESSAGES]]
    return texts or [(fields.text(error, "code") or "", fields.text(error, "message") or "")]


def quote(url: str) -> str:
    """Return path and query of a URL as they stand in a request.

    For what names a resource of the BMC that sent it, under an address by which we perhaps do not know that BMC.
    """
    parts = urllib.parse.urlsplit(url)
    path = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    path = urllib.parse.quote(path, safe=_IN_PATHS)
    return f"{path}?{urllib.parse.quote(parts.query, safe=_IN_PATHS)}" if parts.query else path


def _join(target: str, location: str) -> str:
    try:
        return urllib.parse.urljoin(target, location)
    except ValueError:
        return location


class Operation:
    """Requests to a BMC that belong together; they share a connection and end with it."""

    def __init__(self, session: Session, limits: Limits) -> None:
        self.session = session
        self.doing = "connecting"
        self._limits = limits
        self._connection = Connection(session.address, limits.connect)

    def close(self) -> None:
        self._connection.close()

    def describe(self, response: Response) -> str:
        """Return status and words of an answer, without the password, which some repeat when they refuse it."""
        said = "; ".join(": ".join(filter(None, pair)) for pair in read_messages(response))
        if password := self.session.address.password:
            said = said.replace(password, "***")
        return f"was answered {response.status_code}{f' ({said})' if said else ''}"

    async def request(
        self, method: str, path: str, data: object = None, headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None, largest: int = LARGEST,
    ) -> Response:  # fmt: skip
        """Send a request and return the answer, whatever its status.

        It is sent again while the BMC says that it is busy; and where it fails at it, or drops the connection, if that
        can do no harm.

        :param repeatable: whether it may be done twice; by default if the method says so.
        :param largest: bytes of the answer.
        :raises HardwareError: there is no talking to the BMC; it refuses the user.
        """
        await self.prepare()
        response = await self._send(method, path, data, headers, repeatable, largest)
        if response.status_code == _REFUSED and self.session.path is not None:
            LOG.info("BMC %s has lost the session; logging in again", self.session.address.where)
            self.session.forget()
            await self._log_in()
            response = await self._send(method, path, data, headers, repeatable, largest)
        return response

    async def _send(
        self, method: str, path: str, data: object, headers: Mapping[str, str] | None, repeatable: bool | None = None,
        largest: int = LARGEST,
    ) -> Response:  # fmt: skip
        can_repeat = method != "POST" if repeatable is None else repeatable
        body = None if data is None else json.dumps(data).encode()
        attempt, redirects, target = 0, 0, self._make_local(path)
        while True:
            attempt += 1
            self.doing = f"{method} {target}"
            lines = {**self.session.headers, **(headers or {})}
            if body is not None:
                lines.setdefault("Content-Type", "application/json")
            try:
                response = await self._connection.request(method, target, lines, body, largest)
            except (Dropped, NotHttp) as exc:
                if isinstance(exc, NotHttp) or not can_repeat or attempt >= self._limits.attempts:
                    raise self._refuse_answer(exc) from None
                await asyncio.sleep(self._choose_pause(attempt, None))
                continue
            location = response.headers.get("Location")
            if response.status_code in (301, 302, 307, 308) and location and redirects < _REDIRECTS and method == "GET":
                redirects, target = redirects + 1, self._make_local(_join(target, location))
                continue
            if not self._comes_later(response, can_repeat and attempt < self._limits.attempts):
                return response
            pause = self._choose_pause(attempt, response)
            self.doing += f" {self.describe(response)}"
            LOG.info("BMC %s: %s; trying again in %.1f s", self.session.address.where, self.doing, pause)
            await asyncio.sleep(pause)

    def _refuse_answer(self, exc: Exception) -> errors.HardwareError:
        where = f"BMC {self.session.address.where}"
        if isinstance(exc, Dropped):
            return errors.HardwareUnreachable(what=where, reason=f"{exc} ({self.doing})")
        return errors.HardwareError(
            what=f"Calling {where}", reason=f"{exc}; check driver_info redfish_address: is a BMC there? ({self.doing})"
        )

    def _make_local(self, target: object) -> str:
        """Return path and query of a link, which may be a whole URL of this BMC.

        :raises HardwareError: it is none, or one to elsewhere, which must not get the credentials of this BMC.
        """
        address = self.session.address
        try:
            parts = urllib.parse.urlsplit(target if isinstance(target, str) else "")
            own = not parts.netloc or (parts.hostname, parts.port or PORTS.get(parts.scheme)) == (
                address.host.lower(), address.port
            )  # fmt: skip
        except ValueError:
            own = False
        if not isinstance(target, str) or not target or not own:
            reason = f"it gives {str(target)[:200]!r} as a link, and only links within a BMC are followed"
            raise errors.HardwareError(what=f"Calling BMC {address.where}", reason=f"{reason} ({self.doing})")
        return quote(target)

    @staticmethod
    def _comes_later(response: Response, can_repeat: bool) -> bool:
        status = response.status_code
        if status in _BUSY:
            return True
        if status in _FAILED:
            return can_repeat
        if status in _CONFLICTS and can_repeat:
            return any(message.rpartition(".")[2] in _TRY_LATER for message, _ in read_messages(response))
        return False

    def _choose_pause(self, attempt: int, response: Response | None) -> float:
        """Return the seconds until the next attempt: what the BMC asks for, else longer and longer."""
        asked = response.headers.get("Retry-After", "") if response is not None else ""
        return (
            float(max(1, int(asked)))
            if asked.isdecimal() and len(asked) < 10
            else min(2.0 ** (attempt - 1), self._limits.longest_pause)
        )

    # Logging in

    async def prepare(self) -> None:
        """Log in, unless that is done; the session's root is known then."""
        if not self.session.is_open:
            await self._log_in()

    async def _log_in(self) -> None:
        session, address = self.session, self.session.address
        basic = {}
        if address.username is not None:
            pair = base64.b64encode(f"{address.username}:{address.password}".encode()).decode()
            basic = {"Authorization": f"Basic {pair}"}
        if not session.root:
            session.root = await self._read_root(basic)
        if address.username is None:
            return
        if address.auth_type != "basic" and await self._open_session():
            return
        session.headers = basic

    async def _read_root(self, basic: dict[str, str]) -> Json:
        """Return the service root, which is public, but not on every BMC."""
        path, address = self.session.address.root, self.session.address
        response = await self._send("GET", path, None, None)
        if response.status_code == _REFUSED and basic:
            response = await self._send("GET", path, None, basic)
        root = response.read_object()
        if response.status_code == 200 and root and len(response.content) <= _LARGEST_ROOT:
            return root
        if response.status_code == _REFUSED:
            raise self._refuse_user(response)
        raise errors.HardwareError(
            what=f"Calling BMC {address.where}",
            reason=f"{self.doing} was answered {response.status_code}, without a service root of Redfish; check "
            "driver_info redfish_address",
        )

    async def _open_session(self) -> bool:
        """Log in; return False where the BMC has no sessions and another way is allowed."""
        session, address = self.session, self.session.address
        path, is_auto = fields.link(session.root, "Links", "Sessions"), address.auth_type == "auto"
        if path is None and "SessionService" not in session.root and is_auto:
            return False
        user = {"UserName": address.username, "Password": address.password}
        response = await self._send("POST", path or f"{address.root}SessionService/Sessions", user, None, True)
        token = response.headers.get("X-Auth-Token")
        if response.status_code < 300 and token:
            session.headers = {"X-Auth-Token": token}
            location = response.headers.get("Location") or fields.link(response.read_object())
            session.path = quote(location) if location else ""
            return True
        if is_auto and response.status_code != _REFUSED:
            LOG.info("BMC %s has no sessions for user %s (%d); basic authentication is used instead", address.where,
                     address.username, response.status_code)  # fmt: skip
            return False
        raise self._refuse_user(response)

    def _refuse_user(self, response: Response) -> errors.HardwareError:
        return errors.HardwareError(
            what=f"Logging in to BMC {self.session.address.where}",
            reason=f"{self.doing} {self.describe(response)}; check driver_info redfish_username, redfish_password and "
            "redfish_auth_type",
        )

    async def log_out(self) -> None:
        """Delete the session, if there is one; a BMC that does not answer will forget it some day."""
        session, path = self.session, self.session.path
        if path:
            with contextlib.suppress(errors.HardwareError, Dropped, NotHttp, TimeoutError):
                async with asyncio.timeout(_LONGEST_CLOSE):
                    await self._connection.request("DELETE", path, session.headers, None)
        session.forget()


_sessions: "collections.OrderedDict[Address, Session]" = collections.OrderedDict()
"""By address without machine, the longest unused first."""

_locks: "weakref.WeakValueDictionary[str, asyncio.Lock]" = weakref.WeakValueDictionary()
"""Of each BMC that is being called."""


@contextlib.asynccontextmanager
async def open_operation(address: Address, limits: Limits, cache_size: int) -> AsyncIterator[Operation]:
    """Begin an operation on a BMC when those before it have ended: BMCs are small computers.

    The caller sets the deadline.

    :param cache_size: how many sessions are kept for the next operation.
    """
    key = address._replace(system=None)
    lock = _locks.setdefault(address.where, asyncio.Lock())
    async with lock:
        session = _sessions.setdefault(key, Session(key))
        _sessions.move_to_end(key)
        if session.expiry is not None:
            session.expiry.cancel()
        operation = Operation(session, limits)
        try:
            yield operation
        finally:
            operation.close()
            session.expiry = asyncio.get_running_loop().call_later(_IDLE, _begin_closing, key)
            for oldest in itertools.islice(_sessions, max(0, len(_sessions) - cache_size)):
                _begin_closing(oldest)


_closing: set["asyncio.Task[None]"] = set()


def _begin_closing(key: Address) -> None:
    closing = asyncio.get_running_loop().create_task(close(key))
    _closing.add(closing)  # the loop itself keeps no reference
    closing.add_done_callback(_closing.discard)


async def close(key: Address) -> None:
    """End the session with a BMC when the operation that uses it has ended."""
    lock = _locks.setdefault(key.where, asyncio.Lock())
    async with lock:
        session = _sessions.pop(key, None)
        if session is None:
            return
        if session.expiry is not None:
            session.expiry.cancel()
        operation = Operation(session, Limits(_LONGEST_CLOSE, _LONGEST_CLOSE, 1, 1))
        try:
            await operation.log_out()
        finally:
            operation.close()


async def close_all() -> None:
    """End all sessions, at the end of the process; those that cannot be ended in time are left."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_CLOSE):
            await asyncio.gather(*(close(key) for key in list(_sessions)), return_exceptions=True)
