"""Authentication: the strategies that find out who sends a request, and HTTP basic, which is one of them.

The operator chooses one. That of Keystone is a module of its own, which is loaded only where it is chosen.
"""

import hashlib
import hmac
import importlib.metadata
import os
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

from ingot.api.auth import access
from ingot.common import context, errors

LOG = log.getLogger(__name__)

Environ = Mapping[str, Any]
"""A request in the words of WSGI."""

CHALLENGE = 'Basic realm="Baremetal API", charset="UTF-8"'

_GROUP = "ingot.api.authentication"
_EVERYTHING = access.Access()
_LINE = re.compile(r"([^:]+):(\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53})", re.ASCII)
_LONGEST_PASSWORD = 72  # bcrypt reads no more, and refuses a longer one


class RequestIds(TypedDict):
    """What the context of a request gets, whatever the user."""

    global_request_id: str | None
    overwrite: bool


class Challenged(errors.NotAuthenticated):
    """
    :param challenge: how to authenticate, for the header WWW-Authenticate.
    """

    def __init__(self, challenge: str, reason: str) -> None:
        super().__init__(reason=reason)
        self.challenge = challenge


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


def load_strategy(conf: cfg.ConfigOpts) -> Strategy | None:
    """Return what the option auth_strategy names; None for noauth.

    :raises ConfigurationError: it cannot be used as it is configured.
    """
    if conf.auth_strategy == "noauth":
        return None
    (found,) = importlib.metadata.entry_points(group=_GROUP, name=conf.auth_strategy)
    strategy: Strategy = found.load()(conf)
    return strategy


class _Users(NamedTuple):
    stamp: tuple[int, int, int]
    hashes: dict[str, bytes]


class HttpBasic(Strategy):
    """HTTP basic authentication against a file of lines ``name:bcrypt-hash``, read again when it changes.

    All users are administrators.

    :raises ConfigurationError: the file cannot be read.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._path = pathlib.Path(conf.http_basic_auth_user_file)
        self._lock = threading.Lock()
        self._users = _Users((0, 0, 0), {})
        # bcrypt is slow on purpose. A correct password is remembered, as a keyed digest, until the file changes.
        self._key = secrets.token_bytes(32)
        self._verified: dict[str, bytes] = {}
        self._unknown_user = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(rounds=10))
        self._read_users()

    def identify(self, environ: Environ, **ids: Unpack[RequestIds]) -> context.RequestContext:
        name = self._check_credentials(Authorization.from_header(environ.get("HTTP_AUTHORIZATION")))
        return context.RequestContext(user_id=name, system_scope="all", is_admin=True, **ids)

    def _check_credentials(self, authorization: Authorization | None) -> str:
        if authorization is None or authorization.type != "basic" or authorization.username is None:
            reason = "send a user name and password with HTTP basic authentication"
            raise Challenged(CHALLENGE, reason)
        name, password = authorization.username, (authorization.password or "").encode()
        try:
            users = self._read_users()
        except errors.ConfigurationError as exc:
            LOG.error("Users cannot be authenticated: %s", exc.message)  # noqa: TRY400 - the message is complete
            raise errors.ServiceUnavailable(what="Authentication", reason="the log has the cause") from exc
        if not self._is_correct(users, name, password):
            raise Challenged(CHALLENGE, "user name or password is wrong")
        return name

    def _is_correct(self, users: _Users, name: str, password: bytes) -> bool:
        known = users.hashes.get(name)
        digest = hmac.digest(self._key, name.encode() + b"\0" + password, hashlib.sha256)
        if known is not None and hmac.compare_digest(self._verified.get(name, b""), digest):
            return True
        # An unknown name takes as long as a wrong password: another user's hash has the same cost.
        compared = known or next(iter(users.hashes.values()), self._unknown_user)
        correct = len(password) <= _LONGEST_PASSWORD and bcrypt.checkpw(password, compared)
        if correct and known is not None:
            with self._lock:
                if users is self._users:
                    self._verified[name] = digest
            return True
        return False

    def _read_users(self) -> _Users:
        stamp = self._read_stamp()
        with self._lock:
            if stamp != self._users.stamp:
                self._users = _Users(stamp, self._parse_file())
                self._verified.clear()
            return self._users

    def _read_stamp(self) -> tuple[int, int, int]:
        try:
            status = os.stat(self._path)
        except OSError as exc:
            raise self._unusable_error(str(exc)) from exc
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _parse_file(self) -> dict[str, bytes]:
        users = {}
        for number, line in enumerate(self._read_text().splitlines(), 1):
            if not line.strip() or line.strip().startswith("#"):
                continue
            user = _LINE.fullmatch(line.strip())
            if user is None:
                raise self._unusable_error(f"line {number} is not name:bcrypt-hash (make one with htpasswd -B)")
            users[user[1]] = user[2].encode()
        return users

    def _read_text(self) -> str:
        try:
            return self._path.read_text(errors="replace")
        except OSError as exc:
            raise self._unusable_error(str(exc)) from exc

    def _unusable_error(self, why: str) -> errors.ConfigurationError:
        return errors.ConfigurationError(
            option="http_basic_auth_user_file", value=str(self._path), allowed=f"It cannot be used: {why}."
        )
