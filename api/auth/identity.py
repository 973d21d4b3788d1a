"""Authentication: the strategies that find out who sends a request, and HTTP basic, which is one of them.

The operator chooses one. That of Keystone is a module of its own, which is loaded only where it is chosen.
"""

import hashlib
import hmac
import importlib.metadata
import pathlib
import re
import secrets
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict, Unpack

import bcrypt
from oslo_config import cfg
from oslo_log import log
from werkzeug.datastructures import Authorization

from ingot.api.auth import access, failed_logins
from ingot.common import context, errors
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

Environ = Mapping[str, Any]
"""A request in the words of WSGI."""

CHALLENGE = 'Basic realm="Baremetal API", charset="UTF-8"'

LOG_IN_CHALLENGE = 'Session realm="Baremetal API"'
"""What the web console is challenged with. Of a scheme that they know, browsers would ask for a password themselves."""

_GROUP = "ingot.api.authentication"
_EVERYTHING = access.Access()
_LINE = re.compile(r"([^:]+):(\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53})", re.ASCII)
_LONGEST_NAME = 255  # of a user, in the history of a node
_LONGEST_PASSWORD = 72  # bcrypt reads no more, and refuses a longer one


class RequestIds(TypedDict):
    """What the context of a request gets, whatever the user."""

    request_id: str
    global_request_id: str | None
    overwrite: bool


class Challenged(errors.NotAuthenticated):
    """
    :param challenge: how to authenticate, for the header WWW-Authenticate.
    """

    def __init__(self, challenge: str, reason: str) -> None:
        super().__init__(reason=reason)
        self.challenge = challenge


class Login(NamedTuple):
    """What a person sends to log in; domains and project only to Keystone.

    :param project: the scope; None: the whole system.
    """

    user: str
    password: str
    user_domain: str | None = None
    project: str | None = None
    project_domain: str | None = None

    def __repr__(self) -> str:
        return f"Login({self.user!r})"


class Granted(NamedTuple):
    """A person who has logged in.

    :param kept: what the session keeps instead of the password.
    :param until: when that ends, in seconds since the epoch; None: the strategy does not limit it.
    """

    ctx: context.RequestContext
    kept: Json
    until: float | None = None


class Strategy:
    """A way to find out who sends a request."""

    def identify(self, environ: Environ, **ids: Unpack[RequestIds]) -> context.RequestContext:
        """Return the context of a request, with its user.

        :raises NotAuthenticated: the request has no valid credentials.
        :raises ServiceUnavailable: credentials cannot be checked now.
        """
        raise NotImplementedError

    def access(self, ctx: context.RequestContext) -> access.Access:
        """Return what the user may do; everything, unless the strategy knows of roles."""
        return _EVERYTHING

    def log_in(self, login: Login, address: str) -> Granted:
        """Check the password of a person who begins a session.

        :raises NotAuthenticated: it is wrong, or there were too many wrong ones.
        :raises ServiceUnavailable: it cannot be checked now.
        """
        raise NotImplementedError

    def resume(self, kept: Json, environ: Environ, **ids: Unpack[RequestIds]) -> context.RequestContext:
        """Return the context of a request of a session.

        :param kept: what :meth:`log_in` has given it to keep.
        :raises NotAuthenticated: it counts no longer.
        :raises ServiceUnavailable: it cannot be checked now.
        """
        return self.identify(environ, **ids)

    def log_out(self, kept: Json) -> None:
        """End what a session keeps, where that is possible."""


class NoAuth(Strategy):
    """All requests are served; what a client says of itself goes into the history of the node."""

    def identify(self, environ: Environ, **ids: Unpack[RequestIds]) -> context.RequestContext:
        user, project = (environ.get(f"HTTP_X_{name}_ID", "")[:_LONGEST_NAME] or None for name in ("USER", "PROJECT"))
        return context.RequestContext(user_id=user, project_id=project, **ids)


def load_strategy(conf: cfg.ConfigOpts) -> Strategy:
    """Return what the option auth_strategy names.

    :raises ConfigurationError: it names nothing, or what cannot be used as it is configured.
    """
    if conf.auth_strategy is None:
        raise errors.ConfigurationError(option="auth_strategy", value=None, allowed="It has no default: write one.")
    if conf.auth_strategy == "noauth":
        return NoAuth()
    (found,) = importlib.metadata.entry_points(group=_GROUP, name=conf.auth_strategy)
    strategy: Strategy = found.load()(conf)
    return strategy


def check_strategy(conf: cfg.ConfigOpts) -> None:
    """Refuse a strategy that cannot be used as it is configured; without any there is nothing to check.

    :raises ConfigurationError: as :func:`load_strategy`.
    """
    if conf.auth_strategy is not None:
        load_strategy(conf)


