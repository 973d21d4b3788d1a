"""HTTP basic authentication against an htpasswd file with bcrypt hashes."""

import hashlib
import hmac
import os
import pathlib
import re
import secrets
import threading
from typing import Any, NamedTuple

import bcrypt
from oslo_config import cfg
from oslo_log import log
from werkzeug.datastructures import Authorization

from ingot.api.auth import identity
from ingot.common import context, errors

LOG = log.getLogger(__name__)

CHALLENGE = 'Basic realm="Baremetal API", charset="UTF-8"'

_LINE = re.compile(r"([^:]+):(\$2[aby]\$(?:0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53})", re.ASCII)
_LONGEST_PASSWORD = 72  # bcrypt looks at no more, and refuses to be asked


class _Users(NamedTuple):
    stamp: tuple[int, int, int]
    hashes: dict[str, bytes]


class HttpBasic(identity.Strategy):
    """Users of a file of lines ``name:bcrypt-hash``; the file is read again when it changes. All are administrators.

    :raises ConfigurationError: the file cannot be read.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._path = pathlib.Path(conf.http_basic_auth_user_file)
        self._lock = threading.Lock()
        self._users = _Users((0, 0, 0), {})
        # bcrypt is slow on purpose. What was right once is remembered, as a keyed digest, until the file changes.
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}
        self._nobody = bcrypt.hashpw(secrets.token_bytes(16), bcrypt.gensalt(rounds=10))
        self._current()

    def identify(self, environ: identity.Environ, **values: Any) -> context.RequestContext:
        name = self._authenticated(Authorization.from_header(environ.get("HTTP_AUTHORIZATION")))
        return context.RequestContext(user_id=name, system_scope="all", is_admin=True, **values)

    def _authenticated(self, authorization: Authorization | None) -> str:
        if authorization is None or authorization.type != "basic" or authorization.username is None:
            reason = "send a user name and password with HTTP basic authentication"
            raise identity.Challenged(CHALLENGE, reason)
        name, password = authorization.username, (authorization.password or "").encode()
        try:
            users = self._current()
        except errors.ConfigurationError as exc:
            LOG.error("Nobody can be authenticated: %s", exc.message)  # noqa: TRY400 - the message says it all
            raise errors.ServiceUnavailable(what="Authentication", reason="the log tells the cause") from exc
        if not self._is_right(users, name, password):
            raise identity.Challenged(CHALLENGE, "user name or password is wrong")
        return name

    def _is_right(self, users: _Users, name: str, password: bytes) -> bool:
        known = users.hashes.get(name)
        digest = hmac.digest(self._key, name.encode() + b"\0" + password, hashlib.sha256)
        if known is not None and hmac.compare_digest(self._right.get(name, b""), digest):
            return True
        # An unknown name takes as long as a wrong password: another user's hash has the same cost.
        compared = known or next(iter(users.hashes.values()), self._nobody)
        right = len(password) <= _LONGEST_PASSWORD and bcrypt.checkpw(password, compared)
        if right and known is not None:
            with self._lock:
                if users is self._users:
                    self._right[name] = digest
            return True
        return False

    def _current(self) -> _Users:
        stamp = self._stamp()
        with self._lock:
            if stamp != self._users.stamp:
                self._users = _Users(stamp, self._read())
                self._right.clear()
            return self._users

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = os.stat(self._path)
        except OSError as exc:
            raise self._unusable(str(exc)) from exc
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> dict[str, bytes]:
        users = {}
        for number, line in enumerate(self._text().splitlines(), 1):
            if not line.strip() or line.strip().startswith("#"):
                continue
            user = _LINE.fullmatch(line.strip())
            if user is None:
                raise self._unusable(f"line {number} is not name:bcrypt-hash (make one with htpasswd -B)")
            users[user[1]] = user[2].encode()
        return users

    def _text(self) -> str:
        try:
            return self._path.read_text(errors="replace")
        except OSError as exc:
            raise self._unusable(str(exc)) from exc

    def _unusable(self, why: str) -> errors.ConfigurationError:
        return errors.ConfigurationError(
            option="http_basic_auth_user_file", value=str(self._path), allowed=f"It cannot be used: {why}."
        )
