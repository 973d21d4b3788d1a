"""Sessions of browsers: a cookie that stands for the credentials of a person who has logged in.

Nothing of a session is kept by the API. The cookie is a token of the keyring that all processes share, and holds what
the strategy wants to see again: none can read it or make one. It counts only in requests that a page of another site
cannot have sent: with the header X-Ingot-Console, which no form can set, or, where a browser opens a websocket, from a
page of this host.

Without authentication nothing of that is needed, and the name counts by which a browser has come: one of another
domain that leads here (DNS rebinding) is refused.
"""

import ipaddress
import socket
import time
from typing import NamedTuple, Unpack
from urllib import parse

from oslo_config import cfg
from oslo_log import log
from werkzeug import http

from ingot.api.auth import identity
from ingot.common import context, errors, keyring, metrics
from ingot.common.json_types import Json

LOG = log.getLogger(__name__)

PATH = "/ingot/v1/session"
COOKIE = "ingot_session"
COOKIE_OVER_TLS = f"__Host-{COOKIE}"
"""No other host of the domain, and no request without TLS, can set a cookie of such a name (RFC 6265bis, 4.1.3.2)."""

HEADER = "X-Ingot-Console"

OFFER = "ingot.web_socket"
"""In the environment of a request to the embedded server: whether its client offers to go on with a websocket."""

SIGNS = frozenset(("HTTP_X_INGOT_CONSOLE", "HTTP_ORIGIN", "HTTP_ACCEPT_LANGUAGE", OFFER))
"""What browsers send: a request with none of these has no session, and comes from no page.

Pages can change Accept-Language in their requests, but not leave it out.
"""

_ASKED_FOR = frozenset(
    ("HTTP_X_INGOT_CONSOLE", "HTTP_X_AUTH_TOKEN", "HTTP_X_OPENSTACK_IRONIC_API_VERSION", "HTTP_OPENSTACK_API_VERSION")
)
"""Headers that a browser sends for a page of another site only if the API allows it: for those of [cors]."""

_READING = frozenset(("GET", "HEAD", "OPTIONS"))

_LONGEST_COOKIE = 4000  # bytes; browsers keep no longer one

_PORTS = {"http": 80, "https": 443}


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
        for outcome in ("opened", "refused", "closed", "ended"):
            metrics.SESSIONS.labels(outcome)  # so that the first one can be seen

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
        if self._conf.auth_strategy == "noauth":
            _check_host(self._conf, environ)
        changes = environ["REQUEST_METHOD"] not in _READING and _ASKED_FOR.isdisjoint(environ)
        if OFFER in environ or (changes and environ.get("HTTP_ORIGIN") not in (self._conf.cors.allowed_origin or ())):
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
        name = name_cookie(self._conf.api.public_endpoint or environ["wsgi.url_scheme"])
        cookie = http.parse_cookie(environ.get("HTTP_COOKIE")).get(name)
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


def name_cookie(base: str) -> str:
    """Return the name of the cookie.

    :param base: the URL of the API, or its scheme.
    """
    return COOKIE_OVER_TLS if base.startswith("https") else COOKIE


def _check_host(conf: cfg.ConfigOpts, environ: identity.Environ) -> None:
    """Refuse a browser that has come by a name of another domain.

    :raises Forbidden: the header Host is no address, no name without a dot, and none that is known to be the API's.
    """
    given = environ.get("HTTP_HOST", "")
    host = (_find_place(f"http://{given}") or (given.lower(), 0))[0]  # what cannot be read is no known name
    endpoint = _find_place(conf.api.public_endpoint or "")
    own = {socket.gethostname().lower(), conf.host.lower(), endpoint and endpoint[0]}
    if "." not in host or host.endswith(".localhost") or _is_address(host) or host in own:
        return
    LOG.warning("A browser at %s is refused: it has come by %r", environ.get("REMOTE_ADDR") or "this host", given[:80])
    raise errors.Forbidden(
        f"Browsers may not use this API by the name {host[:80]}: without authentication, any page could. Set [api] "
        "public_endpoint to the address that browsers use, or come by the IP address."
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _check_origin(conf: cfg.ConfigOpts, environ: identity.Environ) -> None:
    """Refuse a websocket or a form from a page of another site.

    Browsers send both without asking, together with the password of their user. Other clients send no Origin.

    :raises Forbidden: the header Origin names another host than the request, or no TLS where that has it.
    """
    origin = environ.get("HTTP_ORIGIN")
    if origin is None:
        return
    scheme = origin.partition("://")[0].lower()
    own = (f"{scheme}://{environ.get('HTTP_HOST', '')}", conf.api.public_endpoint or "")
    is_weaker = environ["wsgi.url_scheme"] == "https" and scheme != "https"
    if is_weaker or _find_place(origin) not in {_find_place(url) for url in own} - {None}:
        LOG.warning("A page of %r is refused, from %s", origin[:80], environ.get("REMOTE_ADDR") or "a local client")
        raise errors.Forbidden(
            f"Pages of {origin[:80]} may do nothing here: their host is neither the Host of the request nor that of "
            "[api] public_endpoint."
        )


def _find_place(url: str) -> tuple[str, int] | None:
    """Return host and port of a URL; None if it names none."""
    try:
        parts = parse.urlsplit(url)
        return (parts.hostname, parts.port or _PORTS.get(parts.scheme, 0)) if parts.hostname else None
    except ValueError:
        return None
