"""Sessions of browsers: a cookie that stands for the credentials of a person who has logged in.

Nothing of a session is kept by the API. The cookie is a token of the keyring that all processes share, and holds what
the strategy wants to see again: none can read it or make one. It counts only in requests that a page of another site
cannot have sent: with the header X-Ingot-Console, which no form can set, or, where a browser opens a websocket, from a
page of this host.
"""

import time
from typing import NamedTuple, Unpack

from oslo_config import cfg
from oslo_log import log
from werkzeug import http

from ingot.api.auth import identity
from ingot.common import context, errors, keyring, metrics
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

PATH = "/ingot/v1/session"
COOKIE = "ingot_session"
HEADER = "X-Ingot-Console"

OFFER = "ingot.web_socket"
"""In the environment of a request to the embedded server: whether its client offers to go on with a websocket."""

SIGNS = frozenset(("HTTP_X_INGOT_CONSOLE", "HTTP_ORIGIN", OFFER))
"""What requests of browsers have, of which those without need neither a session nor a look at their origin."""

_ASKED_FOR = frozenset(
    ("HTTP_X_INGOT_CONSOLE", "HTTP_X_AUTH_TOKEN", "HTTP_X_OPENSTACK_IRONIC_API_VERSION", "HTTP_OPENSTACK_API_VERSION")
)
"""Headers that a browser sends for a page of another site only if the API allows it, which it never does."""

_READING = frozenset(("GET", "HEAD", "OPTIONS"))

_LONGEST_COOKIE = 4000  # bytes; browsers keep no longer one


class Session(NamedTuple):
    """A session, as its cookie has it.

    :param kept: what the strategy wants to see again.
    :param expires: seconds since the epoch.
    """

    kept: Json
    expires: float

    @property
    def seconds_left(self) -> int:
        return max(0, int(self.expires - time.time()))


class Opened(NamedTuple):
    """A session that has begun.

    :param ctx: who has logged in.
    :param cookie: its value.
    """

    ctx: context.RequestContext
    session: Session
    cookie: str


class Sessions:
    """Begins sessions, and finds those that requests belong to.

    :param strategy: knows the people.
    """

    def __init__(self, conf: cfg.ConfigOpts, strategy: identity.Strategy) -> None:
        self._conf = conf
        self._strategy = strategy
        self._keyring = keyring.Keyring.of(conf)

    def require_enabled(self) -> None:
        """Require that there are sessions at all.

        :raises NotFound: the operator has switched them off.
        """
        if not self._conf.console.enabled:
            raise errors.NotFound("There are no sessions here: [console] enabled is off.")

    def open(self, login: identity.Login, address: str) -> Opened:
        """Begin a session.

        :param address: of the person.
        :raises NotAuthenticated: the password is wrong, or there were too many wrong ones.
        :raises ServiceUnavailable: it cannot be checked now, or there is no key for cookies.
        """
        if not (self._keyring.seals or self._keyring.exists()):
            reason = "it needs [secrets] key_file, which ingot-dbsync add_key makes"
            raise errors.ServiceUnavailable(what="A session", reason=reason)
        try:
            granted = self._strategy.log_in(login, address)
        except errors.NotAuthenticated:
            metrics.SESSIONS.labels("refused").inc()
            raise
        now = time.time()
        expires = now + self._conf.console.session_lifetime
        session = Session(granted.kept, min(expires, granted.until or expires))
        cookie = self._keyring.issue(
            {"strategy": self._conf.auth_strategy, "kept": session.kept, "issued": now, "expires": session.expires}
        )
        if len(cookie) > _LONGEST_COOKIE:
            reason = f"the token of Keystone is too long for a cookie ({len(cookie)} of {_LONGEST_COOKIE} bytes)"
            raise errors.ServiceUnavailable(what="A session", reason=reason)
        metrics.SESSIONS.labels("opened").inc()
        return Opened(granted.ctx, session, cookie)

    def close(self, session: Session) -> None:
        """End what a session keeps; its cookie is the browser's to forget."""
        self._strategy.log_out(session.kept)
        metrics.SESSIONS.labels("closed").inc()

    def identify(
        self, environ: identity.Environ, **ids: Unpack[identity.RequestIds]
    ) -> tuple[context.RequestContext, Session | None]:
        """Return the context of a request with one of :data:`SIGNS`, and its session; other credentials count, too.

        :raises NotAuthenticated: it has no valid credentials, nor a session that counts.
        :raises Forbidden: a page of another site sends it.
        :raises ServiceUnavailable: credentials cannot be checked now.
        """
        if OFFER in environ or (environ["REQUEST_METHOD"] not in _READING and _ASKED_FOR.isdisjoint(environ)):
            _check_origin(self._conf, environ)
        session = self._read(environ) if _is_of_console(environ) else None
        try:
            if session is None:
                return self._strategy.identify(environ, **ids), None
            return self._strategy.resume(session.kept, environ, **ids), session
        except identity.Challenged as exc:
            if session is not None:
                metrics.SESSIONS.labels("ended").inc()
            if "HTTP_X_INGOT_CONSOLE" in environ:
                exc.challenge = identity.LOG_IN_CHALLENGE
            raise

    def _read(self, environ: identity.Environ) -> Session | None:
        """Return the session of a request; None if it has no cookie, or one that means nothing here.

        :raises NotAuthenticated: its session has ended.
        """
        cookie = http.parse_cookie(environ.get("HTTP_COOKIE")).get(COOKIE)
        if not cookie or self._conf.auth_strategy == "noauth" or not self._conf.console.enabled:
            return None
        found = self._keyring.redeem(cookie)
        if found is not None and found["strategy"] == self._conf.auth_strategy:
            expires = min(found["expires"], found["issued"] + self._conf.console.session_lifetime)
            if time.time() < expires:
                return Session(found["kept"], expires)
        metrics.SESSIONS.labels("ended").inc()
        raise identity.Challenged(identity.LOG_IN_CHALLENGE, "the session has ended; log in again")


def _is_of_console(environ: identity.Environ) -> bool:
    """Return whether no page of another site can have sent a request; of websockets the Origin was checked."""
    return (OFFER in environ and "HTTP_ORIGIN" in environ) or environ.get("HTTP_X_INGOT_CONSOLE") == "1"


def _check_origin(conf: cfg.ConfigOpts, environ: identity.Environ) -> None:
    """Refuse what a page of another site does, for which browsers ask no leave, and add the password of their user.

    That is a websocket, or a form. Clients that are no browsers send no Origin.

    :raises Forbidden: the header Origin names another host than the request.
    """
    origin = environ.get("HTTP_ORIGIN")
    if origin is None:
        return
    hosts = {environ.get("HTTP_HOST", "").lower(), _read_host(conf.api.public_endpoint or "")}
    if _read_host(origin) not in hosts - {""}:
        LOG.warning("A page of %r is refused, from %s", origin[:80], environ.get("REMOTE_ADDR") or "a local client")
        raise errors.Forbidden(
            f"Pages of {origin[:80]} may do nothing here: their host is neither the Host of the request nor that of "
            "[api] public_endpoint."
        )


def _read_host(url: str) -> str:
    """Return host and port of a URL; nothing of what is none."""
    return url.partition("://")[2].partition("/")[0].lower()