class _Users(NamedTuple):
    """What a file says of users, until it changes.

    :param verified: correct passwords by name, as keyed digests: bcrypt is slow on purpose.
    """

    stamp: tuple[int, int, int]
    hashes: dict[str, bytes]
    verified: dict[str, bytes]


class HttpBasic(Strategy):
    """HTTP basic authentication against a file of lines ``name:bcrypt-hash``, read again when it changes.

    All users are administrators.

    :raises ConfigurationError: the file cannot be read.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._path = pathlib.Path(conf.http_basic_auth_user_file)
        self._lock = threading.Lock()
        self._users = _Users((0, 0, 0), {}, {})
        self._key = secrets.token_bytes(32)
        self._failed_logins = failed_logins.FailedLogins(conf.api.max_failed_logins)
        self._unknown_user = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(rounds=10))
        self._read_users()

    def identify(self, environ: Environ, **ids: Unpack[RequestIds]) -> context.RequestContext:
        given = Authorization.from_header(environ.get("HTTP_AUTHORIZATION"))
        if given is None or given.type != "basic" or given.username is None:
            raise Challenged(CHALLENGE, "send a user name and password with HTTP basic authentication")
        if not self._check(given.username, given.password or "", environ.get("REMOTE_ADDR", "")):
            raise Challenged(CHALLENGE, "user name or password is wrong")
        return _build_context(given.username, **ids)

    def log_in(self, login: Login, address: str) -> Granted:
        known = self._check(login.user, login.password, address)
        if known is None:
            raise Challenged(LOG_IN_CHALLENGE, "user name or password is wrong")
        ctx = context.RequestContext(user_id=login.user, overwrite=False)
        return Granted(ctx, {"user": login.user, "line": _digest(known)})

    def resume(self, kept: Json, environ: Environ, **ids: Unpack[RequestIds]) -> context.RequestContext:
        """Return the context of the user, whose line in the file must be the one of the log-in."""
        known = self._require_users().hashes.get(kept["user"])
        if known is None or not hmac.compare_digest(kept["line"], _digest(known)):
            raise Challenged(LOG_IN_CHALLENGE, "the user was removed, or has another password, since the log-in")
        return _build_context(kept["user"], **ids)

    def _check(self, name: str, password: str, address: str) -> bytes | None:
        """Return the hash of a user whose password is correct; note the failed log-in otherwise."""
        users = self._require_users()
        if self._is_correct(users, name, password.encode(), address):
            return users.hashes[name]
        self._failed_logins.note(address, name)
        return None

    def _require_users(self) -> _Users:
        try:
            return self._read_users()
        except errors.ConfigurationError as exc:
            LOG.error("Users cannot be authenticated: %s", exc.message)  # noqa: TRY400 - the message is complete
            raise errors.ServiceUnavailable(what="Authentication", reason="the log has the cause") from exc

    def _is_correct(self, users: _Users, name: str, password: bytes, address: str) -> bool:
        known = users.hashes.get(name)
        digest = hmac.digest(self._key, name.encode() + b"\0" + password, hashlib.sha256)
        if hmac.compare_digest(users.verified.get(name, b""), digest):
            return True
        self._failed_logins.check(address)  # not before: who was let in stays in
        # An unknown name takes as long as a wrong password: another user's hash has the same cost.
        compared = known or next(iter(users.hashes.values()), self._unknown_user)
        correct = len(password) <= _LONGEST_PASSWORD and bcrypt.checkpw(password, compared)
        if known is None or not correct:
            return False
        users.verified[name] = digest
        return True

    def _read_users(self) -> _Users:
        """Return the users in the file.

        :raises ConfigurationError: it cannot be read.
        """
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            with self._lock:
                if stamp != self._users.stamp:
                    self._users = _Users(stamp, _parse_users(self._path.read_text(errors="replace")), {})
                return self._users
        except (OSError, ValueError) as exc:
            raise errors.ConfigurationError(
                option="http_basic_auth_user_file", value=str(self._path), allowed=f"It cannot be used: {exc}."
            ) from exc


def _build_context(name: str, **ids: Unpack[RequestIds]) -> context.RequestContext:
    return context.RequestContext(user_id=name, system_scope="all", is_admin=True, **ids)


def _digest(known: bytes) -> str:
    """Return what stands for the hash of a password in a session, from which nothing can be guessed."""
    return hashlib.sha256(known).hexdigest()


def _parse_users(text: str) -> dict[str, bytes]:
    users = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and not line.startswith("#"):
            user = _LINE.fullmatch(line)
            if user is None:
                raise ValueError(f"line {number} is not name:bcrypt-hash (make one with htpasswd -B)")
            users[user[1]] = user[2].encode()
    return users
